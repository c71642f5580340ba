"""Tests on real servers of whether a load used what its arms differ in, judged by counters, statements and
their plans.
"""

from __future__ import annotations

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.report.build import build_report
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

SCRIPT = """\\set low random(1, 1000)
SELECT aid FROM pgbench_accounts ORDER BY filler, abalance, aid OFFSET 99990;
SELECT count(*) FROM pgbench_accounts JOIN pgbench_tellers ON tid = aid % 10 + 1 WHERE aid > :low;
"""

IDLE = {
    "random_page_cost": "1.1",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "wal_compression": "on",
    "max_wal_size": "4GB",
    "commit_delay": "100",
    "effective_io_concurrency": "2",
    "shared_buffers": "64MB",
    "temp_buffers": "16MB",
    "autovacuum_naptime": "20s",
}


@pytest.fixture
def run(tmp_path, workspace):
    require_engine()
    require_server(18)

    def run_of(arms, **load):
        named = {name: {"settings": settings} for name, settings in arms.items()}
        server = {"settings": {**FAST, "shared_buffers": "32MB"}}
        study = small_study(tmp_path / "study", blocks=1, arms=named, load=load, folder=tmp_path, server=server)
        run_study(study, lambda event: None)
        result = build_report(study)
        assert [trial.reason for trial in study.trials() if trial.status == "failed"] == []
        return study, {one.arms[1]: one for one in result.findings if one.rule == "unused_difference"}

    return run_of


def test_settings_that_a_load_of_one_select_does_not_use_are_named(run):
    study, found = run({"base": {}, **{name: {name: value} for name, value in IDLE.items()}}, workload="select-only")
    assert sorted(found) == sorted(IDLE)
    assert {one.severity for one in found.values()} == {"warning"}
    assert {line for trial in study.trials() for one in trial.statements.values() for line in one.plan} == {
        "Index Scan using pgbench_accounts_pkey on pgbench_accounts",
        "  Index Cond: (aid = $1)",
    }


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_settings_that_a_load_uses_are_not_named_and_plans_that_differ_are_shown(run, tmp_path, protocol):
    (tmp_path / "sort.sql").write_text(SCRIPT)
    arms = {
        "base": {"work_mem": "1MB", "max_parallel_workers_per_gather": "0"},
        "memory": {"work_mem": "64MB", "max_parallel_workers_per_gather": "0"},
        "merge": {"work_mem": "1MB", "enable_hashjoin": "off", "max_parallel_workers_per_gather": "0"},
        "parallel": {
            "work_mem": "1MB",
            "max_parallel_workers_per_gather": "2",
            "parallel_setup_cost": "0",
            "parallel_tuple_cost": "0",
        },
    }
    study, found = run(arms, workload="sort.sql", protocol=protocol, duration="4s", clients=1)
    assert found == {}
    page = (study.path / "report.md").read_text()
    assert "Hash Join" in page
    assert "Merge Join" in page or "Nested Loop" in page


def test_writes_are_use_of_what_governs_them(run):
    arms = {
        "base": {},
        "asynchronous": {"synchronous_commit": "off"},
        "images": {"full_page_writes": "off"},
        "join": {"enable_hashjoin": "off"},
    }
    _, found = run(arms, workload="tpcb-like", duration="4s")
    assert sorted(found) == ["join"]


def test_arms_that_share_a_server_have_its_counters_and_plans_of_their_own(run):
    study, found = run({"base": {}, "jit": {"jit": "off"}}, workload="select-only", interleave="auto")
    assert study.plan.interleaving is not None
    assert study.plan.shares_server
    first, second = sorted(study.trials(), key=lambda trial: not trial.shared_deltas)
    assert first.shared_deltas["database"]["xact_commit"] > 0
    assert second.shared_deltas == {}
    plans = [{text: (one.plan, one.chosen) for text, one in trial.statements.items()} for trial in (first, second)]
    assert plans[0] == plans[1] != {}
    assert sorted(found) == ["jit"]


