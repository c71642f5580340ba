"""Metrics that the user of a study defines: which are compared, in which order, and what is refused."""

from __future__ import annotations

import pytest

from pgtrial.cli.compare import compare_command
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.store.study_file import build_study

ARMS = {"off": {}, "on": {"settings": {"jit": "on"}}}
NOPM = {"pattern": r"achieved (\d+) NOPM"}


def harness(reads, verdict=None, command="sh bench.sh", **job):
    load = {"workload": "job:", "job": {"command": command, "reads": reads, **job}}
    return build_study({"load": load, "arms": ARMS, "verdict": {"blocks": 6, **(verdict or {})}}, "test")


def test_what_a_harness_prints_is_compared_in_place_of_its_time():
    spec = harness({"NOPM": NOPM, "slow": {"json_path": "p95", "unit": "ms", "better": "less"}})
    plan = make_plan(spec, 1, "now")
    assert plan.metrics == ["NOPM", "slow"]
    assert (plan.measure, plan.primary_metric) == ("NOPM", "NOPM")
    assert plan.own_metrics["slow"].model_dump() == {
        "unit": "ms",
        "better": "less",
        "source": "JSON path p95 in the output of the job",
    }
    assert Design(spec).claims == 1


def test_the_user_says_which_number_decides_and_none_is_left_out():
    reads = {"NOPM": NOPM, "slow": {"json_path": "p95"}}
    assert Design(harness(reads, {"metrics": ["time", "slow"]})).metrics == ["time", "slow", "NOPM"]


def test_a_study_of_a_harness_is_the_same_after_it_was_frozen():
    spec = harness({"a b": {"pattern": r'"rate": (\d+)\s', "file": "out.json"}})
    assert thaw(freeze(spec)) == spec
    assert " reads = " not in freeze(harness({}))


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ({"NOPM": {"pattern": "(a"}}, r"\[load\] job\.reads\.NOPM\.pattern: it is not a regular expression"),
        ({"NOPM": {"pattern": "(a)(b)"}}, "it has 2 groups, and only one can find the number"),
        ({"NOPM": {"pattern": "a", "json_path": "b"}}, "it has a pattern and a json_path; leave one of the two out"),
        ({"NOPM": {"unit": "ms"}}, "it does not say where the number is; write pattern"),
        ({"NOPM": {"patern": "a"}}, r"unknown key 'patern' in \[load\.job\.reads\.NOPM\]; did you mean 'pattern'\?"),
        ({"NOPM": {"pattern": "a", "better": "higher"}}, "must be 'more' or 'less'"),
        ({"tps": NOPM}, "tps is a metric of pgtrial's own; give yours another name"),
        ({"a,b": NOPM}, "'a,b' cannot be the name of a metric; use 1 to 40 letters"),
        ({"": NOPM}, "'' cannot be the name of a metric"),
    ],
)
def test_what_is_wrong_with_a_number_is_said(reads, said):
    with pytest.raises(StudyError, match=said):
        harness(reads)


def test_sql_prints_no_number(tmp_path):
    (tmp_path / "index.sql").write_text("VACUUM;")
    load = {"workload": "job:index.sql", "job": {"reads": {"NOPM": NOPM}}}
    with pytest.raises(StudyError, match=r"job.reads is for a command, and SQL prints nothing"):
        build_study({"load": load, "arms": ARMS}, "test", tmp_path)


def test_an_unknown_metric_is_answered_with_those_of_the_study():
    with pytest.raises(StudyError, match=r"\[verdict\] metrics: 'NOP' is not a metric; did you mean 'NOPM'\?"):
        harness({"NOPM": NOPM}, {"metrics": ["NOP"]})


def test_a_harness_of_the_command_line_is_that_of_a_study_file(monkeypatch):
    begun = []
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: begun.append(spec) or 0)
    compare_command(["jit=off", "jit=on"], command="sh bench.sh", reads=[r"NOPM=achieved (\d+)=NOPM", "slow=p95 (.*)"])
    (spec,) = begun
    assert spec.load.workload == ["job:"]
    assert spec.load.job.command == "sh bench.sh"
    assert {name: read.pattern for name, read in spec.load.job.reads.items()} == {
        "NOPM": r"achieved (\d+)=NOPM",
        "slow": "p95 (.*)",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"command": "sh bench.sh", "reads": ["NOPM"]},
            "--reads 'NOPM' does not consist of a name and a pattern; write for example",
        ),
        ({"command": "sh bench.sh", "reads": ["a=1", "a=2"]}, "--reads has a more than once"),
        ({"command": "sh bench.sh", "reads": ["a=(1"]}, "--reads: it is not a regular expression"),
        ({"reads": ["a=1"]}, r"--reads is for the workload job:FILE.sql|job is for the workload job:FILE.sql"),
        ({"command": "sh bench.sh", "reads": ["tps=1"]}, "--reads: tps is a metric of pgtrial's own"),
    ],
)
def test_options_of_a_harness_that_are_wrong_are_named(options, said):
    with pytest.raises(StudyError, match=said):
        compare_command(["jit=off", "jit=on"], **options)


