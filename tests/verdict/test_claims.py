"""Tests of the way from stored trials to verdicts: which trials count, which verdicts are withheld, which are reported
first, and their texts.
"""

from __future__ import annotations

import json
import math
import re
import tracemalloc

import numpy as np
import pytest

from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8
from pgtrial.verdict import levels
from pgtrial.verdict.changes import trend
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from tests.verdict.studies import verdict_of

from .studies import POINT, is_decided, make_plan, make_trial, noisy, run

POINTS = [POINT, *(POINT.model_copy(update={"clients": clients}) for clients in (1, 32))]


def seconds_of(trials: list[Trial], trend: float = 0.0) -> dict[int, list[int]]:
    """Returns each trial's transactions by second, with a trend over the whole trial."""
    return {
        t.index: [round(t.measured.tps * (1 + trend * (s / 6 - 0.5))) for s in range(6)] for t in trials if t.measured
    }


def withhold(*arms: str) -> Audit:
    finding = Finding(
        rule="durability",
        severity="withhold",
        arms=list(arms),
        message="Durability differs: fsync is off.",
        cure="Declare it.",
    )
    note = Finding(rule="thp", severity="info", arms=[], message="THP is on.", cure="Nothing.")
    return Audit(findings=[note, finding])


def test_a_faster_arm_is_better_and_the_sentence_says_by_how_much_and_how_sure():
    plan = make_plan()
    trials = run(plan, noisy({"off": 1.41}))
    result = verdict_of(plan, trials, None, seconds_of(trials))
    assert [claim.verdict for claim in result.primary] == ["better"]
    assert is_decided(result)
    assert result.exit_status == 0
    assert re.fullmatch(
        r"off is 4\d(\.\d)?% faster than on \(committed transactions per second, tpcb-like, "
        r"scale 10, 8 clients\), 95% sequential interval "
        r"3\d(\.\d)?\.\.4\d(\.\d)?%, 8 blocks of 2 x 6s, margin 1%, scope: this host, a fresh copy of the data for "
        r"every trial; failures off: 0, on: 0; mean ratio \+4\d(\.\d)?%; regime: steady\.",
        result.sentences[0],
    )


def test_at_a_look_the_progress_has_the_interval_of_the_verdict_and_before_the_first_look_none():
    plan = make_plan()
    trials = run(plan, noisy({"off": 1.41}))
    (before,) = comparisons(Grid(plan, trials[:-2]))
    assert before.at_look is None
    assert before.so_far is not None
    (at_look,) = comparisons(Grid(plan, trials))
    assert at_look.at_look == verdict_of(plan, trials).primary[0].difference
    assert at_look.at_look is not None
    assert at_look.so_far == pytest.approx(at_look.at_look.value)


def test_a_slower_arm_is_worse_and_fails_the_gate():
    plan = make_plan()
    result = verdict_of(plan, run(plan, noisy({"off": 0.9})))
    assert result.primary[0].verdict == "worse"
    assert result.exit_status == 1
    assert result.sentences[0].startswith("off is ")
    assert "% slower than on" in result.sentences[0]


def test_a_tiny_loss_within_the_margin_is_told_and_does_not_fail_the_gate():
    plan = make_plan()
    result = verdict_of(plan, run(plan, noisy({"off": 0.996}, sd=0.0005)))
    assert (result.primary[0].verdict, result.primary[0].within_margin) == ("worse", True)
    assert result.exit_status == 0
    assert "slower, by less than the margin of 1%, than on" in result.sentences[0]


def test_arms_alike_are_equivalent_within_the_margin():
    plan = make_plan()
    result = verdict_of(plan, run(plan, noisy({}, sd=0.002, seed=3)))
    assert result.primary[0].verdict == "equivalent"
    assert result.exit_status == 0
    assert result.sentences[0].startswith(
        "No difference larger than 1% between off and on (committed transactions per second, "
    )


