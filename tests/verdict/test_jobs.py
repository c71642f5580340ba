"""Studies of jobs: claims on their time and on what they did, how failures count, and what the report has of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np
import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import JobSummary, Latency, Phase, Trial
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData
from pgtrial.report.sections import sections
from pgtrial.store.study_file import build_study
from tests.verdict.studies import make_plan, make_trial, verdict_of

POINT = LoadPoint(workload="index.sql", scale=10, clients=1, protocol="simple", job=JobLoad(limit_s=600.0))
SCRIPT = "CREATE INDEX ON pgbench_accounts (abalance);"


def plan_of(*metrics: str, blocks: int = 11) -> Plan:
    plan = make_plan(("16MB", "512MB"), blocks=blocks, points=[POINT], duration_s=0.0)
    return plan.model_copy(update={"metrics": list(metrics)})


def trials_of(plan: Plan, seconds: Mapping[str, float | None], *, memory: float | None = 2e8) -> list[Trial]:
    """Returns trials of jobs with 1% of noise. All trials of an arm whose value is None fail, and the second arm writes
    a tenth less WAL.
    """
    rng = np.random.default_rng(4)
    made = []
    for planned in plan.trials:
        mean = seconds[planned.arm]
        trial = make_trial(plan, planned, None if mean is None else 1.0)
        if mean is not None:
            took_s = mean * math.exp(0.01 * rng.standard_normal())
            wal = (9e7 if planned.arm == "512MB" else 1e8) * math.exp(0.01 * rng.standard_normal())
            job = JobSummary(wal_bytes=wal, size_before_bytes=1e9, size_bytes=1.25e9, peak_memory_bytes=memory)
            times = dict.fromkeys(Latency.model_fields, 1e6 * took_s)
            phase = Phase(
                duration_s=took_s, transactions=1, failures={}, tps=1 / took_s, latency_us=Latency.model_validate(times)
            )
            trial = trial.model_copy(update={"measured": phase, "job": job})
        made.append(trial)
    return made


def data_of(plan: Plan, trials: list[Trial], tmp_path) -> StudyData:
    (tmp_path / "index.sql").write_text(SCRIPT)
    spec = build_study(
        {"load": {"workload": "job:index.sql"}, "arms": {arm: {} for arm in plan.arms}}, "test", tmp_path
    )
    return StudyData(spec, plan, trials, {}, verdict_of(plan, trials))


def test_the_verdict_is_about_the_time_of_the_job():
    plan = plan_of()
    result = verdict_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": 16.0}))
    (claim,) = result.primary
    assert claim.verdict == "better"
    assert claim.difference is not None
    assert claim.difference.value == pytest.approx(0.25, abs=0.01), "four fifths of the time"
    short = brief(result, plan)
    assert short.headlines[0].text.startswith("512MB is 2")
    assert short.headlines[0].text.endswith("% faster than 16MB")
    assert re.fullmatch(r"1[56]\.\d s against (19|20)\.\d s", short.headlines[0].lines[0].text)
    assert short.measured.startswith("time of the job, job index.sql, scale 10; 11 blocks of 2 x one run of the job")


def test_a_job_that_did_not_end_has_the_worst_rank():
    plan = plan_of()
    result = verdict_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": None}))
    assert result.primary[0].verdict == "worse"
    assert result.failures_lead == ["512MB"]


def test_equal_times_get_no_verdict_of_a_difference():
    plan = plan_of()
    assert verdict_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": 20.0})).primary[0].verdict in (
        "undecided",
        "equivalent",
    )


def test_wal_size_and_memory_are_claims_where_they_are_declared():
    plan = plan_of("time", "wal", "size", "memory", blocks=20)
    result = verdict_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": 16.0}))
    claims = {row.metric: row for row in result.metrics}
    assert (claims["time"].primary, claims["time"].unit, claims["time"].verdict) == (True, "s", "better")
    assert claims["time"].values["512MB"] == pytest.approx(16.0, rel=0.02)
    assert (claims["wal"].unit, claims["wal"].verdict) == ("MB", "better"), "less is better"
    assert claims["wal"].difference.value == pytest.approx(-0.1, abs=0.01)
    assert claims["wal"].values["16MB"] == pytest.approx(100, rel=0.02)
    assert claims["size"].verdict == "equivalent"
    assert claims["size"].values == {"16MB": 1250.0, "512MB": 1250.0}
    (wal,) = [line.text for line in brief(result, plan).headlines[0].lines if line.text.startswith("wal ")]
    assert re.fullmatch(r"wal \d+(\.\d)? MB against \d+(\.\d)? MB, -\d.*, better", wal)


def test_costs_that_moved_with_the_time_are_those_of_a_job():
    plan = plan_of(blocks=12)
    trials = [
        trial.model_copy(update={"server_deltas": {"wal": {"wal_bytes": trial.job.wal_bytes}}})
        for trial in trials_of(plan, {"16MB": 20.0, "512MB": 16.0})
        if trial.job is not None
    ]
    (moved,) = verdict_of(plan, trials).moved
    assert moved.startswith("Costs per job, 512MB against 16MB: WAL -")


def test_memory_that_is_not_known_is_no_claim():
    plan = plan_of("time", "memory", blocks=12)
    result = verdict_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": 16.0}, memory=None))
    memory = result.metrics[1]
    assert memory.verdict == "withheld"
    assert memory.withheld == "peak memory of the server is not known of 24 of 24 trials, such as one of 512MB"


def test_the_load_beside_a_job_has_a_claim_of_its_own():
    plan = plan_of("time", "p99", blocks=12)

    def beside(trial: Trial) -> Trial:
        p99 = 40_000.0 * (1.5 if trial.arm == "512MB" else 1.0) * math.exp(0.001 * trial.index)
        latency = Latency.model_validate({**dict.fromkeys(Latency.model_fields, 2000.0), "p99": p99})
        served = Phase(duration_s=20.0, transactions=12_000, failures={}, tps=600.0, latency_us=latency)
        assert trial.job is not None
        return trial.model_copy(update={"job": trial.job.model_copy(update={"beside": served})})

    trials = [beside(trial) for trial in trials_of(plan, {"16MB": 20.0, "512MB": 16.0})]
    time, p99 = verdict_of(plan, trials).metrics
    assert (time.metric, time.verdict) == ("time", "better")
    assert (p99.metric, p99.verdict, p99.unit) == ("p99", "worse", "us")
    assert p99.difference.value == pytest.approx(0.5, abs=0.02)

    unknown = [trials[0].model_copy(update={"job": trials[0].job.model_copy(update={"beside": None})}), *trials[1:]]
    assert verdict_of(plan, unknown).metrics[1].withheld.startswith("p99 response time is not known of 1 of 24 trials")


def test_the_report_has_the_job_and_no_throughput(tmp_path):
    plan = plan_of()
    parts = sections(data_of(plan, trials_of(plan, {"16MB": 20.0, "512MB": 16.0}), tmp_path))
    keys = [part.topic.key for part in parts]
    assert keys[0] == "job"
    assert not {"tps", "latency", "timeline", "costs"} & set(keys)
    (table,) = parts[0].tables
    first = dict(zip(table.heads, table.rows[0], strict=True))
    assert first["median, s"] in ("19.9", "20.0", "20.1")
    assert (first["growth, MB"], first["size then, MB"], first["peak memory, MB"]) == ("250.0", "1,250.0", "200.0")
    assert first["trials"] == "11"
    assert "beside" not in table.caption.lower()


@pytest.mark.parametrize(
    ("workload", "metrics", "says"),
    [
        ("job:index.sql", ["p99"], 'metrics: "p99" is not for a job; write time, wal, size, memory'),
        ("job:index.sql", ["tps"], 'metrics: "tps" is not for a job; write time, wal, size, memory'),
        ("select-only", ["wal"], 'metrics: "wal" is for jobs alone (workload = "job:FILE.sql"); leave it out'),
    ],
)
def test_metrics_of_other_loads_are_refused(tmp_path, workload, metrics, says):
    (tmp_path / "index.sql").write_text(SCRIPT)
    study = {"load": {"workload": workload}, "arms": {"a": {}, "b": {}}, "verdict": {"metrics": metrics}}
    with pytest.raises(StudyError) as refused:
        build_study(study, "test", tmp_path)
    assert says in str(refused.value)