PARTITIONED = """CREATE TABLE t (sid int8, c0 int8, c1 int8, c2 int8) PARTITION BY RANGE (sid);
CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (1);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (2);
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (2) TO (3);
INSERT INTO t SELECT i % 3, i, i, i FROM generate_series(1, 600000) i;
"""


@pytest.fixture
def partitioned(tmp_path, run):
    """Runs arms on a table with three partitions of 13 MB, by a script whose statement is prepared."""
    (tmp_path / "data.sql").write_text(PARTITIONED)
    (tmp_path / "scan.sql").write_text("\\set sid random(0, 2)\nSELECT count(*) FROM t WHERE sid = :sid AND c0 < 0;\n")

    def run_of(**arms):
        load = {"data": "data.sql", "workload": "scan.sql", "protocol": "prepared", "clients": 2, "duration": "4s"}
        return run({"base": {}, **arms}, **load)

    return run_of


def test_sequential_scans_of_partitions_that_the_values_choose_are_use_of_asynchronous_reads(partitioned):
    study, found = partitioned(sync={"io_method": "sync"}, narrow={"effective_io_concurrency": "1"})
    assert found == {}
    for trial in study.trials():
        (statement,) = trial.statements.values()
        assert sum("Seq Scan on t" in line for line in statement.plan) == 1, statement
        assert trial.server_deltas["tables"]["rows_read_sequentially"] >= 200_000


def test_arms_that_plan_otherwise_have_each_the_plan_that_they_take(partitioned):
    study, found = partitioned(
        generic={"plan_cache_mode": "force_generic_plan"}, custom={"plan_cache_mode": "force_custom_plan"}
    )
    assert "generic" not in found
    kinds = {trial.arm: statement.chosen for trial in study.trials() for statement in trial.statements.values()}
    assert kinds == {"base": "custom", "generic": "generic", "custom": "custom"}
    assert "plan_cache_mode (every statement that was seen is planned in the same way)" in found["custom"].message
    result = build_report(study)
    (plan,) = result.plans
    assert (plan.arm, plan.at_baseline.partition(":")[0], plan.at_arm.partition(":")[0]) == (
        "generic",
        "custom plan",
        "generic plan",
    )
    (anew,) = [finding for finding in result.findings if finding.rule == "planned_each_time"]
    assert anew.arms == ["base", "generic"]
    page = (study.path / "report.md").read_text()
    assert "        Filter: ((c0 < 0) AND (sid = $1))" in page
    assert "custom plan (not taken):" in page


def test_an_index_on_a_column_that_changes_shows_in_the_updates_that_are_hot(tmp_path, workspace):
    require_engine()
    require_server(15)
    (tmp_path / "data.sql").write_text(
        "CREATE TABLE counter (id int PRIMARY KEY, requests int NOT NULL) WITH (fillfactor = 20);\n"
        "INSERT INTO counter SELECT i, 0 FROM generate_series(1, 500) i;\n"
    )
    (tmp_path / "count.sql").write_text(
        "\\set id random(1, 500)\nUPDATE counter SET requests = requests + 1 WHERE id = :id;\n"
    )
    study = small_study(
        tmp_path / "study",
        blocks=1,
        folder=tmp_path,
        load={"data": "data.sql", "workload": "count.sql", "duration": "5s"},
        server={"postgres": "15"},
        arms={"plain": {}, "indexed": {"setup_sql": ["CREATE INDEX ON counter (requests)"]}},
    )
    run_study(study, lambda event: None)
    medians = {(cost.what, cost.arm): cost.median for cost in build_report(study).costs}
    assert medians["updates that are not HOT", "indexed"] == 100
    assert medians["updates that are not HOT", "plain"] < 50
    # the counters start up to a second before the measured part, or after its begin where the lab is late
    assert 0.1 < medians["dead rows", "plain"] < 2.5