def test_noise_beyond_the_margin_is_undecided_and_says_what_would_decide():
    plan = make_plan(blocks=12)
    result = verdict_of(plan, run(plan, noisy({}, sd=0.03, seed=5)))
    claim = result.primary[0]
    assert claim.verdict == "undecided"
    assert result.exit_status == 2
    assert not is_decided(result)
    assert claim.more_blocks is not None
    assert 12 + claim.more_blocks in p8.LOOKS
    assert claim.more_s == pytest.approx(claim.more_blocks * 22)
    assert result.sentences[0].startswith(
        "Undecided after 12 blocks: off against on (committed transactions per second, "
    )
    assert f"about {claim.more_blocks} more blocks" in result.sentences[0]
    assert claim.more_chance is not None
    command = f"pgtrial run DIRECTORY --more {claim.more_blocks}"
    chance = f"with a probability of {claim.more_chance:.0%} ({command})"
    assert f"would decide if the difference is as estimated, {chance}" in result.sentences[0]
    assert "so far only differences larger than " in result.sentences[0]


@pytest.mark.parametrize("seed", range(12))
def test_identical_arms_are_not_called_different(seed):
    plan = make_plan(seed=seed, declared=False)
    result = verdict_of(plan, run(plan, noisy({}, sd=0.05, seed=100 + seed)))
    assert result.primary[0].verdict in ("undecided", "equivalent")
    assert result.identical_arms
    assert "A/A study" in result.notes[0]


def test_the_whole_pipeline_errs_in_at_most_five_percent_of_relabelled_runs_of_one_arm():
    """The method checks itself: one recorded run of one arm, its labels drawn anew, the complete analysis each time."""
    rng = np.random.default_rng(11)
    level = np.cumsum(0.03 * rng.standard_normal(24)) - 0.05 * (np.arange(24) % 2) + 0.05 * rng.standard_t(2, 24)
    studies, false = 120, 0
    for seed in range(studies):
        plan = make_plan(blocks=12, seed=seed)
        trials = run(plan, lambda planned: 2000 * math.exp(level[planned.index]))
        false += verdict_of(plan, trials).primary[0].verdict in ("better", "worse")
    assert false / studies <= 0.05


