"""A study of the workload order-entry on real servers with the real engine: its data, its checks, and its slices."""

from __future__ import annotations

import re

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.report.data import read_data
from pgtrial.report.table import NONE
from pgtrial.report.tables.tasks import transaction_tables
from pgtrial.servers.arm import Needs
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import FAST, small_study, templates_with
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server


KEEP = (
    "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.d_ytd = old.d_ytd; RETURN new; END $$",
    "CREATE TRIGGER keep BEFORE UPDATE ON district FOR EACH ROW EXECUTE FUNCTION keep()",
)
"""A trigger that undoes each update of d_ytd, so that the district's yearly sum never grows."""

LOAD = {"workload": "order-entry", "scale": 1, "clients": 3, "max_tries": 0, "check": True, "duration": "2s"}


@pytest.fixture(scope="module")
def study(tmp_path_factory, workspace):
    """Returns a study after one block, read again from disk. The trigger makes one of its two arms lose updates."""
    require_engine()
    require_server(18)
    arms = {"sound": {}, "broken": {"setup_sql": [*KEEP]}}
    created = small_study(tmp_path_factory.mktemp("orders") / "results", blocks=1, load=LOAD, arms=arms)
    run_study(created, lambda event: None)
    return StudyDirectory.open(created.path)


def test_a_trial_whose_conditions_hold_is_complete(study):
    (trial,) = [trial for trial in study.trials() if trial.arm == "sound"]
    assert (trial.status, trial.reason) == ("completed", None)
    assert trial.measured is not None
    assert trial.measured.transactions > 0
    assert trial.phases_s["check"] > 0
    assert [kind.name for kind in trial.kinds][:2] == ["new-order", "payment"]
    assert sum(kind.transactions for kind in trial.kinds) >= trial.measured.transactions
    assert trial.kinds[0].latency_us is not None
    assert trial.kinds[0].latency_us.p90 >= trial.kinds[0].latency_us.p50
    assert trial.relations_before["stock"]["live_tuples"] == pytest.approx(100_000, rel=0.01)


def test_a_condition_that_does_not_hold_after_the_load_fails_the_trial_with_both_sums(study):
    (trial,) = [trial for trial in study.trials() if trial.arm == "broken"]
    assert trial.status == "failed"
    assert trial.reason is not None
    told = (
        r"after the load condition 1 does not hold for warehouse 1: W_YTD = sum\(D_YTD\), but (\S+) is not 300000\.00 "
    )
    found = re.match(told, trial.reason)
    assert found is not None, trial.reason
    assert float(found[1]) > 300_000
    others = ", and 1 more condition does not hold"
    assert trial.reason.endswith(others), "condition 9 compares the districts with the history"


def test_the_report_has_each_transaction(study):
    (table,) = transaction_tables(read_data(study))
    assert [row[0] for row in table.rows] == [
        "new-order",
        "payment",
        "order-status",
        "delivery",
        "stock-level",
        "new-order, rolled back",
    ]
    assert float(table.rows[0][1].replace(",", "")) > 0
    assert table.rows[0][5] == NONE, "the other arm has no completed trial"


def test_its_data_is_kept_as_a_template(study, workspace):
    (data,) = Needs.of(study.design).data
    assert len(templates_with(workspace.templates, data)) == 1


def test_it_takes_turns_as_pgbenchs_workloads_do_with_procedures_too(tmp_path, workspace):
    require_engine()
    require_server(18)
    load = {**LOAD, "interleave": "250ms", "rate": 60, "procedures": True}
    arms = {
        "cached": {"settings": {"plan_cache_mode": "auto"}},
        "planned": {"settings": {"plan_cache_mode": "force_custom_plan"}},
    }
    created = small_study(tmp_path / "results", blocks=1, load=load, arms=arms, server={"settings": FAST})
    run_study(created, lambda event: None)
    trials = StudyDirectory.open(created.path).trials()
    assert [(trial.status, trial.reason) for trial in trials] == [("completed", None)] * 2
    for trial in trials:
        assert trial.measured is not None
        assert trial.measured.service_us is not None
        # of the time of its slices; what a busy machine is late for is missing
        assert 0 < trial.measured.duration_s <= 2 + 1e-9
