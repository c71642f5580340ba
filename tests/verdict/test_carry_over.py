"""Tests of carry-over, the work that one slice leaves for the next: that it is found only where it exists, and how it
changes the verdict.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgtrial.model.records.results import CarryOver, CarryOverShift, StudyResult
from pgtrial.model.records.trial import SliceRow
from pgtrial.verdict.carry_over import speeds_of
from tests.verdict.studies import verdict_of

from .slices import LOAD_S, OWN_SLICES, SLICE_S, WARMUP_ROUNDS, Turn, alternate, interleaved_plan, slice_row, turns
from .studies import POINT

POINTS = [POINT, POINT.model_copy(update={"clients": 32})]


def losing(loss: dict[tuple[str, str], float], sd: float = 0.02, ratio: float = 1.0, seed: int = 5):
    """Speeds with noise of each slice; an arm loses these shares after an arm."""
    rng = np.random.default_rng(seed)

    def tps(turn: Turn) -> float:
        arm, base = turn.planned.arm, 20_000.0 * (1.0 if turn.planned.arm == "on" else ratio)
        lost = sum(share for (loser, other), share in loss.items() if loser == arm and turn.follows(other))
        return base * (1 - lost) * math.exp(sd * float(rng.standard_normal()))

    return tps


def analysed(tps, *arms: str, **options) -> StudyResult:
    plan = interleaved_plan(arms or ("on", "off"), **options)
    trials, slices = alternate(plan, tps)
    return verdict_of(plan, trials, slices=slices)


def effect(result: StudyResult, arm: str, preceding: str) -> CarryOver:
    return next(each for each in result.carry_over if (each.arm, each.preceding) == (arm, preceding))


def shift(result: StudyResult, arm: str = "off", point: int | None = 0) -> CarryOverShift:
    return next(each for each in result.carry_over_shifts if (each.arm, each.load_point) == (arm, point))


def holds(found: CarryOver | CarryOverShift, value: float) -> bool:
    moved = found.difference
    assert moved is not None
    assert moved.low is not None
    assert moved.high is not None
    return moved.low <= value <= moved.high


def test_without_carry_over_none_is_found_and_nothing_is_said():
    result = analysed(losing({}), blocks=12)
    assert len(result.carry_over) == 2
    assert all(holds(each, 0.0) for each in [*result.carry_over, *result.carry_over_shifts])
    assert [finding.rule for finding in result.findings] == []


def test_an_arm_that_is_slower_after_the_other_is_found_with_how_much_it_loses():
    result = analysed(losing({("off", "on"): 0.1}), blocks=12)
    found = effect(result, "off", "on")
    assert found.blocks == 12
    assert found.difference is not None
    assert found.difference.value == pytest.approx(-0.1, abs=0.02)
    assert not holds(found, 0.0)
    assert holds(effect(result, "on", "off"), 0.0)


def test_a_loss_of_one_arm_alone_moves_the_comparison_by_the_slices_in_which_it_follows_the_other():
    result = analysed(losing({("off", "on"): 0.1}), blocks=12)
    assert holds(shift(result), 0.75 * -0.1)
    assert not holds(shift(result), 0.0)
    (finding,) = result.findings
    assert (finding.rule, finding.severity, finding.arms) == ("carry_over", "warning", ["off"])
    assert finding.message.startswith("What slices leave behind for the next one moves off against on by -")
    assert "(tpcb-like, scale 10, 8 clients, 95% interval -" in finding.message
    assert '[load] interleave = "off"' in finding.cure


def test_an_equal_loss_of_both_arms_is_told_and_does_not_move_the_comparison():
    result = analysed(losing({("off", "on"): 0.1, ("on", "off"): 0.1}), blocks=12)
    assert not holds(effect(result, "off", "on"), 0.0)
    assert not holds(effect(result, "on", "off"), 0.0)
    assert holds(shift(result), 0.0)
    assert result.findings == []


def test_at_a_rate_the_loss_is_one_of_response_time():
    """Each slice has the transactions of the rate, whatever the arm; those after the other arm take longer."""
    plan = interleaved_plan(blocks=12, points=[POINT.model_copy(update={"rate": 400.0})])
    trials, slices = alternate(plan, losing({("off", "on"): 0.1}))
    each = round(400 * SLICE_S)
    paced = {
        index: [row.model_copy(update={"transactions": each, "client_s": POINT.clients * SLICE_S}) for row in rows]
        for index, rows in slices.items()
    }
    result = verdict_of(plan, trials, slices=paced)
    assert holds(effect(result, "off", "on"), -0.1)
    assert not holds(effect(result, "off", "on"), 0.0)
    assert holds(effect(result, "on", "off"), 0.0)
    assert holds(shift(result), 0.75 * -0.1)


def test_a_shift_within_the_margin_is_no_warning():
    result = analysed(losing({("off", "on"): 0.1}), blocks=12, margin=0.2)
    assert not holds(shift(result), 0.0)
    assert result.findings == []


def test_of_three_arms_each_has_its_own_effect_on_each_other():
    result = analysed(losing({("b", "c"): 0.2}, sd=0.01), "a", "b", "c", blocks=27)
    assert len(result.carry_over) == 6
    found = effect(result, "b", "c").difference
    assert found is not None
    assert found.value == pytest.approx(-0.2, abs=0.03)
    assert holds(effect(result, "b", "a"), 0.0)
    assert holds(effect(result, "c", "b"), 0.0)
    assert not holds(shift(result, "b"), 0.0)
    assert holds(shift(result, "c"), 0.0)


def test_the_mean_over_the_load_points_has_a_shift_of_its_own():
    result = analysed(losing({("off", "on"): 0.1}), blocks=12, points=POINTS)
    assert [each.load_point for each in result.carry_over_shifts] == [0, 1, None]
    assert not holds(shift(result, point=None), 0.0)
    assert "(the mean, 95% interval" in result.findings[-1].message


def test_a_block_with_a_failed_trial_says_nothing_of_carry_over():
    plan = interleaved_plan(blocks=12)
    trials, slices = alternate(plan, losing({}))
    failed = [
        trial.model_copy(update={"status": "failed", "measured": None}) if trial.index == 5 else trial
        for trial in trials
    ]
    result = verdict_of(plan, failed, slices={**slices, 5: []})
    assert {each.blocks for each in result.carry_over} == {8}
    early = verdict_of(plan, failed[:14], slices=slices)
    assert {each.blocks for each in early.carry_over_shifts} == {6}
    assert early.carry_over[0].difference is None


def test_studies_without_slices_have_no_carry_over_in_their_result():
    plan = interleaved_plan()
    trials, slices = alternate(plan, losing({}))
    assert "carry_over" not in verdict_of(plan, trials).model_dump_json()
    alone = plan.model_copy(update={"interleaving": None})
    assert "carry_over" not in verdict_of(alone, trials, slices=slices).model_dump_json()


def test_transactions_across_the_border_of_two_own_slices_are_not_taken_for_carry_over():
    """A transaction counts in the slice in which it ends. Among consecutive slices of one arm, some therefore seem to
    gain transactions and others to lose them.
    """
    length_s, clients = 0.04, 8
    rng = np.random.default_rng(3)
    alone, naive = [], []
    plan = interleaved_plan(blocks=30)
    for block in turns(plan):
        owners = [turn.planned.arm for turn in block]
        rows: dict[str, list[SliceRow]] = {"on": [], "off": []}
        left_s = np.zeros(clients)
        for slot, arm in enumerate(owners):
            goes_on = owners[slot + 1 : slot + 2] == [arm]
            left_s, client_s, done = _serve(left_s, length_s, rng, goes_on=goes_on)
            rows[arm].append(slice_row(len(rows[arm]), slot * SLICE_S, client_s, done, (slot + 1) * SLICE_S))
        for arm, speeds in speeds_of(rows, SLICE_S).items():
            alone.append(speeds.whole - speeds.alone)
            naive.append(_naive(rows[arm], owners, arm))
    error = np.std(alone) / math.sqrt(len(alone))
    assert abs(np.mean(alone)) < 4 * error < 0.01
    assert abs(np.mean(naive)) > 0.05


def _serve(left_s, length_s, rng, *, goes_on: bool):
    """Returns the work of the clients in one slice: how long each transaction in progress lasts beyond it, the total
    time of the clients, and the number of transactions that ended.
    """
    client_s, done, open_s = 0.0, 0, []
    for left in left_s:
        at = float(left)
        done += at > 0
        while at < SLICE_S:
            at += length_s * float(rng.uniform(0.9, 1.1))
            done += 1
        over = at - SLICE_S
        done -= goes_on  # it ends in the next slice, which is the arm's as well
        client_s += SLICE_S if goes_on else at
        open_s.append(over if goes_on else 0.0)
    return np.array(open_s), client_s, int(done)


def _naive(rows: list[SliceRow], owners: list[str], arm: str) -> float:
    """Returns the logarithm of a ratio: the arm's speed in slices that follow one of its own, to its speed in slices
    that follow the other arm's.
    """
    measured = [row for row in rows if row.phase == "measure"]
    own = [row for row in measured if owners[round(row.planned_begin_s / SLICE_S) - 1] == arm]
    other = [row for row in measured if row not in own]
    speeds = [sum(row.transactions for row in part) / sum(row.client_s for row in part) for part in (own, other)]
    return math.log(speeds[0] / speeds[1])


def test_the_share_of_slices_after_the_other_arm_is_three_quarters():
    """With this share, the loss in a slice after the other arm's is converted to the loss of a whole trial."""
    plan = interleaved_plan(blocks=50)
    measured = [turn for block in turns(plan) for turn in block[2 * WARMUP_ROUNDS :]]
    assert len(measured) == 50 * 2 * OWN_SLICES
    assert np.mean([not turn.follows(turn.planned.arm) for turn in measured]) == pytest.approx(0.75, abs=0.02)


def test_trials_that_alternate_take_their_time_together():
    assert analysed(losing({}), points=POINTS).block_s == pytest.approx(2 * LOAD_S.total_seconds())