def test_the_same_files_give_the_same_verdict_to_the_last_bit():
    plan = make_plan(("a", "b", "c"), points=POINTS)
    trials = run(plan, noisy({"b": 1.1}))
    first = verdict_of(plan, trials, withhold("c"), seconds_of(trials)).model_dump_json()
    stored = [Trial.model_validate_json(trial.model_dump_json()) for trial in reversed(trials)]
    again = verdict_of(Plan.model_validate_json(plan.model_dump_json()), stored, withhold("c"), seconds_of(trials))
    assert again.model_dump_json() == first
    assert StudyResult.model_validate_json(first) == again
    json.loads(first, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


class TestWhatCounts:
    def test_an_incomplete_last_block_is_provisional(self):
        plan = make_plan(blocks=9)
        trials = run(plan, noisy({"off": 1.4}), upto=17)
        result = verdict_of(plan, trials)
        assert result.blocks_complete == 8
        assert [ratio.counted for ratio in result.primary[0].ratios] == [True] * 8
        assert result.primary[0].blocks == 8

    def test_a_gap_ends_the_count_so_that_filling_it_changes_no_look_already_read(self):
        plan = make_plan(blocks=12)
        trials = [t for t in run(plan, noisy({"off": 1.4})) if (t.block, t.arm) != (8, "on")]
        result = verdict_of(plan, trials)
        assert result.blocks_complete == 8
        assert [ratio.block for ratio in result.primary[0].ratios if not ratio.counted] == [9, 10, 11]

    def test_before_the_first_look_the_study_is_undecided_with_a_running_estimate(self):
        plan = make_plan()
        result = verdict_of(plan, run(plan, noisy({"off": 1.4}), upto=8))
        claim = result.primary[0]
        assert (claim.verdict, claim.difference, claim.looks) == ("undecided", None, [])
        assert claim.running == pytest.approx(0.4, abs=0.05)
        assert claim.more_blocks == 4
        assert "needs at least 8 blocks; about 4 more blocks (1min 28s) would decide" in result.sentences[0]
        assert "--more" not in result.sentences[0], "the plan holds them"

    def test_a_study_without_any_trial_is_undecided(self):
        result = verdict_of(make_plan(), [])
        assert (result.primary[0].verdict, result.exit_status, is_decided(result)) == ("undecided", 2, False)
        assert result.primary[0].more_blocks == 8

    def test_blocks_after_the_last_look_reached_are_provisional_and_said_so(self):
        plan = make_plan(blocks=12)
        result = verdict_of(plan, run(plan, noisy({"off": 1.4}), upto=20))
        assert result.primary[0].blocks == 8
        assert any("2 blocks after the last planned look" in note for note in result.notes)


class TestFailedTrials:
    def test_a_failed_trial_takes_the_worst_rank_and_leads_the_sentence(self):
        plan = make_plan()
        tps = noisy({"off": 1.4})
        result = verdict_of(
            plan, run(plan, lambda planned: None if (planned.block, planned.arm) == (3, "off") else tps(planned))
        )
        claim = result.primary[0]
        assert claim.ratios[3].log_ratio == -p8.WORST
        assert claim.ratios[3].failed == ["off"]
        assert claim.verdict == "undecided"
        assert "95% sequential interval -99.9..4" in result.sentences[0]
        assert result.sentences[0].startswith("Failures of off: 1 of 8 trials, on: 0. Undecided after 8 blocks")
        assert [(failed.arm, failed.block, failed.void) for failed in result.failed_trials] == [("off", 3, False)]

    def test_a_failure_of_the_baseline_counts_for_the_arm(self):
        plan = make_plan()
        tps = noisy({"off": 1.4})
        result = verdict_of(
            plan, run(plan, lambda planned: None if (planned.block, planned.arm) == (3, "on") else tps(planned))
        )
        assert result.primary[0].ratios[3].log_ratio == p8.WORST
        assert result.primary[0].verdict == "better"
        assert result.primary[0].unstable is False

    def test_both_arms_failing_make_the_block_void_and_listed(self):
        plan = make_plan(blocks=9)
        tps = noisy({"off": 1.4})
        result = verdict_of(plan, run(plan, lambda planned: None if planned.block == 3 else tps(planned)))
        claim = result.primary[0]
        assert claim.ratios[3].log_ratio is None
        assert claim.blocks == 8
        assert claim.verdict == "better"
        assert [failed.void for failed in result.failed_trials] == [True, True]

    def test_a_load_point_where_both_fail_leaves_the_others_in_the_mean(self):
        plan = make_plan(points=POINTS)
        tps = noisy({"off": 1.4})
        result = verdict_of(plan, run(plan, lambda planned: None if planned.load_point == 2 else tps(planned)))
        assert result.primary[0].verdict == "better"
        assert result.claims("off")[2].blocks == 0
        assert result.claims("off")[2].verdict == "undecided"

    def test_an_arm_that_always_fails_is_worse(self):
        plan = make_plan()
        tps = noisy({})
        result = verdict_of(plan, run(plan, lambda planned: None if planned.arm == "off" else tps(planned)))
        assert result.primary[0].verdict == "worse"
        assert result.sentences[0].startswith("Failures of off: 8 of 8 trials, on: 0. off is 99.9% slower than on")

    def test_a_run_that_ended_early_is_divided_by_the_time_it_should_have_lasted(self):
        plan = make_plan()
        trial = make_trial(plan, plan.trials[0], 2000.0)
        assert trial.measured is not None
        short = trial.model_copy(
            update={"measured": trial.measured.model_copy(update={"duration_s": 3.0, "transactions": 6000})}
        )
        result = verdict_of(plan, [short])
        level = next(level for level in result.levels if level.arm == short.arm)
        assert level.tps is not None
        assert level.tps.median == 1000.0


class TestFailedTransactions:
    def test_more_than_one_in_a_thousand_leads_the_sentence(self):
        plan = make_plan()
        result = verdict_of(plan, run(plan, noisy({"off": 1.4}), failures={"off": {"40001": 60}}))
        assert result.failures_lead == ["off"]
        assert re.match(
            r"Failures of off: 480 of [\d,]+ transactions \(0\.\d+%\), on: 0\. off is ", result.sentences[0]
        )

    def test_a_small_but_established_difference_leads_the_sentence_too(self):
        plan = make_plan()
        result = verdict_of(plan, run(plan, noisy({"off": 1.4}), failures={"off": {"40001": 3}}))
        assert result.failures[1].share < 0.001
        assert result.failures_lead == ["off"]

    def test_the_same_few_failures_in_both_arms_do_not(self):
        plan = make_plan()
        failures = {"off": {"40001": 3}, "on": {"40001": 3}}
        result = verdict_of(plan, run(plan, noisy({"off": 1.4}), failures=failures))
        assert result.failures_lead == []
        assert result.sentences[0].startswith("off is ")
        assert "failures off: 24 of " in result.sentences[0]


class TestSeveralLoadPoints:
    def test_the_primary_claim_is_the_mean_over_the_load_points(self):
        plan = make_plan(points=POINTS)
        result = verdict_of(plan, run(plan, noisy({"off": 1.4})))
        primary, own = result.primary[0], result.claims("off")
        for block in range(8):
            assert primary.ratios[block].log_ratio == pytest.approx(
                sum(claim.ratios[block].log_ratio for claim in own) / 3
            )
        assert "(committed transactions per second, mean over 3 load points)" in result.sentences[0]
        assert "8 blocks of 2 arms x 3 load points x 6s" in result.sentences[0]

    def test_the_load_points_share_the_error_and_need_more_blocks(self):
        plan = make_plan(points=POINTS, blocks=12)
        trials = run(plan, noisy({"off": 1.4}))
        eight = verdict_of(plan, [trial for trial in trials if trial.block < 8])
        assert eight.primary[0].verdict == "better"
        assert [claim.family for claim in eight.by_load_point] == [3, 3, 3]
        assert [claim.verdict for claim in eight.by_load_point] == ["undecided"] * 3
        assert [claim.fewest_blocks for claim in eight.by_load_point] == [12] * 3
        assert [claim.verdict for claim in verdict_of(plan, trials).by_load_point] == ["better"] * 3

    def test_one_load_point_is_the_primary_claim_itself(self):
        plan = make_plan()
        result = verdict_of(plan, run(plan, noisy({"off": 1.4})))
        assert result.by_load_point[0].difference == result.primary[0].difference
        assert result.by_load_point[0].verdict == result.primary[0].verdict

    def test_load_points_that_disagree_are_told_beside_the_mean(self):
        plan = make_plan(points=POINTS, blocks=12)
        tps = noisy({})
        result = verdict_of(plan, run(plan, lambda p: tps(p) * (1 if p.arm == "on" else (2.0, 1.5, 0.8)[p.load_point])))
        assert result.primary[0].verdict == "better"
        assert any("better at 2, worse at 1 of 3" in note for note in result.notes)


class TestSeveralArms:
    def test_the_primary_claims_share_the_error(self):
        plan = make_plan(("15", "16", "17", "18"), blocks=12)
        trials = run(plan, noisy({"16": 1.2, "17": 0.8}))
        result = verdict_of(plan, trials)
        assert [(claim.arm, claim.family) for claim in result.primary] == [("16", 3), ("17", 3), ("18", 3)]
        assert [claim.verdict for claim in result.primary][:2] == ["better", "worse"]
        assert result.exit_status == 1
        assert not is_decided(verdict_of(plan, [trial for trial in trials if trial.block < 8]))

    def test_a_withheld_arm_does_not_withhold_the_others(self):
        plan = make_plan(("15", "16", "17"), blocks=12)
        result = verdict_of(plan, run(plan, noisy({"16": 1.2, "17": 1.2})), withhold("15", "17"))
        assert [claim.verdict for claim in result.primary] == ["better", "withheld"]
        assert is_decided(result)
        assert result.exit_status == 2


def test_unequal_durability_withholds_the_verdict_and_says_why():
    plan = make_plan()
    result = verdict_of(plan, run(plan, noisy({"off": 1.4})), withhold("on", "off"))
    assert result.primary[0].verdict == "withheld"
    assert result.exit_status == 2
    assert result.sentences == ["No verdict on off against on: Durability differs: fsync is off. Declare it."]
    assert result.withheld == ["Durability differs: fsync is off. Declare it."]
    assert [finding.severity for finding in result.findings] == ["withhold", "info"]


class TestSteadyState:
    def test_an_arm_that_keeps_rising_is_not_at_steady_state_and_the_verdict_says_what_it_speaks_of(self):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}))
        result = verdict_of(plan, trials, None, seconds_of(trials, 0.1))
        assert [entry.state for entry in result.steadiness] == ["rising", "rising"]
        assert result.steadiness[0].trend == pytest.approx(0.1, abs=0.03)
        assert "regime: not at steady state (on rises " in result.sentences[0]
        assert "speaks of the first 6s after a warm-up of 2s" in result.sentences[0]

    def test_a_negligible_trend_is_steady(self):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}))
        assert [e.state for e in verdict_of(plan, trials, None, seconds_of(trials, -0.005)).steadiness] == [
            "steady"
        ] * 2

    def test_trials_of_a_few_seconds_are_not_checked(self):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}))
        result = verdict_of(plan, trials, None, {trial.index: [1, 2, 3] for trial in trials})
        assert [entry.state for entry in result.steadiness] == ["unknown"] * 2
        assert "regime: not checked (too few blocks or seconds)" in result.sentences[0]

    def test_a_few_blocks_are_not_called_steady(self):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}), upto=10)
        steady = verdict_of(plan, trials, None, seconds_of(trials)).steadiness
        assert [(entry.state, entry.blocks) for entry in steady] == [("unknown", 5)] * 2

    def test_a_partial_last_second_does_not_make_a_trend(self):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}))
        seconds = {index: [*values, 3] for index, values in seconds_of(trials).items()}
        assert [e.state for e in verdict_of(plan, trials, None, seconds).steadiness] == ["steady"] * 2


