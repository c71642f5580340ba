"""Whether a load used what its arms differ in, on real servers: by counters, statements and their plans."""

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
    study, found = run(
        {"base": {}, **{name: {name: value} for name, value in IDLE.items()}}, workload="select-only", duration="1s"
    )
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
    study, found = run(arms, workload="sort.sql", protocol=protocol, duration="2s", clients=1)
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
    _, found = run(arms, workload="tpcb-like")
    assert sorted(found) == ["join"]


def test_arms_that_share_a_server_have_its_counters_and_plans_of_their_own(run):
    study, found = run({"base": {}, "jit": {"jit": "off"}}, workload="select-only", interleave="auto")
    assert study.plan.interleaving is not None
    assert study.plan.shares_server
    first, second = sorted(study.trials(), key=lambda trial: not trial.shared_deltas)
    assert first.shared_deltas["database"]["xact_commit"] > 0
    assert second.shared_deltas == {}
    assert first.statements == second.statements != {}
    assert sorted(found) == ["jit"]
