"""Plans of loads whose statements no file lists: the engine lists what one client sends in a short run."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.evidence.observe import statements
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

NO_INDEX = {"enable_indexscan": "off", "enable_bitmapscan": "off", "enable_indexonlyscan": "off"}
SHORT = {"clients": 1, "warmup": "1s", "duration": "2s"}
TABLES = {"sysbench": {"tables": 1, "table_size": 20000}, **SHORT}


@pytest.fixture
def run(tmp_path, workspace):
    require_engine()
    require_server(18)

    def run_of(arm=None, **load):
        keys = {
            "load": load,
            "server": {"settings": FAST},
            "arms": {"base": {}, "other": {"settings": arm or {"jit": "off"}}},
            "verdict": {"blocks": 1},
        }
        spec = build_study(keys, "test", tmp_path)
        study = StudyDirectory.create(tmp_path / "study", spec, make_plan(spec, 11, "2026-11-20T14:12:00+00:00"))
        run_study(study, lambda event: None)
        assert [trial.reason for trial in study.trials() if trial.status == "failed"] == []
        return study

    return run_of


def plans_of(study, arm="base"):
    """Returns the statements of an arm that have a plan, each with its plan as one text."""
    (trial,) = [trial for trial in study.trials() if trial.arm == arm]
    return {text: "\n".join(one.plan) for text, one in trial.statements.items() if one.plan}


@pytest.mark.parametrize(("protocol", "chosen"), [("prepared", "generic"), ("simple", "literals")])
def test_the_verdict_names_the_plans_of_sysbench_that_an_arm_without_index_scans_changes(run, protocol, chosen):
    study = run(NO_INDEX, workload="oltp_read_write", protocol=protocol, **TABLES)
    base, other = plans_of(study), plans_of(study, "other")
    assert base.keys() == other.keys()
    assert len(base) == 9, "five SELECTs, two UPDATEs, DELETE, INSERT"
    point = next(text for text in base if text.startswith("SELECT c FROM sbtest1 WHERE id="))
    assert "Index Scan using sbtest1_pkey" in base[point]
    assert "Seq Scan on sbtest1" in other[point]
    trials = study.trials()
    assert {trial.statements[point].chosen for trial in trials if trial.arm == "base"} == {chosen}
    assert not any(trial.statements_left_out for trial in trials)
    differing = {plan.statement: (plan.at_baseline, plan.at_arm) for plan in build_report(study).plans}
    assert any("sbtest1" in text and "Seq Scan on sbtest1" in at_arm for text, (_, at_arm) in differing.items())


LUA = """function event()
   local con = sysbench.sql.driver():connect()
   con:query("SELECT pad FROM sbtest1 WHERE k < " .. sysbench.rand.uniform(1, 100))
   local stmt = con:prepare("SELECT c FROM sbtest1 WHERE id = ?")
   local id = stmt:bind_create(sysbench.sql.type.INT)
   stmt:bind_param(id)
   id:set(sysbench.rand.uniform(1, 100))
   stmt:execute()
   con:disconnect()
end
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE sbtest1 (id int PRIMARY KEY, k int, c text, pad text)")
   con:query("INSERT INTO sbtest1 SELECT i, i, 'c', 'pad' FROM generate_series(1, 1000) i")
end
"""


def test_statements_of_a_lua_script_have_plans_and_may_not_be_all(run, tmp_path):
    (tmp_path / "own.lua").write_text(LUA)
    study = run(workload="own.lua", protocol="prepared", **SHORT)
    assert sorted(plans_of(study)) == ["SELECT c FROM sbtest1 WHERE id = $1", "SELECT pad FROM sbtest1 WHERE k < ?"]
    assert all(trial.statements_left_out for trial in study.trials())


def test_order_entry_has_plans(run):
    plans = plans_of(run(workload="order-entry", scale=1, **SHORT, max_tries=0, check=True))
    assert any("district" in text for text in plans)
    assert any("stock" in text for text in plans)


def test_tasks_have_plans(run):
    tasks = {"apps": 2, "tasks": 40, "pool": 3, "threads_in_table": 2, "rows": 100}
    study = run(workload="app-tasks", tasks=tasks)
    first, second = sorted(plans_of(study))
    assert first.startswith("SELECT a_value FROM table_a")
    assert second.startswith("UPDATE table_a")
    assert not any(trial.statements_left_out for trial in study.trials())


def test_more_statements_than_are_explained_are_told(run, monkeypatch):
    monkeypatch.setattr("pgtrial.conduct.trial.load_statements.MOST_STATEMENTS", 3)
    assert statements.MOST_STATEMENTS == 40
    study = run(workload="oltp_read_write", **TABLES)
    assert len(plans_of(study)) == 3
    for trial in study.trials():
        assert trial.statements_left_out
        assert "only the first 3 statements of the load have plans; 6 more are not explained" in trial.notes
