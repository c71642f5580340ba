"""Failed transactions count: whoever fails its slow ones is not faster, and what was cut off is not equal."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pgtrial.model.records.plan import Plan, Spending
from pgtrial.model.records.trial import Trial
from pgtrial.report.brief import brief
from pgtrial.report.gate.outcome import Rules, outcome
from pgtrial.statistics import p9
from tests.verdict.declared import at_the_rate, declaring, with_latency
from tests.verdict.studies import decision_of, exchanged, make_plan, noisy, run, verdict_of, ways
from tests.verdict.suite_trials import LIMIT_S, Query, run_suites


def by_p9(plan: Plan, claims: int = 1) -> Plan:
    """Returns the plan with the looks of a new study."""
    looks = p9.looks(plan.max_blocks, claims)
    return plan.model_copy(update={"spending": Spending(end=plan.max_blocks, kept=p9.KEPT), "looks": looks})


def with_failures(trial: Trial, code: str, failed: int) -> Trial:
    """Returns the trial with `failed` transactions in addition to its committed ones."""
    return trial.model_copy(update={"measured": trial.measured.model_copy(update={"failures": {code: failed}})})


def failing(share: float, speed: float, *, arm="off", seed=7):
    """Returns a change of trials at a rate: an arm fails a share of its transactions; the others take 1 ms / speed."""
    rng = np.random.default_rng(seed)

    def of(planned, trial: Trial) -> Trial:
        measured = trial.measured
        ours = planned.arm == arm
        mean = 1000 / (speed if ours else 1.0) * math.exp(0.02 * rng.standard_normal())
        failed = round(share * measured.transactions) if ours else 0
        latency = measured.latency_us.model_copy(update={"mean": mean})
        changes = {"latency_us": latency, "transactions": measured.transactions - failed}
        changes["failures"] = {"40001": failed} if failed else {}
        return trial.model_copy(update={"measured": measured.model_copy(update=changes)})

    return of


@pytest.mark.parametrize(
    ("share", "speed"),
    [(0.32, 1.26), (0.3, 29.0), (0.5, 1.0), (0.05, 1.34), (0.001, 1.3)],
    ids=["retries", "fails its slow ones", "fails half at once", "times out", "one of a thousand"],
)
def test_an_arm_that_fails_a_share_of_its_transactions_passes_nowhere(share, speed):
    plan = by_p9(declaring())
    result = verdict_of(plan, at_the_rate(plan, failing(share, speed)))
    assert result.primary[0].verdict not in ("better", "equivalent")
    assert result.failure_claims[0].verdict == "worse"
    assert result.exit_status == 1
    gate = outcome(result, plan, Rules(accept_undecided=True))
    assert gate.status == 1
    assert "off" in gate.reason
    assert [finding.arms for finding in result.findings if finding.rule == "unequal_failures"] == [["off"]]


def test_medians_of_committed_transactions_are_told_apart_from_the_difference():
    plan = by_p9(declaring())
    for share, told in ((0.1, "; in the difference, failed transactions count as the slowest"), (0, " ms")):
        result = verdict_of(plan, at_the_rate(plan, failing(share, 0.8)))
        [headline] = brief(result, plan, Path("results")).headlines
        [medians] = [line.text for line in headline.lines if line.label == "medians"]
        assert medians.endswith(told)


def test_in_a_closed_loop_an_arm_that_fails_its_slow_transactions_is_not_faster():
    plan = by_p9(make_plan(blocks=12))
    trials = run(plan, noisy({"off": 2.0}), failures={"off": {"40001": 4000}})
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "withheld"
    assert result.exit_status == 1
    assert "off failed" in " ".join(result.withheld)


def test_a_baseline_that_fails_its_slow_transactions_makes_no_other_arm_slower():
    plan = by_p9(make_plan(blocks=12))
    trials = run(plan, noisy({"on": 2.0}), failures={"on": {"40001": 4000}})
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "withheld"
    assert result.failure_claims[0].verdict == "better"
    assert result.exit_status == 2


def test_an_arm_that_is_slower_and_fails_more_is_worse():
    plan = by_p9(make_plan(blocks=12))
    result = verdict_of(plan, run(plan, noisy({"off": 0.5}), failures={"off": {"40001": 400}}))
    assert result.primary[0].verdict == "worse"
    assert result.exit_status == 1


def test_equal_shares_of_failures_are_no_difference_and_forbid_nothing():
    plan = by_p9(make_plan(blocks=12))
    rng = np.random.default_rng(1)
    trials = [
        with_failures(trial, "40001", int(rng.integers(30, 50))) for trial in run(plan, noisy({"off": 1.02}, sd=0.002))
    ]
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "better"
    assert result.primary[0].family == 2
    assert result.failure_claims[0].verdict == "undecided"
    assert result.exit_status == 0


def test_without_failures_the_speed_has_the_whole_error():
    plan = by_p9(make_plan(blocks=12))
    result = decision_of(plan, run(plan, noisy({"off": 1.5})))
    assert result.primary[0].family == 1
    assert result.failure_claims == []


def test_failures_in_some_blocks_alone_are_seen_by_their_share_of_all():
    plan = by_p9(make_plan(blocks=12, margin=0.02))
    trials = [
        with_failures(trial, "57014", trial.measured.transactions)
        if trial.arm == "off" and trial.block in (4, 9)
        else trial
        for trial in run(plan, noisy({"off": 1.5}))
    ]
    result = verdict_of(plan, trials)
    assert result.failure_claims[0].verdict == "undecided"
    assert result.primary[0].verdict == "withheld"


def test_equal_arms_with_failures_are_called_different_in_at_most_five_percent_of_all_orders():
    plan = by_p9(make_plan(blocks=8))
    rng = np.random.default_rng(3)
    trials = [with_failures(trial, "40001", int(rng.integers(0, 50))) for trial in run(plan, noisy({}))]
    orders = list(ways(8))
    called = 0
    for swapped in orders:
        result = decision_of(plan, exchanged(trials, swapped))
        words = {result.primary[0].verdict, result.failure_claims[0].verdict}
        called += bool(words & {"better", "worse"})
    assert called <= 0.05 * len(orders)


def test_a_study_that_was_planned_before_counts_as_it_did():
    plan = declaring()
    result = verdict_of(plan, at_the_rate(plan, failing(0.05, 1.34)))
    assert result.primary[0].verdict == "better"
    assert result.failure_claims == []


def test_a_percentile_that_falls_on_failures_in_both_arms_is_measured_in_neither():
    plan = by_p9(declaring("p99", "p50"))
    rng = np.random.default_rng(2)
    trials = at_the_rate(
        plan,
        lambda planned, trial: with_latency(
            trial,
            p50=1000 * math.exp(0.02 * rng.standard_normal()),
            p99=8000 * (1 if planned.arm == "on" else 3),
            failed=700,
        ),
    )
    result = verdict_of(plan, trials)
    assert result.metrics[0].verdict == "withheld"
    assert result.metrics[0].difference is None
    assert "so many transactions failed that p99 is one of them" in result.withheld[0]


def test_a_percentile_that_falls_on_failures_in_one_arm_alone_is_worse_there():
    plan = by_p9(declaring("p99"))
    trials = at_the_rate(plan, lambda planned, trial: with_latency(trial, failed=700 if planned.arm == "off" else 0))
    assert verdict_of(plan, trials).primary[0].verdict == "worse"


@pytest.mark.parametrize("cut", ["a", "b"])
def test_an_arm_whose_query_is_cancelled_is_not_better_by_its_others(cut):
    """The duration of a cancelled query is unknown, so that its arm cannot be called better. The other arm can."""
    rng = np.random.default_rng(9)

    def queries(planned):
        ours = planned.arm == cut
        timed = [Query((1 if ours else 10) * math.exp(0.005 * rng.standard_normal())) for _ in range(3)]
        return [Query(1000 * LIMIT_S if ours else 800 * LIMIT_S, over_limit=ours), *timed]

    plan, trials = run_suites(27, queries)
    plan = by_p9(plan, 4)
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "undecided"
    words = {claim.query: claim.verdict for claim in result.queries}
    assert words["q0"] == ("worse" if cut == "b" else "better")
    gate = outcome(result, plan, Rules())
    slower = "1 of 4 queries is slower: q0 (at least" if cut == "b" else "3 of 4 queries are slower: q"
    assert (gate.status, gate.reason.startswith(slower)) == (1, True), "a query that is slower for certain fails it"


def test_queries_that_are_cancelled_in_both_arms_are_not_equal():
    rng = np.random.default_rng(8)

    def queries(_):
        timed = [Query(100 * math.exp(0.005 * rng.standard_normal())) for _ in range(3)]
        return [Query(1000 * LIMIT_S, over_limit=True), *timed]

    plan, trials = run_suites(27, queries)
    result = verdict_of(by_p9(plan, 4), trials)
    words = {claim.query: claim.verdict for claim in result.queries}
    assert words["q0"] == "undecided"
    assert words[None] == "undecided"
    assert {words["q1"], words["q2"], words["q3"]} == {"equivalent"}
    assert result.exit_status == 2


def test_a_query_that_is_cancelled_in_one_arm_alone_is_slower_there_and_never_equal():
    rng = np.random.default_rng(8)

    def queries(planned):
        if planned.arm == "a":
            return [Query(990 * LIMIT_S), Query(100 * math.exp(0.005 * rng.standard_normal()))]
        return [Query(1000 * LIMIT_S, over_limit=True), Query(100 * math.exp(0.005 * rng.standard_normal()))]

    plan, trials = run_suites(27, queries)
    result = verdict_of(by_p9(plan, 2).model_copy(update={"margin": 0.05}), trials)
    words = {claim.query: claim.verdict for claim in result.queries}
    assert words["q0"] in ("worse", "better")
    assert words[None] in ("worse", "better", "undecided")
