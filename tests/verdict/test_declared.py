"""Metrics that a study declares: the first is the primary claim, the others share an error, and each has to stand."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from pgtrial.model.metrics import METRICS, transactions_for
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import MetricClaim, StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8
from pgtrial.verdict.claims import decided_arms
from pgtrial.verdict.grid import Grid
from tests.verdict.declared import at_the_rate, declaring, with_latency, with_wal
from tests.verdict.studies import exchanged, noisy, run, verdict_of


def claim_on(result: StudyResult, metric: str, arm: str = "off") -> MetricClaim:
    return next(row for row in result.metrics if (row.metric, row.arm) == (metric, arm))


def stalled(plan: Plan, *, p99: float = 1.25, p50: float = 1.0, sd: float = 0.01) -> list[Trial]:
    """Returns trials in which the arm's percentiles are `p99` and `p50` times the baseline's, with noise."""
    rng = np.random.default_rng(3)

    def factor(planned, times: float) -> float:
        return (times if planned.arm != plan.baseline else 1.0) * math.exp(sd * rng.standard_normal())

    return at_the_rate(
        plan,
        lambda planned, trial: with_latency(trial, p50=1000 * factor(planned, p50), p99=8000 * factor(planned, p99)),
    )


def test_the_first_metric_is_the_primary_claim_and_its_difference_is_one_of_values():
    plan = declaring("p99", "p50", "response")
    result = verdict_of(plan, stalled(plan))
    claim = result.primary[0]
    assert claim.verdict == "worse"
    assert claim.difference is not None
    assert claim.difference.low is not None
    assert claim.difference.high is not None
    assert claim.difference.low < claim.difference.value < claim.difference.high
    assert claim.difference.value == pytest.approx(0.25, abs=0.01)
    assert result.exit_status == 1
    assert re.match(r"p99 of off is 2[45]\.\d% higher than that of on \(p99 response time, ", result.sentences[0])
    assert claim_on(result, "p50").verdict != "worse"
    primary = claim_on(result, "p99")
    assert (primary.primary, primary.verdict, primary.difference) == (True, "worse", claim.difference)
    assert primary.values["off"] == pytest.approx(10_000, rel=0.02)
    assert primary.unit == "us"


def test_a_lower_percentile_is_better():
    plan = declaring("p99")
    result = verdict_of(plan, stalled(plan, p99=0.8))
    assert result.primary[0].verdict == "better"
    assert re.match(r"p99 of off is (19|20)\.\d% lower than that of on", result.sentences[0])
    assert result.exit_status == 0


def test_within_the_margin_the_interval_of_values_is_equivalent():
    plan = declaring("p99").model_copy(update={"margin": 0.05})
    result = verdict_of(plan, stalled(plan, p99=1.0, sd=0.005))
    claim = result.primary[0]
    assert claim.difference is not None
    assert claim.difference.low is not None
    assert claim.difference.high is not None
    assert -0.05 < claim.difference.low < claim.difference.high < 0.05
    assert claim.verdict in ("equivalent", "better", "worse")
    assert claim.within_margin
    assert claim.established_margin == pytest.approx(max(-claim.difference.low, claim.difference.high))


def test_the_other_metrics_share_the_error_of_each_look_over_all_arms():
    plan = declaring("response", "p50", "p99", arms=("on", "off", "old"), blocks=18)
    result = verdict_of(plan, stalled(plan))
    rows = [row for row in result.metrics if not row.primary]
    assert [(row.arm, row.metric) for row in rows] == [
        ("off", "p50"), ("off", "p99"), ("old", "p50"), ("old", "p99"),
    ]  # fmt: skip
    assert {row.claims for row in rows} == {4}
    values = [
        math.log(base.measured.latency_us.p99 / arm.measured.latency_us.p99)
        for base, arm in (Grid(plan, stalled(plan)).pair(block, 0, "off") for block in range(18))
        if base.measured is not None and arm.measured is not None
    ]
    by_hand = p8.decide([-value for value in values], plan.margin, claims=4, planned=plan.looks)
    shown = claim_on(result, "p99").difference
    assert shown is not None
    assert by_hand.shown is not None
    assert math.log1p(shown.value) == pytest.approx(-by_hand.shown.interval.estimate)
    assert math.log1p(shown.low) == pytest.approx(-by_hand.shown.interval.high)
    assert math.log1p(shown.high) == pytest.approx(-by_hand.shown.interval.low)


@pytest.mark.parametrize(("duration_s", "stands"), [(20.0, True), (19.9, False)])
@pytest.mark.parametrize("first", [True, False])
def test_a_percentile_stands_where_every_trial_has_100_slower_transactions(duration_s, stands, first):
    assert transactions_for("p99") == 10_000
    plan = declaring(*(("p99", "response") if first else ("response", "p99")), duration_s=duration_s)
    result = verdict_of(plan, stalled(plan))
    row = claim_on(result, "p99")
    assert (row.verdict != "withheld") == stands
    said = row.withheld if not first else " ".join(result.withheld)
    assert (said is None or not said) if stands else "p99 takes 100 slower transactions in every trial" in str(said)
    other = claim_on(result, "response")
    assert (other.verdict == "withheld") == (first and not stands)


def test_one_short_trial_is_enough_to_withhold_and_is_named():
    plan = declaring("response", "p99")
    trials = stalled(plan)
    measured = trials[5].measured
    assert measured is not None
    short = measured.model_copy(update={"transactions": 9_000})
    trials[5] = trials[5].model_copy(update={"measured": short})
    row = claim_on(verdict_of(plan, trials), "p99")
    assert row.verdict == "withheld"
    assert row.withheld == (
        f"p99 takes 100 slower transactions in every trial, 10,000 in all, and trial 6 of {trials[5].arm} has 90"
    )


def test_failed_transactions_count_at_their_time_out():
    """2% of the arm's transactions fail: its p99 is the length of the measured part, and its p50 is not touched."""
    plan = declaring("response", "p50", "p99")
    trials = at_the_rate(plan, lambda planned, trial: with_latency(trial, failed=600 if planned.arm == "off" else 0))
    result = verdict_of(plan, trials)
    p99, p50 = claim_on(result, "p99"), claim_on(result, "p50")
    assert p99.verdict == "worse"
    assert p99.values == {"off": 60e6, "on": 8000.0}
    assert p50.verdict == "equivalent"


