"""The rule P8: its table, its interval against two oracles, its looks, its error on noise that breaks other rules."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.statistics import p8
from pgtrial.statistics.rules import P8, Looks

from . import oracle

TABLE = [  # blocks, alpha, largest min(W+, W-) that rejects, level attained
    (8, 0.00782, 0, 0.0078),
    (12, 0.0085, 6, 0.0068),
    (18, 0.0080, 26, 0.0077),
    (27, 0.0070, 79, 0.0070),
    (40, 0.0060, 208, 0.0058),
    (60, 0.0045, 533, 0.0044),
    (90, 0.0027, 1308, 0.0027),
    (135, 0.0018, 3179, 0.0018),
    (200, 0.0012, 7410, 0.0012),
    (300, 0.0008, 17553, 0.0008),
]

log_ratios = st.lists(
    st.one_of(
        st.floats(-0.2, 0.2),
        st.sampled_from([0.0, 0.01, -0.01, math.inf, -math.inf, p8.WORST, -p8.WORST]),
    ),
    min_size=8,
    max_size=45,
)


def fewest_blocks(claims, planned=()):
    return Looks(P8(), tuple(planned)).fewest(claims)


def blocks_needed(y, margin, planned=()):
    return Looks(P8(), tuple(planned)).needed(y, margin, 1)


def chance_of_decision(y, margin, blocks, planned=()):
    return Looks(P8(), tuple(planned)).chance(y, margin, 1, blocks)


def attained_level(blocks: int, alpha: float) -> float:
    """Returns the two-sided error really spent at nominal `alpha`; the statistic is discrete, so at most alpha."""
    threshold = p8.rejection_threshold(blocks, alpha)
    return 2 * float(p8.null_distribution(blocks)[threshold]) if threshold >= 0 else 0.0


@pytest.mark.parametrize(("blocks", "alpha", "threshold", "attained"), TABLE)
def test_each_look_rejects_at_the_tabled_threshold_and_attains_the_tabled_level(blocks, alpha, threshold, attained):
    assert p8.rejection_threshold(blocks, alpha) == threshold
    assert round(attained_level(blocks, alpha), 4) == attained


def test_the_frozen_looks_are_the_table_and_go_on_without_end():
    looks = list(islice(p8.open_ended_looks(), 13))
    assert [(look.blocks, look.alpha) for look in looks[:10]] == [row[:2] for row in TABLE]
    assert [(look.blocks, look.alpha) for look in looks[10:]] == [(450, 0.00085), (675, 0.000425), (1013, 0.0002125)]


@pytest.mark.parametrize("claims", [1, 2, 3, 6, 24])
def test_all_looks_and_claims_together_never_spend_more_than_five_percent(claims):
    tabled = sum(claims * attained_level(look.blocks, look.alpha / claims) for look in p8.schedule(p8.LOOKS))
    open_end = sum(look.alpha for look in islice(p8.open_ended_looks(), 10, 80))
    assert tabled + open_end <= 0.05
    if claims == 1:
        assert round(tabled, 4) == 0.0461


@pytest.mark.parametrize("max_blocks", [8, 10, 12, 13, 59, 450, 500])
def test_any_plan_spends_at_most_five_percent(max_blocks):
    for claims in range(1, 5):
        planned = p8.looks(max_blocks, claims)
        assert planned == sorted(set(planned))
        assert planned[-1:] == ([max_blocks] if max_blocks >= p8.first_look(claims) else [])
        spent = sum(claims * attained_level(look.blocks, look.alpha / claims) for look in p8.schedule(planned))
        assert spent <= 0.05


@pytest.mark.parametrize(("claims", "first"), [(1, 8), (2, 9), (3, 10), (4, 10), (5, 11), (8, 11)])
def test_the_first_look_is_the_first_block_that_can_decide(claims, first):
    assert p8.first_look(claims) == first
    alpha = p8.ALPHAS[0] / claims
    assert p8.interval(np.full(first, 0.1), alpha).low > 0
    assert p8.interval(np.full(first - 1, 0.1), alpha).low == -math.inf
    assert p8.looks(40, claims) == [first, *(look for look in (12, 18, 27, 40) if look > first)]
    assert p8.looks(first - 1, claims) == []


def test_an_end_between_two_looks_is_a_look_with_the_next_error():
    assert p8.looks(7) == []
    assert p8.looks(8) == [8]
    assert p8.looks(10) == [8, 10]
    assert p8.schedule([8, 10]) == [p8.Look(8, 0.00782), p8.Look(10, 0.0085)]
    assert p8.looks(40) == [8, 12, 18, 27, 40]


@given(log_ratios, st.sampled_from([0.00782, 0.0085, 0.006, 0.05, 0.0013, 0.2]))
def test_the_interval_is_the_oracles(y, alpha):
    found = p8.interval(y, alpha)
    assert (found.low, found.estimate, found.high) == pytest.approx(oracle.interval(y, alpha), abs=1e-12)


@given(log_ratios, st.sampled_from([0.005, 0.01, 0.05]), st.sampled_from([1, 2, 6]))
def test_the_decision_is_the_oracles(y, margin, claims):
    decision = p8.decide(y, margin, claims=claims)
    word, blocks = oracle.verdict(y, margin, claims)
    assert decision.verdict == word
    if word != "undecided":
        assert next(r.look.blocks for r in decision.readings if r.verdict != "undecided") == blocks
    assert decision.shown is not None or word != "undecided"


@given(st.lists(st.floats(-0.1, 0.12), min_size=8, max_size=50), st.sampled_from([0.01, 0.03]))
def test_the_forecast_of_blocks_is_the_oracles(y, margin):
    assert blocks_needed(y, margin) == oracle.blocks_needed(y, margin)


@given(log_ratios)
def test_swapping_the_arms_mirrors_the_interval_and_the_verdict(y):
    mirror = {"better": "worse", "worse": "better"}
    # as ratios, a larger margin has bounds that do not mirror each other: 1 + m and 1 - m
    there, back = p8.decide(y, 1e-300), p8.decide([-value for value in y], 1e-300)
    assert back.verdict == mirror.get(there.verdict, there.verdict)
    assert p8.interval(y, 0.05).low == pytest.approx(-p8.interval([-value for value in y], 0.05).high, abs=1e-12)


@pytest.mark.parametrize("blocks", [8, 12, 27, 60, 300])
def test_the_interval_excludes_no_difference_exactly_when_scipys_exact_test_rejects(blocks):
    rng = np.random.default_rng(blocks)
    for shift in (0.0, 0.2, 0.4, 0.8):
        for _ in range(8):
            y = rng.standard_normal(blocks) + shift
            p = scipy.stats.wilcoxon(y, method="exact").pvalue
            for alpha in (0.0085, 0.05):
                found = p8.interval(y * 0.1, alpha)
                assert (p <= alpha) == (found.low > 0 or found.high < 0)


def test_zeros_and_ties_make_the_rule_more_cautious_never_less():
    # all 2^8 signs of tied magnitudes: how often is a difference claimed?
    tied = np.array([0.0, 0.01, 0.01, 0.01, 0.02, 0.02, 0.03, 0.03])
    signs = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    for magnitudes in (tied, tied + 0.01, np.full(8, 0.02)):
        for alpha in (0.00782, 0.05, 0.2):
            rejected = [
                p8.interval(row * magnitudes, alpha).word(p8.ratio_limits(1e-9)) != "undecided" for row in signs
            ]
            assert np.mean(rejected) <= alpha


def _nasty_traces(trials: int) -> dict[str, np.ndarray]:
    """Returns the logarithms of tps of equal arms. The noise is such that tests of means, or tests that use single
    seconds, find differences.
    """
    rng = np.random.default_rng(20261120)
    innovations = rng.standard_normal(trials)
    ar1 = np.zeros(trials)
    for i in range(1, trials):
        ar1[i] = 0.7 * ar1[i - 1] + 0.03 * innovations[i]
    stalls = np.where(rng.random(trials) < 0.05, -rng.exponential(0.25, trials), 0.0)
    return {
        "autocorrelated": ar1,
        "drifting": np.cumsum(0.05 * rng.standard_normal(trials)),
        "heavy-tailed with stalls": 0.03 * rng.standard_t(2, trials) + stalls,
        "every second trial in a checkpoint": -0.05 * (np.arange(trials) % 2) + 0.01 * rng.standard_normal(trials),
        "one trial in ten failed": np.where(rng.random(trials) < 0.1, -p8.WORST, 0.03 * rng.standard_normal(trials)),
        "all at once": np.cumsum(0.03 * innovations) - 0.05 * (np.arange(trials) % 2) + 0.1 * rng.standard_t(2, trials),
    }


@pytest.mark.parametrize("name", list(_nasty_traces(4)))
def test_identical_arms_are_called_different_in_at_most_five_percent_of_re_randomised_studies(name):
    trace = _nasty_traces(80)[name].reshape(-1, 2)
    differences = trace[:, 0] - trace[:, 1]
    rng = np.random.default_rng(7)
    studies = 600
    false = sum(
        p8.decide(differences * rng.choice([-1, 1], len(differences)), 1e-9).verdict != "undecided"
        for _ in range(studies)
    )
    assert false / studies <= 0.05


def test_a_real_difference_is_found_with_the_right_sign():
    rng = np.random.default_rng(3)
    words = [p8.decide(0.1 + 0.04 * rng.standard_normal(27), 0.01).verdict for _ in range(100)]
    assert words.count("better") >= 99
    assert "worse" not in words


def test_identical_arms_with_little_noise_are_equivalent():
    rng = np.random.default_rng(4)
    words = [p8.decide(0.004 * rng.standard_normal(40), 0.01).verdict for _ in range(100)]
    assert words.count("equivalent") >= 95


def test_a_failed_trial_is_the_worst_rank_and_is_not_dropped():
    steady = [0.3 + 0.01 * i for i in range(7)]
    assert p8.decide([*steady, 0.35], 0.01).verdict == "better"
    with_failure = p8.decide([*steady, -math.inf], 0.01)
    assert with_failure.verdict == "undecided"
    assert with_failure.shown is not None
    assert with_failure.shown.interval.low == -p8.WORST
    always = p8.decide([-math.inf] * 8, 0.01)
    assert always.verdict == "worse"
    assert always.shown is not None
    assert always.shown.interval.estimate == -p8.WORST


def test_too_few_blocks_for_the_claims_leave_the_interval_unbounded():
    y = [0.5 + 0.01 * i for i in range(8)]
    assert p8.decide(y, 0.01, claims=1).verdict == "better"
    for claims in (2, 3, 8):
        decision = p8.decide(y, 0.01, claims=claims)
        assert decision.verdict == "undecided"
        assert decision.shown is not None
        assert decision.shown.interval.low == -math.inf
        assert decision.shown.interval.established_margin == math.inf
    assert fewest_blocks(1) == 8
    assert fewest_blocks(8) == 12
    assert fewest_blocks(3, planned=[8, 10]) == 10
    assert fewest_blocks(1, planned=[6]) == 8


def test_before_the_first_look_nothing_is_decided_but_forecast():
    y = [0.20, 0.22, 0.19, 0.21, 0.2]
    decision = p8.decide(y, 0.01)
    assert (decision.readings, decision.verdict, decision.shown) == ((), "undecided", None)
    assert blocks_needed(y, 0.01, planned=[8]) == 8
    assert blocks_needed(y[:2], 0.01) is None


def test_a_forecast_beyond_the_table_is_unknown():
    rng = np.random.default_rng(5)
    assert blocks_needed(0.3 * rng.standard_normal(20), 0.001) in (None, *p8.LOOKS)
    assert blocks_needed([0.5, -0.5] * 6, 0.001) is None


def test_the_first_deciding_look_fixes_the_word_and_later_looks_sharpen_the_interval():
    rng = np.random.default_rng(6)
    y = 0.2 + 0.03 * rng.standard_normal(40)
    decision = p8.decide(y, 0.01, planned=[8, 12, 18, 27, 40])
    assert decision.verdict == "better"
    assert decision.shown is not None
    assert decision.shown.look.blocks == 40
    assert decision.shown is decision.readings[-1]


def test_an_effect_that_vanishes_later_is_reported_as_changing():
    y = [0.05 + 0.001 * i for i in range(8)] + [-0.05 - 0.001 * i for i in range(10)]
    decision = p8.decide(y, 0.01, planned=[8, 18])
    assert decision.verdict == "better"
    assert decision.shown is not None
    assert decision.shown.look.blocks == 8
    assert decision.shown is not decision.readings[-1]


def test_a_difference_smaller_than_the_margin_is_better_and_within():
    y = [0.003 + 0.0002 * i for i in range(8)]
    decision = p8.decide(y, 0.01)
    assert decision.verdict == "better"
    assert decision.shown is not None
    assert decision.shown.interval.within(0.01)


def test_an_equivalence_stands_when_a_later_look_also_finds_a_tiny_difference():
    y = [0.002, -0.002] * 4 + [0.002 + 0.0001 * i for i in range(32)]
    decision = p8.decide(y, 0.01, planned=[8, 40])
    assert decision.verdict == "equivalent"
    assert decision.shown is not None
    assert decision.shown.look.blocks == 40


@pytest.mark.parametrize("y", [[], [math.nan], [0.1, math.nan, 0.2]])
def test_an_interval_of_nothing_or_of_no_number_is_an_error(y):
    with pytest.raises(ValueError, match="at least one block"):
        p8.interval(y, 0.05)


@pytest.mark.parametrize(("effect", "margin"), [(0.06, 0.01), (0.0, 0.03)])
def test_the_chance_of_a_decision_is_how_often_it_comes_if_the_difference_is_as_estimated(effect, margin):
    rng = np.random.default_rng(17)
    told, found = [], []
    while len(told) < 40:
        y = effect + 0.06 * rng.standard_normal(12)
        needed = blocks_needed(y, margin, planned=[8, 12, 18, 27, 40])
        now = p8.present(y, margin, planned=[8, 12, 18, 27, 40])
        if p8.decide(y, margin).verdict != "undecided" or needed is None or needed > 40 or now is None:
            continue
        told.append(chance_of_decision(y, margin, needed, planned=[8, 12, 18, 27, 40]))
        decided = 0
        for _ in range(50):
            more = rng.standard_normal(needed - 12)
            whole = [*y, *(now.estimate + now.spread * more)]
            decided += p8.decide(whole, margin).readings[-1].verdict != "undecided"
        found.append(decided / 50)
    assert np.mean(told) == pytest.approx(np.mean(found), abs=0.1)


def test_without_spread_the_chance_is_certain_and_beyond_the_looks_unknown():
    steady = [0.2 + 1e-9 * number for number in range(5)]
    assert chance_of_decision(steady, 0.01, 8) == 1
    assert chance_of_decision(steady, 0.01, 9) is None
    assert chance_of_decision(steady[:2], 0.01, 8) is None
    assert p8.Present(12, 0.2, 0.0, 0.01).chance(18, 2.5) == 1
    assert p8.Present(12, 0.0, 1.0, 0.01).chance(12, 2.5) == 0
