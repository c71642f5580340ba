"""Tests that numbers of another harness get the verdict of a study if a coin ordered the runs, and otherwise none."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from pgtrial.judge.blocks import MOST_BLOCKS
from pgtrial.judge.comparing import Asked, claims_of, runs_of
from pgtrial.judge.draw import draw
from pgtrial.judge.numbers import Numbers
from pgtrial.judge.words import in_words
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Spending
from pgtrial.statistics import p9
from pgtrial.verdict.speed import goodput
from tests.verdict.studies import make_plan, noisy, run, verdict_of

from .tables import ONE_SETUP, drawn_series, judged, text_of

DRAWN = {"drawn": True, "baseline": "old"}
BLOCKS = "block,arm,value"


def line_of(judgement, label):
    """Returns the text of the first line with a label."""
    words = in_words(judgement)
    lines = [*(line for headline in words.headlines for line in headline.lines), *words.lines]
    return next(line.text for line in lines if line.label == label)


@pytest.mark.parametrize("blocks", [6, 7, 8])
def test_at_most_5_per_cent_of_all_drawn_orders_call_equal_arms_different(blocks):
    """Each assignment of the arms to the two places of each block is as probable as any other, and the values belong
    to the places if the arms do not differ."""
    drift = np.cumsum(np.random.default_rng(blocks).normal(0.05, 0.1, 2 * blocks))
    values = (1000 * np.exp(drift)).tolist()
    called = 0
    for swapped in product((False, True), repeat=blocks):
        arms = [arm for swap in swapped for arm in (("b", "a") if swap else ("a", "b"))]
        numbers = Numbers("runs.csv", "value", arms, values, range(2, 2 + len(arms)))
        (claim,) = claims_of(runs_of(numbers, Asked(drawn=True, baseline="a")))
        called += claim.verdict in ("better", "worse")
    assert called <= 0.05 * 2**blocks
    assert called > 0 or blocks < 8


@pytest.mark.parametrize("effect", [1.0, 1.04, 1.1])
def test_a_drawn_order_has_the_verdict_and_the_interval_of_a_study(tmp_path, effect):
    spending = Spending(end=12, kept=p9.KEPT)
    plan = make_plan(("old", "new"), blocks=12).model_copy(update={"looks": p9.looks(12), "spending": spending})
    trials = run(plan, noisy({"new": effect}))
    (of_study,) = verdict_of(plan, trials).primary
    rows = [(trial.block, trial.arm, goodput(plan, trial)) for trial in trials]
    (claim,) = judged(tmp_path, text_of(rows, BLOCKS), **DRAWN).primary
    same = (
        "verdict",
        "difference",
        "mean",
        "blocks",
        "looks",
        "within_margin",
        "more_blocks",
        "more_chance",
        "changing",
    )
    assert {key: getattr(claim, key) for key in same} == {key: getattr(of_study, key) for key in same}


def test_three_arms_share_the_error(tmp_path):
    rows = drawn_series(12, {"old": 1.0, "new": 1.1, "other": 1.0})
    judgement = judged(tmp_path, text_of(rows, BLOCKS), **DRAWN)
    assert [(claim.arm, claim.family) for claim in judgement.primary] == [("new", 2), ("other", 2)]
    assert judgement.primary[0].verdict == "better"
    assert judgement.primary[1].verdict != "better"


def test_one_setup_split_in_two_arms_is_not_told_apart(tmp_path):
    split = {
        "one after the other": [("a", value) for value in ONE_SETUP[:3]] + [("b", value) for value in ONE_SETUP[3:]],
        "in turn": [("ab"[place % 2], value) for place, value in enumerate(ONE_SETUP)],
        "back and forth": [("abbaab"[place], value) for place, value in enumerate(ONE_SETUP)],
    }
    for pattern, rows in split.items():
        judgement = judged(tmp_path, text_of(rows))
        assert (judgement.pattern, judgement.exit_status) == (pattern, 2)
        assert [claim.verdict for claim in judgement.primary] == ["withheld"]
        assert judgement.drift is not None
        assert judgement.drift.each_run == pytest.approx(0.12, abs=0.02)
        assert "but the runs did drift, and the drift alone makes" in line_of(judgement, "interval")
    drift = judged(tmp_path, text_of(split["one after the other"])).drift
    assert drift.by_arm["b"] > 0.35


def test_three_drawn_blocks_of_one_setup_are_too_few(tmp_path):
    rows = [("ab"[place % 2], value) for place, value in enumerate(ONE_SETUP)]
    judgement = judged(tmp_path, text_of(rows), drawn=True)
    assert ([claim.verdict for claim in judgement.primary], judgement.exit_status) == (["undecided"], 2)
    assert "a verdict needs at least 6 blocks" in line_of(judgement, "interval")
    assert "with --blocks 6" in line_of(judgement, "next")


def test_a_planted_difference_of_10_per_cent_is_found_in_a_drawn_order(tmp_path):
    judgement = judged(tmp_path, text_of(drawn_series(12, {"old": 1.0, "new": 1.1}), BLOCKS), **DRAWN)
    (claim,) = judgement.primary
    assert (claim.verdict, judgement.exit_status) == ("better", 0)
    assert claim.difference.low < 0.1 < claim.difference.high
    assert "12 blocks were planned before the first run" in line_of(judgement, "holds if")


def test_less_may_be_better(tmp_path):
    rows = text_of(drawn_series(12, {"old": 1.0, "new": 1.1}), "block,arm,latency")
    judgement = judged(tmp_path, rows, "latency", better="less", **DRAWN)
    (claim,) = judgement.primary
    assert (claim.verdict, judgement.exit_status) == ("worse", 1)
    assert claim.difference.low < 0.1 < claim.difference.high
    assert in_words(judgement).headlines[0].text.startswith("the latency of new is ")
    assert in_words(judgement).headlines[0].text.endswith("% higher than that of old")


def test_equal_arms_are_equivalent_within_a_wide_margin(tmp_path):
    rows = drawn_series(18, {"old": 1.0, "new": 1.0}, noise=0.01)
    judgement = judged(tmp_path, text_of(rows, BLOCKS), margin=0.05, **DRAWN)
    assert ([claim.verdict for claim in judgement.primary], judgement.exit_status) == (["equivalent"], 0)


def test_a_loss_below_the_margin_is_no_regression(tmp_path):
    rows = drawn_series(18, {"old": 1.0, "new": 0.96}, noise=0.01)
    judgement = judged(tmp_path, text_of(rows, BLOCKS), margin=0.1, **DRAWN)
    assert ([claim.verdict for claim in judgement.primary], judgement.exit_status) == (["worse"], 0)


def test_before_and_after_is_never_better_however_large_the_difference(tmp_path):
    noise = np.exp(np.random.default_rng(2).normal(0, 0.01, 24)).tolist()
    rows = [("old", 1000 * of) for of in noise[:12]] + [("new", 1500 * of) for of in noise[12:]]
    judgement = judged(tmp_path, text_of(rows))
    (claim,) = judgement.primary
    assert (claim.verdict, judgement.exit_status) == ("withheld", 2)
    assert claim.difference.low < 0.5 < claim.difference.high
    assert "The arms ran one after the other (old, then new)" in line_of(judgement, "because")
    assert "only if nothing drifted" in line_of(judgement, "interval")
    assert "not chance alone; the cause is the arms, or another change between the runs" in line_of(
        judgement, "interval"
    )
    assert "pgtrial judge --draw old,new --blocks 6" in line_of(judgement, "next")
    with pytest.raises(StudyError, match="without a column block"):
        judged(tmp_path, text_of(rows), drawn=True)


def test_equal_arms_of_a_fixed_order_are_equal_within_their_noise(tmp_path):
    values = [1000, 1030, 990, 1010, 980, 1020, 1005, 995]
    rows = [("old", value) for value in values[:4]] + [("new", value) for value in values[4:]]
    judgement = judged(tmp_path, text_of(rows))
    assert judgement.primary[0].verdict == "withheld"
    assert "the runs of one arm differ by as much, so that the arms may be equal" in line_of(judgement, "interval")


@pytest.mark.parametrize("arms", ["ab" * 12, "abba" * 6])
def test_an_order_that_no_coin_draws_is_not_taken_for_a_drawn_one(tmp_path, arms):
    rows = [(arm, 1000 + 500 * (arm == "b") + place) for place, arm in enumerate(arms)]
    judgement = judged(tmp_path, text_of(rows), drawn=True)
    assert ([claim.verdict for claim in judgement.primary], judgement.exit_status) == (["withheld"], 2)
    assert "in all 12 blocks" in judgement.withheld[0]
    assert "which a coin does once in 2,048 times" in judgement.withheld[0]


def test_blocks_that_lie_apart_in_time_were_not_drawn(tmp_path):
    rows = [(block, arm, 1000 + 100 * (arm == "b"), 100 * (arm == "b") + block) for block in range(6) for arm in "ab"]
    judgement = judged(tmp_path, text_of(rows, "block,arm,value,time"), drawn=True)
    assert judgement.primary[0].verdict == "withheld"
    assert "the arms ran one after the other (a, then b), so that blocks lie apart" in judgement.withheld[0]


@pytest.mark.parametrize(
    ("blocks", "arms"),
    [("123123" + "45674567", "aaabbb" + "bbbbaaaa"), ("11223344" * 2, "abbabaab" + "abbaabab")],
    ids=["several runs of an arm at a time", "two series that number their blocks alike"],
)
def test_blocks_with_runs_of_others_between_their_own_have_no_verdict(tmp_path, blocks, arms):
    rows = [(block, arm, 1000 + 500 * (arm == "b")) for block, arm in zip(blocks, arms, strict=True)]
    judgement = judged(tmp_path, text_of(rows, BLOCKS), drawn=True)
    assert judgement.primary[0].verdict == "withheld"
    assert "runs of other blocks lie between those of block 1, so that a drift" in judgement.withheld[0]


def test_six_blocks_in_turn_are_judged_with_a_warning(tmp_path):
    rows = [(arm, 1000 + 500 * (arm == "b") + place) for place, arm in enumerate("ab" * 6)]
    judgement = judged(tmp_path, text_of(rows), drawn=True)
    assert judgement.primary[0].verdict == "better"
    assert "the arms ran in turn in all 6 blocks" in line_of(judgement, "watch out")


def test_several_values_in_a_block_are_compared_by_their_mean(tmp_path):
    single = drawn_series(8, {"old": 1.0, "new": 1.1})
    double = [(block, arm, value * factor) for block, arm, value in single for factor in (0.5, 1.5)]
    one, two = (judged(tmp_path, text_of(rows, BLOCKS), **DRAWN) for rows in (single, double))
    assert one.primary[0].difference.value == pytest.approx(two.primary[0].difference.value)
    assert "8 blocks of 2 arms, the mean of 2 runs" in line_of(two, "measured")


def test_blocks_beyond_the_planned_ones_are_read_as_those_of_a_study_that_goes_on(tmp_path):
    rows = text_of(drawn_series(16, {"old": 1.0, "new": 1.02}), BLOCKS)
    judgement = judged(tmp_path, rows, planned=8, **DRAWN)
    assert (judgement.blocks, judgement.blocks_planned) == (16, 8)
    looks = judgement.primary[0].looks
    assert [look.blocks for look in looks] == [8, 10, 12, 15]
    assert sum(look.alpha for look in looks) == pytest.approx(p9.Spending(8).until(15))


def test_six_numbers_of_one_arm_show_their_spread_and_what_they_could_tell(tmp_path):
    judgement = judged(tmp_path, text_of(("a", value) for value in ONE_SETUP))
    (level,) = judgement.levels
    assert (level.median, level.low, level.high, judgement.exit_status) == (155_000, 123_000, 206_000, 0)
    assert judgement.scatter == pytest.approx(np.std(np.log(ONE_SETUP), ddof=1))
    assert in_words(judgement).headlines[0].text == "a alone: 6 runs, which compare nothing"
    assert "6 blocks in a drawn order find a difference of 75%" in line_of(judgement, "noise")
    assert "these runs have no constant level" in line_of(judgement, "drift")
    assert judged(tmp_path, text_of(("a", value) for value in ONE_SETUP[:5])).exit_status == 2


def test_single_runs_say_nothing_of_the_noise(tmp_path):
    judgement = judged(tmp_path, text_of([("a", 1), ("b", 2)]))
    assert (judgement.primary[0].verdict, judgement.scatter) == ("withheld", None)
    assert "a single run of an arm does not show its noise" in line_of(judgement, "interval")
    alone = judged(tmp_path, text_of([("a", 1)]))
    assert (alone.exit_status, in_words(alone).headlines[0].text) == (2, "a alone: 1 run, which compare nothing")


@pytest.mark.parametrize("values", [[5] * 12, [5, 5, 7] * 4, [1e-90, 1e90] * 6])
@pytest.mark.parametrize("drawn", [True, False])
def test_constant_and_extreme_values_are_judged(tmp_path, values, drawn):
    arms = "abbaabababba"
    judgement = judged(tmp_path, text_of(zip(arms, values, strict=True)), drawn=drawn)
    assert in_words(judgement).sentences
    assert judgement.model_dump_json()


def test_questions_that_do_not_fit_are_refused(tmp_path):
    two, one = text_of([("old", 1), ("new", 2)]), text_of([("old", 1)])
    with pytest.raises(StudyError, match="has no arm 'od', which --baseline names; did you mean 'old'"):
        judged(tmp_path, two, baseline="od")
    with pytest.raises(StudyError, match="has the single arm 'old', and --order drawn is about the order of two"):
        judged(tmp_path, one, drawn=True)
    many = text_of([("old", 1), ("new", 2)] * (MOST_BLOCKS + 1))
    with pytest.raises(
        StudyError, match="has 1,001 blocks, and pgtrial judges at most 1,000; if each value stands for"
    ):
        judged(tmp_path, many, drawn=True)
    assert "give one value for each run" in line_of(judged(tmp_path, many), "watch out")


def test_a_gap_is_refused_whatever_the_order_is(tmp_path):
    text = text_of([(1, "a", 5), (1, "b", 6), (2, "a", 5)], BLOCKS)
    for drawn in (True, False):
        with pytest.raises(
            StudyError,
            match="line 4: block 2 has 1 value, 1 of a, 0 of b; a block must have equally many values of each",
        ):
            judged(tmp_path, text, drawn=drawn)


def test_a_drawn_order_has_each_arm_once_in_each_block_and_is_that_of_its_seed():
    drawn = draw(["a", "b", "c"], 600, 7)
    assert all(sorted(order) == ["a", "b", "c"] for order in drawn.blocks)
    assert len({tuple(order) for order in drawn.blocks}) == math.factorial(3)
    assert drawn == draw(["a", "b", "c"], 600, 7) != draw(["a", "b", "c"], 600, 8)
    for arms, why in (
        (["a"], "does not name two arms"),
        (["a", ""], "does not name two arms"),
        (["a", "a"], "names 'a' twice"),
    ):
        with pytest.raises(StudyError, match=why):
            draw(arms, 6, 1)