def test_trials_with_failures_of_which_no_percentile_was_stored_say_nothing():
    plan = declaring("response", "p99")
    trials = at_the_rate(plan, lambda planned, trial: with_latency(trial, failed=10))
    measured = trials[0].measured
    assert measured is not None
    trials[0] = trials[0].model_copy(update={"measured": measured.model_copy(update={"with_failures_us": None})})
    row = claim_on(verdict_of(plan, trials), "p99")
    assert row.verdict == "withheld"
    assert row.withheld is not None
    assert row.withheld.startswith("p99 response time is not known of 1 of 24 trials")


@pytest.mark.parametrize("metric", ["p99", "wal per transaction"])
def test_a_failed_trial_is_the_worst_there_is(metric):
    plan = declaring(metric)
    tps = {"on": 500.0, "off": None}
    trials = [with_wal(with_latency(trial), 100.0) for trial in run(plan, lambda planned: tps[planned.arm])]
    claim = verdict_of(plan, trials).primary[0]
    assert claim.verdict == "worse"
    assert [ratio.log_ratio for ratio in claim.ratios] == [-p8.WORST] * 12
    both = run(plan, lambda planned: None)
    assert {ratio.log_ratio for ratio in verdict_of(plan, both).primary[0].ratios} == {None}


def test_less_of_a_cost_is_better():
    plan = declaring("wal per transaction", "size per transaction", rate=None)
    trials = [
        with_wal(trial, 700.0 if trial.arm == "off" else 1000.0) for trial in run(plan, noisy({"on": 1.0, "off": 0.5}))
    ]
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "better"
    assert result.sentences[0].startswith("wal per transaction of off is 30% lower than that of on")
    assert result.primary[0].totals is None
    row = claim_on(result, "wal per transaction")
    assert (row.unit, row.values["off"], row.values["on"]) == ("bytes", pytest.approx(700), pytest.approx(1000))
    size = claim_on(result, "size per transaction")
    assert size.verdict == "withheld"
    assert size.withheld is not None
    assert "is not known of 24 of 24 trials" in size.withheld