def test_the_trend_of_a_day_takes_no_more_memory_than_that_of_ten_minutes():
    (trial, *_), seconds = run(make_plan(), noisy({})), 24 * 3600
    assert trial.measured is not None
    trial = trial.model_copy(update={"measured": trial.measured.model_copy(update={"duration_s": float(seconds)})})
    committed = [round(1000 * math.exp(-0.1 * second / seconds)) for second in range(seconds)]
    tracemalloc.start()
    try:
        slope = trend(trial, committed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert slope == pytest.approx(-0.1, rel=0.01)
    assert peak < 50e6


def test_rare_slow_blocks_are_told_when_they_pull_the_mean_away():
    plan = make_plan(blocks=27)
    tps = noisy({"off": 1.1}, sd=0.005)
    result = verdict_of(plan, run(plan, lambda p: tps(p) * (0.2 if p.arm == "off" and p.block in (4, 11) else 1)))
    claim = result.primary[0]
    assert claim.verdict == "better"
    assert claim.unstable
    assert claim.odd_blocks == [4, 11]
    assert any("The arms differ in stability" in note and "(blocks 5, 12)" in note for note in result.notes)


class TestLevels:
    def test_latency_is_the_median_trial_with_its_spread(self):
        plan = make_plan()
        result = verdict_of(plan, run(plan, lambda planned: 2000.0 + 100 * planned.block))
        p50 = result.levels[0].latency_us["p50"]
        assert p50 is not None
        assert p50.highest == pytest.approx(0.9 * 8e6 / 2000)
        assert p50.lowest == pytest.approx(0.9 * 8e6 / 2700)
        assert p50.lowest < p50.median < p50.highest

    def test_a_percentile_needs_a_hundred_slower_transactions_in_every_trial(self):
        plan = make_plan()
        latency = verdict_of(plan, run(plan, lambda planned: 10_000 / 6 if planned.index else 9_990 / 6)).levels
        by_arm = {level.arm: level.latency_us for level in latency}
        first = plan.trials[0].arm
        other = next(arm for arm in plan.arms if arm != first)
        assert by_arm[first]["p99"] is None
        assert by_arm[other]["p99"] is not None
        assert by_arm[other]["p99.9"] is None

    def test_the_interval_of_a_median_is_distribution_free(self):
        assert levels.median_interval([1.0, 2, 3, 4, 5]) == (None, None)
        assert levels.median_interval([1.0, 2, 3, 4, 5, 6]) == (1, 6)
        assert levels.median_interval([float(i) for i in range(1, 13)]) == (3, 10)
        rng = np.random.default_rng(2)
        covered = [
            low <= 0 <= high
            for low, high in (levels.median_interval(sorted(rng.standard_t(1, 12))) for _ in range(2000))
        ]
        assert np.mean(covered) >= 0.95


def test_a_load_point_reads_as_people_say_it():
    assert (
        LoadPoint(workload="select-only", scale=1, clients=1, protocol="simple").label
        == "select-only, scale 1, 1 client"
    )


def test_blocks_that_say_nothing_are_counted_on_the_way_to_the_next_look():
    """A pair of two failed trials has no value, and the looks count its block all the same."""
    for seed in range(20):
        plan = make_plan(blocks=12, seed=seed)
        speed = noisy({"off": 1.03}, sd=0.03, seed=seed)
        trials = run(plan, lambda planned, of=speed: None if planned.block == 3 else of(planned))
        claim = verdict_of(plan, trials).primary[0]
        if claim.verdict == "undecided" and claim.more_blocks is not None:
            assert claim.blocks == 11
            assert 12 + claim.more_blocks in (18, 27, 40, 60, 90, 135, 200, 300)
            return
    raise AssertionError("no study is undecided")
