"""Verdicts where the regime changes within trials: one before and one after, and no average across."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.statistics import p8
from pgtrial.verdict.changes import regimes_of
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from tests.verdict.studies import verdict_of

from .studies import POINT, exchanged, is_decided, make_plan, noisy, run, ways

Levels = Callable[[PlannedTrial], np.ndarray]
"""A function that returns the tps of each second of a planned trial."""


def steps(before: float, at: int, after: float) -> np.ndarray:
    return np.where(np.arange(60) < at, before, after)


def recorded(
    levels: Levels, *, blocks: int = 12, plan: Plan | None = None, seed: int = 1
) -> tuple[Plan, list[Trial], dict[int, list[int]]]:
    """Returns a plan, its trials, and their transactions of each second."""
    plan = plan or make_plan(blocks=blocks, duration_s=60.0)
    rng = np.random.default_rng(seed)
    seconds = {p.index: np.round(levels(p) * np.exp(0.03 * rng.standard_normal(60))).astype(int) for p in plan.trials}
    trials = run(plan, lambda planned: float(np.mean(seconds[planned.index])))
    return plan, trials, {index: [int(n) for n in each] for index, each in seconds.items()}


def study(levels: Levels, *, blocks: int = 12, plan: Plan | None = None, seed: int = 1) -> StudyResult:
    plan, trials, seconds = recorded(levels, blocks=blocks, plan=plan, seed=seed)
    return verdict_of(plan, trials, None, seconds)


def both(planned: PlannedTrial) -> np.ndarray:
    """Returns a function of levels. The arm `off` is twice as fast as `on` until its credits are used up, which is
    earlier than for `on`, and then half as fast.
    """
    return steps(4000, 25, 500) if planned.arm == "off" else steps(2000, 35, 1000)


class TestBothArmsChange:
    def test_there_are_two_verdicts_and_no_average(self):
        result = study(both)
        claim = result.primary[0]
        before, after = claim.parts
        assert (before.regime, before.verdict, after.regime, after.verdict) == ("before", "better", "after", "worse")
        assert before.difference is not None
        assert after.difference is not None
        assert before.difference.value == pytest.approx(1.0, abs=0.05)
        assert after.difference.value == pytest.approx(-0.5, abs=0.03)
        assert (claim.difference, claim.mean, claim.totals, claim.running, claim.looks) == (None, None, None, None, [])
        assert claim.verdict == "undecided"
        assert is_decided(result)
        assert result.exit_status == 1

    def test_the_two_share_the_error_of_one(self):
        claim = study(both).primary[0]
        assert claim.family == 1
        assert [part.family for part in claim.parts] == [2, 2]
        for part in claim.parts:
            assert part.looks[0].claim_alpha == part.looks[0].alpha / 2

    def test_the_sentence_tells_both_and_when_and_after_how_much_work(self):
        sentence = study(both).sentences[0]
        assert sentence.startswith(
            "Two verdicts, for the regime changes: off against on (committed transactions per second, "
        )
        assert re.search(
            r"before the change \(burst\) off is [\d.]+% faster than on \(95% sequential interval ", sentence
        )
        assert re.search(r"after it \(sustained\) off takes [\d.]+ times as long as on", sentence)
        assert re.search(r"off: collapse in 12 of 12 trials, [34],\d+ tps until 25s and 9\d,\d+ transactions", sentence)
        assert "mean ratio" not in sentence

    def test_levels_stand_apart(self):
        result = study(both)
        off = next(level for level in result.levels if level.arm == "off")
        assert off.tps is None
        assert off.tps_before is not None
        assert off.tps_after is not None
        assert (round(off.tps_before.median, -2), round(off.tps_after.median, -2)) == (4000, 500)
        cell = next(cell for cell in result.regimes if cell.arm == "off")
        assert cell.changed_s is not None
        assert cell.changed_s.median == pytest.approx(25, abs=1)
        assert cell.shapes == {"collapse": 12}

    def test_the_trend_is_that_of_trials_without_a_change(self):
        assert [(entry.state, entry.blocks) for entry in study(both).steadiness] == [("unknown", 0)] * 2


class TestOneArmChanges:
    def test_nothing_is_said_of_the_time_after_it(self):
        result = study(lambda p: steps(4000, 25, 500) if p.arm == "off" else steps(2000, 0, 2000))
        claim = result.primary[0]
        assert [(part.regime, part.family, part.verdict) for part in claim.parts] == [("before", 1, "better")]
        assert claim.verdict == "undecided"
        assert result.exit_status == 2
        assert result.sentences[0].startswith("No verdict beyond a change of regime on off against on")
        assert "nothing is known, for on has not changed within 1min; longer trials would tell" in result.sentences[0]
        assert [level.tps is None for level in result.levels] == [False, True]


def test_agreeing_regimes_give_one_word_without_a_figure_across():
    result = study(lambda p: steps(2000, 30, 500) * (1.3 if p.arm == "off" else 1))
    assert result.primary[0].verdict == "better"
    assert result.sentences[0].startswith("off is faster than on before and after a change of regime")
    assert result.exit_status == 0


def test_one_odd_trial_in_eight_blocks_changes_nothing_but_is_told():
    odd = study(lambda p: steps(2000, 30, 500 if p.index == 3 else 2000), blocks=8)
    assert not odd.primary[0].parts
    assert odd.primary[0].difference is not None
    assert [cell.shapes for cell in odd.regimes if cell.not_flat] == [{"flat": 7, "collapse": 1}]
    assert not any(cell.changes for cell in odd.regimes)


def test_flat_trials_leave_no_trace():
    result = study(lambda p: steps(2000, 0, 2000))
    assert result.regimes == []
    assert '"regimes"' not in result.model_dump_json()
    assert '"parts"' not in result.model_dump_json()
    assert result.sentences[0].endswith("regime: steady.")


def test_cyclic_trials_keep_their_average_and_are_called_so():
    result = study(lambda p: np.tile(np.repeat([2000.0, 800.0], 20), 2)[:60])
    assert not result.primary[0].parts
    assert "regime: cyclic (on and off: levels come and go within a trial)" in result.sentences[0]


def test_a_mean_over_load_points_takes_each_regime_from_where_it_changes():
    points = [POINT, POINT.model_copy(update={"clients": 16})]
    plan = make_plan(blocks=12, points=points, duration_s=60.0)

    def levels(p: PlannedTrial) -> np.ndarray:
        gain = 1.2 if p.arm == "off" else 1.0
        return gain * (steps(2000, 30, 500) if p.load_point else steps(3000, 0, 3000))

    result = study(levels, plan=plan)
    assert [len(claim.parts) for claim in result.by_load_point] == [0, 2]
    primary = result.primary[0]
    assert [part.verdict for part in primary.parts] == ["better", "better"]
    assert "before and after a change of regime" in result.sentences[0]


def test_a_failed_trial_is_the_worst_rank_in_every_regime():
    plan = make_plan(blocks=12, duration_s=60.0)
    failed = next(p.index for p in plan.trials if p.block == 2 and p.arm == "off")
    trials = run(plan, lambda p: None if p.index == failed else 1000.0)
    rng = np.random.default_rng(0)
    seconds = {t.index: [int(n) for n in np.round(steps(1700, 30, 300) + rng.normal(0, 9, 60))] for t in trials}
    parts = verdict_of(plan, trials, None, seconds).primary[0].parts
    assert len(parts) == 2
    for part in parts:
        assert part.ratios[2].log_ratio == -p8.WORST
        assert part.ratios[2].failed == ["off"]


def test_whether_arms_are_read_by_regime_does_not_depend_on_which_is_which():
    plan = make_plan(("a", "b"), blocks=8, duration_s=60.0)
    trials = run(plan, noisy({}))
    rng = np.random.default_rng(3)
    for _ in range(5):
        changed = {p.index for p in plan.trials if rng.random() < 0.2}
        level = {True: [1000] * 30 + [300] * 30, False: [1000] * 60}
        seconds = {t.index: level[t.index in changed] for t in trials}
        swapped = exchanged(trials, range(8))
        one, other = (verdict_of(plan, each, None, seconds).primary[0] for each in (trials, swapped))
        assert [len(part.ratios) for part in one.parts] == [len(part.ratios) for part in other.parts]
        for ours, theirs in zip(one.parts, other.parts, strict=True):
            pairs = zip(ours.ratios, theirs.ratios, strict=True)
            assert all(a.log_ratio == (None if b.log_ratio is None else pytest.approx(-b.log_ratio)) for a, b in pairs)


def test_one_verdict_or_two_is_chosen_at_looks_only():
    """The trials collapse from block 8 on: at the look after 12 blocks these are a third."""
    plan = make_plan(blocks=12, duration_s=60.0, margin=0.0001)
    plan, trials, seconds = recorded(lambda p: steps(2000, 30, 500 if p.block >= 8 else 2000), plan=plan)
    parts = []
    for blocks in range(9, 13):
        upto = [trial for trial in trials if trial.block < blocks]
        parts.append(len(verdict_of(plan, upto, None, seconds).primary[0].parts))
    assert plan.looks == [8, 12]
    assert parts == [0, 0, 0, 1]


def leaving_and_coming_back(p: PlannedTrial) -> np.ndarray:
    """Two of the first eight blocks change their regime, and all from block 8 on: `off` is faster before and after."""
    if p.arm == "on":
        return steps(2000, 0, 2000)
    return steps(1500, 25, 4000) if p.block in (0, 1) or p.block >= 8 else steps(2200, 0, 2200)


def test_a_decided_verdict_is_never_retracted():
    """The first look decides on whole trials; at the second one more than a quarter of the blocks change."""
    plan, trials, seconds = recorded(leaving_and_coming_back, plan=make_plan(blocks=18, duration_s=60.0))
    assert plan.looks == [8, 12, 18]
    for blocks in range(8, 19):
        result = verdict_of(plan, [trial for trial in trials if trial.block < blocks], None, seconds)
        claim = result.primary[0]
        assert (claim.verdict, claim.parts, result.exit_status) == ("better", [], 0), blocks
        assert [look.blocks for look in claim.looks] == [8]
        assert claim.changing == (blocks >= 12), "a later look no longer carries it"


def test_what_one_look_decided_of_a_regime_stays_where_the_next_look_reads_whole_trials():
    """Four of twelve blocks change, of eighteen still four."""
    plan = make_plan(blocks=18, duration_s=60.0, margin=0.0001)

    def levels(p: PlannedTrial) -> np.ndarray:
        fast, slow = (2600, 1000) if p.arm == "off" else (2000, 3000)
        return steps(fast, 30, slow) if 2 <= p.block % 4 < 4 and p.block < 8 else steps(fast, 0, fast)

    plan, trials, seconds = recorded(levels, plan=plan)
    words = []
    for blocks in (8, 12, 18):
        claim = verdict_of(plan, [trial for trial in trials if trial.block < blocks], None, seconds).primary[0]
        words.append([(part.regime, part.verdict, [look.blocks for look in part.looks]) for part in claim.parts])
    assert words == [[("before", "better", [8])], [("before", "better", [8, 12])], [("before", "better", [8, 12])]]


def alike(p: PlannedTrial) -> np.ndarray:
    """Noise that does not know the arms: the regime changes in two of eight blocks, in three of nine."""
    noise = np.random.default_rng([5, p.index]).normal(0, 0.3)
    return math.exp(noise) * (steps(2000, 30, 600) if p.block in (2, 5, 8) else steps(2000, 0, 2000))


def test_of_all_ways_in_which_the_coin_can_fall_no_more_than_the_looks_allow_give_a_verdict():
    """The first look reads whole trials, the second the time before the change; what the first decided stays."""
    plan, trials, seconds = recorded(alike, plan=make_plan(blocks=9, duration_s=60.0, margin=1e-9))
    assert plan.looks == [8, 9]
    false = by_regime = of = 0
    for blocks in ways(plan.max_blocks):
        of += 1
        as_fallen = exchanged(trials, blocks)
        regimes = regimes_of(as_fallen, seconds)
        at_first = comparisons(Grid(plan, [trial for trial in as_fallen if trial.block < 8]), regimes)
        at_second = comparisons(Grid(plan, as_fallen), regimes)
        if at_first[0].decided:
            assert [(comparison.regime, comparison.decided) for comparison in at_second] == [(None, True)]
        by_regime += [comparison.regime for comparison in at_second] == ["before"]
        false += any(comparison.decided for comparison in at_second)
    assert by_regime > of / 2
    assert 0 < false / of <= p8.ALPHAS[0] + p8.ALPHAS[1]