def test_growth_is_of_tables_and_indexes_over_the_whole_load():
    plan = declaring("size per transaction", rate=None)

    def grown(trial: Trial) -> Trial:
        transactions = sum(phase.transactions for phase in (trial.warmup, trial.measured) if phase is not None)
        each = 40.0 if trial.arm == "off" else 80.0
        after = {"history": {"bytes_table": 8192 + each * transactions, "bytes_indexes": 16384, "live_tuples": 9e9}}
        before = {"history": {"bytes_table": 8192, "bytes_indexes": 16384, "live_tuples": 1}}
        return trial.model_copy(update={"relations_before": before, "relations": after})

    result = verdict_of(plan, [grown(trial) for trial in run(plan, noisy({}))])
    assert claim_on(result, "size per transaction").values == {"off": pytest.approx(40), "on": pytest.approx(80)}
    assert result.primary[0].verdict == "better"


def test_a_cost_that_is_next_to_none_on_both_arms_gets_no_verdict():
    plan = declaring("wal per transaction", rate=None)
    trials = [with_wal(trial, 0.5 if trial.arm == "off" else 1.0) for trial in run(plan, noisy({}))]
    result = verdict_of(plan, trials)
    assert result.primary[0].verdict == "withheld"
    assert "next to none on both arms" in result.withheld[0]


def test_at_a_closed_loop_percentiles_are_said_to_repeat_the_throughput():
    closed = declaring("p99", rate=None)
    findings = {finding.rule: finding for finding in verdict_of(closed, run(closed, noisy({}))).findings}
    assert "closed loop" in findings["closed_loop"].message
    paced = declaring("p99")
    assert "closed_loop" not in {finding.rule for finding in verdict_of(paced, stalled(paced)).findings}


@pytest.mark.parametrize(("metric", "rate"), [("tps", None), ("response", 500.0)])
def test_a_metric_that_is_the_measure_of_the_load_changes_no_claim(metric, rate):
    plan = declaring(metric, rate=rate)
    trials = run(plan, noisy({"off": 1.05}, base=500.0)) if rate is None else stalled(plan)
    declared = verdict_of(plan, trials)
    default = verdict_of(plan.model_copy(update={"metrics": []}), trials)
    assert declared.model_copy(update={"metrics": []}) == default
    assert [row.metric for row in declared.metrics] == [metric]


def test_with_the_coin_fallen_the_other_way_the_difference_is_the_inverse():
    plan = declaring("p99", "p50", "wal per transaction")
    trials = [with_wal(trial, 100.0 + trial.index) for trial in stalled(plan)]
    other = verdict_of(plan, exchanged(trials, range(plan.max_blocks)))
    for row in verdict_of(plan, trials).metrics:
        mirror = claim_on(other, row.metric)
        assert row.difference is not None
        assert mirror.difference is not None
        assert math.log1p(row.difference.value) == pytest.approx(-math.log1p(mirror.difference.value), abs=1e-12)


def test_an_arm_leaves_only_when_its_other_metrics_are_decided_too():
    plan = declaring("response", "p50", "p99").model_copy(update={"drop_decided": True})

    def trial(planned, stored: Trial) -> Trial:
        clear = with_latency(
            stored,
            p50=2000.0 if planned.arm == "off" else 1000.0,
            p99=8000.0 * (1 + 0.05 * math.sin(7 * planned.index)),
        )
        latency = clear.measured.latency_us.model_copy(update={"mean": 2e3 if planned.arm == "off" else 1e3})
        return clear.model_copy(update={"measured": clear.measured.model_copy(update={"latency_us": latency})})

    trials = at_the_rate(plan, trial)
    result = verdict_of(plan, trials)
    assert (result.primary[0].verdict, claim_on(result, "p50").verdict) == ("worse", "worse")
    assert claim_on(result, "p99").verdict == "undecided"
    assert decided_arms(Grid(plan, trials)) == []
    without = plan.model_copy(update={"metrics": ["response", "p50"]})
    assert decided_arms(Grid(without, trials)) == ["off"]


