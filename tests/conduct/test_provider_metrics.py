"""CloudWatch's values of a given server come beside the trials, on their time axis; moto answers for CloudWatch."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import boto3
import polars as pl
import pytest
from botocore.exceptions import ClientError
from botocore.model import OperationModel
from moto import mock_aws

from pgtrial.cli import main
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.provider_metrics import SETTLED, import_metrics
from pgtrial.evidence.observe import cloudwatch
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import TIMELINE_SCHEMA

from ..store.samples import completed_trial

pytestmark = pytest.mark.server


BEGAN = datetime(2026, 11, 20, 14, 12, 30, tzinfo=UTC)
"""The measured part of the first trial."""
MINUTE = BEGAN.replace(second=0)
LATER = BEGAN + timedelta(hours=2)
WARMUP_S, DURATION_S = 60, 180


def a_study(path: Path, **metrics: str) -> StudyDirectory:
    arm = {"dsn": "host=one", "monitoring": {"cloudwatch": "db-1", **metrics}}
    load = {"warmup": WARMUP_S, "duration": DURATION_S}
    spec = build_study({"load": load, "arms": {"rds": arm, "own": {}}, "verdict": {"blocks": 1}}, "test")
    return StudyDirectory.create(path, spec, make_plan(spec, 1, "2026-11-20T14:00:00+00:00"))


def store_trials(study: StudyDirectory, *, events: bool = True) -> None:
    for place, planned in enumerate(study.plan.trials):
        began = BEGAN + timedelta(minutes=10 * place)
        directory = study.begin_trial(planned)
        if events:
            hello = {"event": "hello", "t": 0.0, "started": (began - timedelta(seconds=62.5)).isoformat()}
            phase = {"event": "phase", "phase": "measure", "t": 62.5}
            (directory / "engine.jsonl").write_text(f"{json.dumps(hello)}\n{json.dumps(phase)}\n")
        ended = (began + timedelta(seconds=DURATION_S + 5)).isoformat()
        pl.DataFrame(schema=TIMELINE_SCHEMA).write_parquet(directory / "timeline.parquet")
        trial = completed_trial(study, planned)
        measured = trial.measured.model_copy(update={"duration_s": DURATION_S})
        study.write_trials([trial.model_copy(update={"ended": ended, "measured": measured})])


@pytest.fixture
def study(tmp_path: Path) -> StudyDirectory:
    study = a_study(tmp_path / "study", region="eu-west-1")
    store_trials(study)
    return study


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides everything on this machine from which boto3 could find an AWS account."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def aws(nobody: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield


def measured(name: str, values: dict[datetime, float], *, instance: str = "db-1", region: str = "eu-west-1") -> None:
    """Stores a value of a CloudWatch metric for each of these minutes, as RDS does."""
    boto3.client("cloudwatch", region_name=region).put_metric_data(
        Namespace="AWS/RDS",
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": "DBInstanceIdentifier", "Value": instance}],
                "Timestamp": minute,
                "Value": value,
            }
            for minute, value in values.items()
        ],
    )


def minutes(*values: float, since: datetime = MINUTE) -> dict[datetime, float]:
    return {since + timedelta(minutes=place): value for place, value in enumerate(values)}


def rds_trial_rows(study: StudyDirectory) -> list[tuple[int, str, str, float, int]]:
    trial = next(trial for trial in study.trials() if trial.arm == "rds")
    return study.provider_metrics(trial).rows()


def whole_study() -> dict[datetime, float]:
    return minutes(*(float(value) for value in range(30)), since=MINUTE - timedelta(minutes=3))


@pytest.mark.usefixtures("aws")
def test_values_lie_on_the_axis_of_the_trial_each_with_the_time_that_it_covers(study):
    first = next(planned for planned in study.plan.trials if planned.arm == "rds")
    begin = (BEGAN + timedelta(minutes=10 * first.index)).replace(second=0)
    measured("CPUUtilization", minutes(1.0, 2.0, 50.0, 60.0, 70.0, 80.0, 9.0, since=begin - timedelta(minutes=2)))
    assert import_metrics(study, lambda line: None, LATER) == []
    assert rds_trial_rows(study) == [
        (-90, "cloudwatch", "CPUUtilization", 2.0, 60),  # the warm-up began within that minute
        (-30, "cloudwatch", "CPUUtilization", 50.0, 60),
        (30, "cloudwatch", "CPUUtilization", 60.0, 60),
        (90, "cloudwatch", "CPUUtilization", 70.0, 60),
        (150, "cloudwatch", "CPUUtilization", 80.0, 60),  # and the measured part ended within this one
    ]


@pytest.mark.usefixtures("aws")
def test_all_metrics_that_the_instance_has_are_taken_and_of_no_other_instance(study):
    for name in cloudwatch.UNITS:
        measured(name, whole_study())
        measured(name, minutes(*[1e6] * 30), instance="db-2")
    import_metrics(study, lambda line: None, LATER)
    rows = rds_trial_rows(study)
    assert {name for _, _, name, _, _ in rows} == set(cloudwatch.UNITS)
    assert max(value for _, _, _, value, _ in rows) < 30


@pytest.mark.usefixtures("aws")
def test_the_values_of_a_deployment_are_those_of_its_own_instance(tmp_path):
    arm = {"dsn": ["host=a", "host=b"], "monitoring": {"cloudwatch": ["db-1", "db-2"], "region": "eu-west-1"}}
    other = {"dsn": ["host=c", "host=d"]}
    spec = build_study(
        {"load": {"duration": DURATION_S}, "arms": {"rds": arm, "own": other}, "verdict": {"blocks": 2}}, "test"
    )
    study = StudyDirectory.create(tmp_path / "study", spec, make_plan(spec, 1, "2026-11-20T14:00:00+00:00"))
    store_trials(study)
    for instance, value in (("db-1", 1.0), ("db-2", 2.0)):
        measured("ReadIOPS", minutes(*[value] * 60), instance=instance)
    assert import_metrics(study, lambda line: None, LATER) == []
    found = {trial.place: set(study.provider_metrics(trial)["value"]) for trial in study.trials() if trial.arm == "rds"}
    assert found == {0: {1.0}, 1: {2.0}}


@pytest.mark.usefixtures("aws")
def test_a_trial_waits_until_its_values_are_settled_and_none_is_asked_for_twice(study, monkeypatch):
    measured("ReadIOPS", whole_study())
    ended = datetime.fromisoformat(next(trial.ended for trial in study.trials() if trial.arm == "rds"))
    (early,) = import_metrics(study, lambda line: None, ended + SETTLED - timedelta(seconds=1))
    assert "metrics of 1 trial are still to come" in early
    assert rds_trial_rows(study) == []
    assert import_metrics(study, lambda line: None, ended + SETTLED) == []
    monkeypatch.setattr(cloudwatch.CloudWatch, "values", None)
    assert import_metrics(study, lambda line: None, LATER) == []


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(("days", "span"), [(1, 60), (20, 300), (90, 3600)])
def test_old_values_are_asked_for_in_the_grain_that_is_still_kept(study, days, span):
    measured("ReadIOPS", whole_study())
    import_metrics(study, lambda line: None, BEGAN + timedelta(days=days))
    assert {row[-1] for row in rds_trial_rows(study)} == {span}


@pytest.mark.usefixtures("aws")
def test_the_region_is_the_environments_where_the_study_names_none(tmp_path, monkeypatch):
    study = a_study(tmp_path / "study")
    store_trials(study)
    measured("ReadIOPS", whole_study(), region="us-east-2")
    (none,) = import_metrics(study, lambda line: None, LATER)
    assert "no AWS region is known for the metrics of db-1; set monitoring.region or the variable AWS_REGION" in none
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    (silent,) = import_metrics(study, lambda line: None, LATER)
    assert "no values of db-1 in eu-west-1 at the time of 1 trial; check monitoring.cloudwatch" in silent
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert import_metrics(study, lambda line: None, LATER) == []


def test_without_credentials_there_is_one_sentence_and_no_request(study):
    (sentence,) = import_metrics(study, lambda line: None, LATER)
    assert sentence == (
        "arms.rds: CloudWatch returned no metrics of db-1: Unable to locate credentials; "
        "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("AccessDenied", "allow cloudwatch:GetMetricData"),
        ("ExpiredToken", "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("InternalFailure", "check monitoring.region and the network"),
    ],
)
def test_what_amazon_refuses_is_told_with_what_to_do(study, monkeypatch, code, cure):
    def refuse(model: OperationModel, **_: object) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "No."}}, model.name)

    class Refusing(boto3.Session):
        def __init__(self) -> None:
            super().__init__()
            self.events.register("before-call.cloudwatch", refuse)

    monkeypatch.setattr(boto3, "Session", Refusing)
    (sentence,) = import_metrics(study, lambda line: None, LATER)
    assert sentence.startswith("arms.rds: CloudWatch returned no metrics of db-1: An error occurred")
    assert sentence.endswith(cure)


def test_without_the_extra_there_is_one_sentence(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    (sentence,) = import_metrics(study, lambda line: None, LATER)
    assert "need boto3; install it with: pip install 'pgtrial[aws]'" in sentence


@pytest.mark.usefixtures("aws")
def test_a_trial_that_did_not_come_to_its_measured_part_is_left_out(tmp_path):
    study = a_study(tmp_path / "study", region="eu-west-1")
    store_trials(study, events=False)
    assert import_metrics(study, lambda line: None, LATER) == []


def test_a_study_that_runs_is_left_alone(study):
    with study.locked(), pytest.raises(StoreError, match="another pgtrial is running"):
        import_metrics(study, lambda line: None, LATER)


def test_metrics_are_of_given_servers(tmp_path):
    arms = {"a": {"monitoring": {"cloudwatch": "db-1"}}, "b": {}}
    with pytest.raises(StudyError, match=r"\[arms.a\] has monitoring, which is for given servers"):
        build_study({"arms": arms}, "test")
    arms = {
        "a": {"dsn": ["host=a", "host=b"], "monitoring": {"cloudwatch": "db-1"}},
        "b": {"dsn": ["host=c", "host=d"]},
    }
    with pytest.raises(StudyError, match=r"cloudwatch names 1 instances and dsn 2; name the instance of each"):
        build_study({"arms": arms}, "test")
    spec = a_study(tmp_path / "study", region="eu-west-1").spec
    assert thaw(freeze(spec)) == spec


@pytest.mark.usefixtures("aws")
def test_the_command_imports_what_is_missing_and_writes_the_report(study, capsys, monkeypatch):
    monkeypatch.setattr("pgtrial.cli.stored.import_metrics", partial(import_metrics, now=LATER))
    with monkeypatch.context() as patched:
        patched.setattr("pgtrial.cli.stored.build_report", lambda study: None)
        with pytest.raises(SystemExit, match="2"):
            main(["metrics", str(study.path)])
    assert "warning: arms.rds: CloudWatch has no values of db-1" in capsys.readouterr().err
    measured("ReadIOPS", whole_study())
    with pytest.raises(SystemExit, match="0"):
        main(["metrics", str(study.path)])
    assert "What the provider measured" in (study.path / "report.html").read_text()


def test_the_command_refuses_a_study_without_metrics(tmp_path, capsys):
    spec = build_study({"arms": {"a": {}, "b": {}}, "verdict": {"blocks": 1}}, "test")
    StudyDirectory.create(tmp_path / "study", spec, make_plan(spec, 1, "2026-11-20T14:00:00+00:00"))
    with pytest.raises(SystemExit, match="3"):
        main(["metrics", str(tmp_path / "study")])
    told = f"no arm of the study in {tmp_path / 'study'} names the metrics of a cloud provider; write for example"
    assert told in capsys.readouterr().err