DEAD = {"sql": "SELECT 1", "better": "less"}


def with_metrics(metrics, load=None, verdict=None, arms=ARMS):
    return build_study({"load": load or {}, "arms": arms, "verdict": verdict or {}, "metrics": metrics}, "test")


@pytest.mark.parametrize(
    ("load", "verdict", "metrics"),
    [
        ({}, {}, ["tps", "dead"]),
        ({"rate": 100}, {}, ["response", "dead"]),
        ({"rate": 100}, {"metrics": ["p99", "dead", "response"]}, ["p99", "dead", "response"]),
        ({}, {"metrics": ["wal per transaction"]}, ["wal per transaction", "dead"]),
        ({"capacity": {"p99": "20ms"}}, {}, ["capacity", "dead"]),
        ({"workload": "job:", "job": {"command": "true"}}, {}, ["time", "dead"]),
        ({"workload": "job:", "job": {"command": "true", "reads": {"NOPM": NOPM}}}, {}, ["NOPM", "dead"]),
    ],
)
def test_a_metric_of_the_study_follows_those_that_it_compares(load, verdict, metrics):
    assert Design(with_metrics({"dead": DEAD}, load, verdict)).metrics == metrics


def test_a_study_with_metrics_of_its_own_is_the_same_after_it_was_frozen():
    metrics = {"dead rows": DEAD, "lag": {"command": "sh lag.sh", "better": "less", "each_second": "max", "unit": "s"}}
    spec = with_metrics(metrics)
    assert thaw(freeze(spec)) == spec
    assert "[metrics" not in freeze(with_metrics({}))


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"dead": {"sql": "SELECT 1"}}, r"\[metrics\.dead\] better must be set"),
        ({"dead": {"better": "less"}}, r"write sql or command, and not both"),
        ({"dead": {**DEAD, "command": "true"}}, r"write sql or command, and not both"),
        ({"dead": {**DEAD, "pattern": "(a)"}}, "pattern and json_path are for a command"),
        ({"dead": {**DEAD, "each_second": "sum"}}, r"\[metrics\.dead\] each_second must be 'mean', 'max' or 'min'"),
        ({"dead": {**DEAD, "sqll": "x"}}, r"unknown key 'sqll' in \[metrics\.dead\]; did you mean 'sql'\?"),
        ({"dead": {"command": "psql password=x", "better": "less"}}, "this one has a password or token"),
        ({"dead": {**DEAD, "limit": "0s"}}, r"\[metrics\.dead\] limit must be greater than 0"),
        ({"p99": DEAD}, r"\[metrics\]: p99 is a metric of pgtrial's own; give yours another name"),
        ({"a,b": DEAD}, r"\[metrics\]: 'a,b' cannot be the name of a metric"),
    ],
)
def test_what_is_wrong_with_a_metric_is_said(metrics, said):
    with pytest.raises(StudyError, match=said):
        with_metrics(metrics)


def test_a_metric_is_not_for_loads_that_have_claims_of_their_own():
    with pytest.raises(StudyError, match=r"\[metrics\] are not for the workload app-tasks"):
        with_metrics({"dead": DEAD}, {"workload": "app-tasks"})
    with pytest.raises(StudyError, match=r"each_second is not for a study of capacity"):
        with_metrics({"dead": {**DEAD, "each_second": "max"}}, {"capacity": {"p99": "20ms"}})


def test_a_metric_has_one_definition():
    load = {"workload": "job:", "job": {"command": "true", "reads": {"NOPM": NOPM}}}
    with pytest.raises(StudyError, match=r"\[metrics\] and \[load.job\] reads both define NOPM"):
        with_metrics({"NOPM": DEAD}, load)


def test_a_metric_of_the_command_line_is_named_by_its_option(monkeypatch):
    begun = []
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: begun.append(spec) or 0)
    keys = ["metrics.dead.sql=SELECT 1", "metrics.dead.better=less"]
    compare_command(["jit=off", "jit=on"], keys=keys)
    assert begun[0].metrics["dead"].sql == "SELECT 1"
    with pytest.raises(StudyError, match=r"--set metrics\.dead\.better must be 'more' or 'less'"):
        compare_command(["jit=off", "jit=on"], keys=[keys[0], "metrics.dead.better=lower"])