def test_of_several_load_points_a_claim_is_on_the_mean_over_them():
    one = declaring("response", "p99")
    points = [one.load_points[0].model_copy(update={"clients": clients}) for clients in (4, 8)]
    plan = declaring("response", "p99").model_copy(update={"load_points": points})
    doubled = [
        planned.model_copy(update={"index": 2 * planned.index + point, "load_point": point})
        for planned in one.trials
        for point in (0, 1)
    ]
    plan = plan.model_copy(update={"trials": doubled})
    trials = at_the_rate(
        plan,
        lambda planned, trial: with_latency(
            trial, p99=8000.0 * (1.21 if planned.arm == "off" and planned.load_point else 1.0)
        ),
    )
    row = claim_on(verdict_of(plan, trials), "p99")
    assert row.values == {}
    assert row.difference is not None
    assert row.difference.value == pytest.approx(0.1)


def test_transactions_per_cent_are_compared_by_the_prices():
    """Half as fast at a third of the price: 1.5 times as many transactions for the money."""
    plan = declaring("tps", "transactions per cent", rate=None).model_copy(update={"prices": {"on": 90.0, "off": 30.0}})
    result = verdict_of(plan, run(plan, noisy({"off": 0.5}, sd=0.005)))
    assert result.primary[0].verdict == "worse"
    row = claim_on(result, "transactions per cent")
    assert row.verdict == "better"
    assert row.difference is not None
    assert row.difference.low is not None
    assert row.difference.high is not None
    assert row.difference.low < row.difference.value < row.difference.high
    assert row.difference.value == pytest.approx(0.5, abs=0.01)
    assert row.values["on"] == pytest.approx(3600 * 2000 / 90, rel=0.02)
    first = plan.model_copy(update={"metrics": ["transactions per cent"]})
    sentence = verdict_of(first, run(first, noisy({"off": 0.5}, sd=0.0001))).sentences[0]
    assert sentence.startswith("transactions per cent of off is 50")
    assert "% higher than that of on" in sentence


def test_a_failed_trial_gives_no_transaction_for_the_money():
    plan = declaring("transactions per cent", rate=None).model_copy(update={"prices": {"on": 90.0, "off": 1.0}})
    tps = {"on": 500.0, "off": None}
    claim = verdict_of(plan, run(plan, lambda planned: tps[planned.arm])).primary[0]
    assert [ratio.log_ratio for ratio in claim.ratios] == [-p8.WORST] * 12


def test_the_curve_shows_where_response_times_differ_with_a_band_that_holds_together():
    plan = declaring()
    trials = stalled(plan)
    points = {point.percentile: point for point in verdict_of(plan, trials).curve}
    assert list(points) == ["p50", "p90", "p95", "p99"]  # p99.9 takes 100,000 transactions
    assert {point.claims for point in points.values()} == {5}
    p99, p50 = points["p99"].difference, points["p50"].difference
    assert p99 is not None
    assert p99.low is not None
    assert p99.value == pytest.approx(0.25, abs=0.01)
    assert p99.low > 0.2
    assert p50 is not None
    assert p50.low is not None
    assert p50.high is not None
    assert p50.low < 0 < p50.high
    values = [
        math.log(base.measured.latency_us.p99 / arm.measured.latency_us.p99)
        for base, arm in (Grid(plan, trials).pair(block, 0, "off") for block in range(12))
        if base.measured is not None and arm.measured is not None
    ]
    by_hand = p8.decide(values, plan.margin, claims=5, planned=plan.looks).readings[-1].interval
    assert math.log1p(p99.low) == pytest.approx(by_hand.low)
    assert math.log1p(p99.value) == pytest.approx(by_hand.estimate)


def test_the_curve_is_of_loads_at_a_rate_and_begins_with_the_first_look():
    closed = declaring(rate=None)
    assert verdict_of(closed, run(closed, noisy({}))).curve == []
    plan = declaring()
    early = verdict_of(plan, stalled(plan)[:8]).curve
    assert [point.difference for point in early] == [None] * 4
    assert verdict_of(plan, run(plan, lambda planned: None)).curve == []


def test_every_metric_has_a_noun_and_a_direction():
    assert {name for name, metric in METRICS.items() if metric.better == "more"} == {
        "tps",
        "transactions per cent",
        "capacity",
    }
    assert all(metric.noun for metric in METRICS.values())
