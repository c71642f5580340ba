"""Tests of findings on rolled back transactions and failed statements that the load does not report itself."""

from __future__ import annotations

import pytest

from pgtrial.model.records.load_point import LoadPoint
from tests.verdict.studies import findings_over

from .cases import facts, plan_of, trials_of

LUA = {"sysbench": True, "workload": "own.lua"}
PROGRAMS = {"programs": True, "workload": "client-programs"}


def found(change, point=None, *, shared=False, blocks=6, faster=()):
    plan = plan_of(blocks=blocks)
    if point is not None:
        points = [LoadPoint.model_validate({**plan.load_points[0].model_dump(), **point})]
        plan = plan.model_copy(update={"load_points": points})
    if shared:
        alternating = {"slice_s": 0.25, "shared_server": True}
        plan = type(plan).model_validate({**plan.model_dump(), "interleaving": alternating})

    def changed(trial):
        updates = change(trial)
        of_phase = {"retries": 0, **updates.pop("measured", {})}
        speed = 2.0 if trial.arm in faster else 1.0
        tps = {"tps": trial.measured.tps * speed, "transactions": round(trial.measured.transactions * speed)}
        return {**updates, "measured": trial.measured.model_copy(update={**tps, **of_phase})}

    findings = findings_over(plan, facts(), trials_of(plan, changed))
    return [one for one in findings if one.rule == "hidden_failures"]


def counters(commits, rollbacks):
    return {"database": {"xact_commit": commits, "xact_rollback": rollbacks}}


def rolled_back(arm, rollbacks, **measured):
    return lambda trial: {
        "server_deltas": counters(10_000, rollbacks if trial.arm == arm else 0),
        "measured": measured if trial.arm == arm else {},
    }


def test_an_arm_that_is_faster_and_hides_failures_has_no_verdict():
    [one] = found(rolled_back("B", 5000), faster=["B"])
    assert (one.severity, one.arms) == ("withhold", ["A", "B"])
    assert "In B 33% of the transactions were rolled back" in one.message
    assert "and 0% in A" in one.message


def test_an_arm_that_is_slower_and_hides_failures_is_a_warning():
    assert [one.severity for one in found(rolled_back("B", 5000), faster=["A"], blocks=12)] == ["warning"]


@pytest.mark.parametrize(
    "measured",
    [{"failures": {"40001": 5000}}, {"retries": 5000}, {"retries": 2000, "failures": {"40001": 3000}}],
    ids=["failed", "tried again", "both"],
)
def test_what_the_load_reports_is_not_hidden(measured):
    assert found(rolled_back("B", 5000, **measured), faster=["B"]) == []


def test_equal_shares_and_rare_accidents_are_nothing():
    assert found(lambda trial: {"server_deltas": counters(9000, 1000)}, faster=["B"]) == []
    assert found(rolled_back("B", 9), faster=["B"]) == []
    unsteady = {0: 0, 1: 4000, 2: 0, 3: 10, 4: 0, 5: 3}
    assert found(lambda trial: {"server_deltas": counters(9000, unsteady[trial.block])}, faster=["B"]) == []
    once = {0: 0, 1: 0, 2: 40, 3: 0, 4: 0, 5: 0}
    assert found(lambda trial: {"server_deltas": counters(9000, once[trial.block] * (trial.arm == "B"))}) == []


def test_a_trial_that_is_older_than_the_rule_says_nothing():
    assert found(rolled_back("B", 5000, retries=None), faster=["B"]) == []


def test_errors_of_a_script_are_those_that_the_engine_has_seen():
    def failing(trial):
        return {"measured": {"statement_errors": trial.measured.transactions if trial.arm == "B" else 0}}

    [one] = found(failing, LUA, faster=["B"])
    assert (one.severity, "50% of the transactions had statements that failed" in one.message) == ("withhold", True)
    assert found(failing, {"sysbench": True, "workload": "oltp_read_write"}, faster=["B"]) == []


def test_of_programs_that_share_a_server_nobody_knows_whose_failures_they_are():
    def sharing(rollbacks):
        return lambda trial: {"shared_deltas": counters(1000, rollbacks) if trial.arm == "A" else {}}

    [one] = found(sharing(500), PROGRAMS, shared=True, faster=["B"])
    assert (one.severity, one.arms) == ("withhold", ["A", "B"])
    assert "33% of the transactions on the server" in one.message
    assert "share_server = false" in one.cure
    assert found(sharing(0), PROGRAMS, shared=True, faster=["B"]) == []
    assert found(sharing(500), shared=True, faster=["B"]) == [], "the engine reports what fails in a script"
