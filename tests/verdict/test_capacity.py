"""Claims on the capacity: by the same rule as all others."""

from __future__ import annotations

import math

import pytest

from pgtrial.statistics import p8
from pgtrial.verdict.declared import declared_metric
from tests.verdict.capacities import POINT, capacity_plan, trials_of
from tests.verdict.studies import verdict_of


def noisy(planned, factor: float) -> float:
    return 1000 * (1 + 0.002 * (planned.index % 7)) * (factor if planned.arm == "off" else 1.0)


@pytest.mark.parametrize(("factor", "word"), [(0.9, "worse"), (1.1, "better")])
def test_a_higher_capacity_is_better(factor, word):
    plan = capacity_plan()
    result = verdict_of(plan, trials := trials_of(plan, lambda planned: noisy(planned, factor)))
    (claim,) = result.primary
    assert claim.verdict == word
    assert result.sentences[0].startswith("capacity of off is ")
    of = {(trial.block, trial.arm): trial.capacity for trial in trials}
    logs = [math.log(of[block, "off"] / of[block, "on"]) for block in range(12)]
    by_hand = p8.decide(logs, plan.margin, claims=1, planned=plan.looks).readings[-1].interval
    assert claim.difference is not None
    assert math.log1p(claim.difference.value) == pytest.approx(by_hand.estimate)
    (row,) = result.metrics
    assert (row.metric, row.unit, row.better, row.primary) == ("capacity", "1/s", "more", True)
    assert row.values["on"] == pytest.approx(1000, rel=0.02)


def test_equal_capacities_get_no_verdict():
    plan = capacity_plan()
    result = verdict_of(plan, trials_of(plan, lambda planned: 1000 * (1 + 0.03 * ((7 * planned.index) % 5 - 2))))
    assert result.primary[0].verdict in ("undecided", "equivalent")


def test_a_level_is_the_median_capacity_with_an_interval():
    plan = capacity_plan()
    level = verdict_of(plan, trials_of(plan, lambda planned: 1000.0 + planned.block)).levels[0]
    assert level.tps is not None
    assert (level.tps.median, level.tps.lowest, level.tps.highest) == (1005.5, 1000, 1011)
    assert level.tps_low is not None
    assert level.tps_high is not None
    assert 1000 <= level.tps_low < 1005.5 < level.tps_high <= 1011


def test_a_trial_in_which_no_rate_keeps_the_promise_has_the_worst_rank():
    plan = capacity_plan()
    trials = trials_of(plan, lambda planned: None if planned.arm == "off" else 1000.0)
    assert {declared_metric(plan, "capacity").value(trial) for trial in trials} == {0.0, 1000.0}
    assert verdict_of(plan, trials).primary[0].verdict == "worse"


def test_too_few_transactions_beyond_the_percentile_withhold_the_verdict():
    plan = capacity_plan()
    few = verdict_of(plan, trials_of(plan, lambda planned: noisy(planned, 0.9), transactions=4000))
    assert few.primary[0].verdict == "withheld"
    assert any("100 transactions beyond the percentile" in finding.message for finding in few.findings)
    enough = verdict_of(plan, trials_of(plan, lambda planned: noisy(planned, 0.9), transactions=5000))
    assert enough.primary[0].verdict == "worse"


CEILING = POINT.model_copy(update={"capacity": POINT.capacity.model_copy(update={"at_most": 500.0})})


def at_most_500(on: float, off: float):
    plan = capacity_plan()
    plan = plan.model_copy(update={"load_points": [CEILING]})
    return verdict_of(plan, trials_of(plan, lambda planned: on if planned.arm == "on" else off), seconds={})


def test_arms_that_both_reach_the_rate_allowed_are_not_called_alike():
    result = at_most_500(500.0, 500.0)
    [finding] = [finding for finding in result.findings if finding.rule == "ceiling"]
    assert (finding.severity, finding.arms) == ("withhold", ["off"])
    assert "on and off kept the promise at 500/s, the highest rate that the study allows" in finding.message
    assert result.primary[0].verdict == "withheld"


def test_an_arm_that_alone_reaches_the_rate_allowed_is_better_by_at_least_what_is_shown():
    result = at_most_500(400.0, 500.0)
    [finding] = [finding for finding in result.findings if finding.rule == "ceiling"]
    assert (finding.severity, finding.arms) == ("warning", ["off"])
    assert "and the difference larger" in finding.message
    assert result.primary[0].verdict == "better"
    assert not [finding for finding in at_most_500(400.0, 450.0).findings if finding.rule == "ceiling"]
