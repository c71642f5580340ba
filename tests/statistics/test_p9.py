"""The rule P9: its error by enumeration, its intervals against a plain reading of its definition, and its looks."""

from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrial.statistics import p9
from pgtrial.statistics.p8 import WORST, Look, ratio_limits
from pgtrial.statistics.rules import P9, Looks, planned
from pgtrial.statistics.sign_flips import BITS, code_words, flipped_sums


def steps_of(values, end, *, claims=1, kept=p9.KEPT) -> tuple[p9.Step, ...]:
    """Returns the input of the rule P9 for one claim: a step for each planned look that has enough values."""
    spending = p9.Spending(end, kept)
    reached = [units for units in p9.looks(end, claims, kept) if units <= len(values)]
    return tuple(p9.Step(tuple(range(n)), tuple(map(float, values[:n])), spending.until(n) / claims) for n in reached)


def rejected_signs(magnitudes, end, kept, claims=1) -> np.ndarray:
    """Returns for every vector of signs whether some look finds the arm better, computed directly from the definition
    of P9.
    """
    units, spending = len(magnitudes), p9.Spending(end, kept)
    signs = 1 - 2 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1)
    rejected = np.zeros(2**units, dtype=bool)
    for look in (n for n in p9.looks(end, claims, kept) if n <= units):
        ranks = np.argsort(np.argsort(magnitudes[:look], kind="stable")) + 1
        sums = signs[:, :look] @ ranks
        may = int(spending.until(look) / claims / 2 * 2**units + 1e-9) - np.count_nonzero(rejected)
        left = np.sort(sums[~rejected])[::-1]
        if may > 0:
            rejected |= sums > (left[may] if may < len(left) else -np.inf)
    return rejected


@pytest.mark.parametrize("kept", [0.0, p9.KEPT])
@pytest.mark.parametrize("units", range(6, 15))
def test_all_looks_of_a_plan_err_in_what_they_may_spend_and_hardly_less(units, kept):
    magnitudes = np.abs(np.random.default_rng(units).standard_normal(units))
    error = 2 * np.mean(rejected_signs(magnitudes, units, kept))
    assert error <= p9.ERROR - kept
    # of 6 units only multiples of 1 / 32 are possible, and tied sums are rejected together or not at all
    assert error >= 0.75 * (p9.ERROR - kept) or (units == 6 and error == 2 / 2**6)


@pytest.mark.parametrize("units", [7, 10])
def test_in_a_study_of_one_side_worse_has_nine_tenths_of_the_error_and_both_sides_together_no_more(units):
    """The test counts the verdicts over all vectors of signs, as the reader of the rule gives them."""
    magnitudes = np.abs(np.random.default_rng(units).standard_normal(units))
    spending = p9.Spending(units, 0.0, p9.ONE_SIDED)
    rule, counts = P9(spending), {"worse": 0, "better": 0}
    for number in range(2**units):
        values = (1 - 2 * ((number >> np.arange(units)) & 1)) * magnitudes
        reader = rule.reader()
        for look in rule.schedule(p9.looks(units, 1, 0.0)):
            reading = reader.read(look, range(look.blocks), values[: look.blocks].tolist(), (0.0, 0.0), 1)
            if reading.verdict != "undecided":
                counts[reading.verdict] += 1
                break
    shares = {word: number / 2**units for word, number in counts.items()}
    assert 0.75 * 0.9 * p9.ERROR <= shares["worse"] <= 0.9 * p9.ERROR
    assert shares["better"] <= 0.1 * p9.ERROR


@pytest.mark.parametrize("claims", [1, 2, 3])
@pytest.mark.parametrize("units", [7, 9, 12])
def test_what_the_rule_rejects_is_what_its_definition_says_for_every_vector_of_signs(units, claims):
    magnitudes = np.abs(np.random.default_rng(units).standard_normal(units))
    expected = rejected_signs(magnitudes, units, p9.KEPT, claims)
    for number in range(0, 2**units, 7):
        signs = 1 - 2 * ((number >> np.arange(units)) & 1)
        steps = steps_of(signs * magnitudes, units, claims=claims)
        found = any(p9.rejects(steps[: k + 1], 0.0, 1) for k in range(len(steps)))
        assert found == expected[number]


def test_two_studies_that_share_the_error_err_in_five_percent_however_the_first_sets_the_length_of_the_second():
    """The time that a study of a gate has left over goes to the next one, whose number of blocks thus depends on the
    first one's trials. Here each result of the first study chooses for the second study the length that errs most.
    """
    rng = np.random.default_rng(5)

    def error(units: int) -> float:
        return 2 * float(np.mean(rejected_signs(np.abs(rng.standard_normal(units)), units, 0.0, claims=2)))

    first = error(8)
    together = first + (1 - first) * max(map(error, range(7, 13)))
    assert 0.75 * p9.ERROR <= together <= p9.ERROR


@pytest.mark.parametrize("end", [18, 27, 40])
def test_longer_studies_err_in_at_most_five_percent_under_any_noise(end):
    rng = np.random.default_rng(end)
    noises = {
        "normal": lambda: rng.standard_normal(end),
        "heavy-tailed": lambda: rng.standard_t(2, end),
        "with failed trials": lambda: np.where(rng.random(end) < 0.1, WORST, rng.standard_normal(end)),
        "tied": lambda: rng.integers(0, 3, end).astype(float),
        "drifting": lambda: np.cumsum(rng.standard_normal(end)),
    }
    wrong = studies = 0
    for draw in noises.values():
        for _ in range(40):
            steps = steps_of(np.abs(draw()) * rng.choice([-1.0, 1.0], end), end, kept=0.0)
            wrong += any(p9.rejects(steps[: k + 1], 0.0, side) for k in range(len(steps)) for side in (1, -1))
            studies += 1
    assert wrong <= 0.05 * studies + 3 * math.sqrt(0.05 * 0.95 * studies)


def test_the_interval_is_where_no_look_rejects():
    rng = np.random.default_rng(1)
    for _ in range(25):
        units = int(rng.integers(6, 20))
        values = 0.1 * rng.standard_normal(units) + 0.05 * rng.standard_normal()
        steps = steps_of(values, units)
        interval = p9.interval(steps)
        for bound, side in ((interval.low, 1), (interval.high, -1)):
            if math.isfinite(bound):
                for away, outside in ((-1e-9, True), (1e-9, False)):
                    theta = bound + side * away
                    assert any(p9.rejects(steps[: k + 1], theta, side) for k in range(len(steps))) == outside


@given(st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=20), st.integers(6, 30))
@settings(max_examples=25)
def test_a_later_interval_lies_within_the_earlier_ones(values, end):
    steps = steps_of(values, max(end, len(values)))
    intervals = [p9.interval(steps[: k + 1]) for k in range(len(steps))]
    for earlier, later in pairwise(intervals):
        assert earlier.low <= later.low
        assert later.high <= earlier.high


def test_swapping_the_arms_mirrors_the_interval():
    values = np.random.default_rng(2).standard_normal(18) + 0.4
    there, back = p9.interval(steps_of(values, 18)), p9.interval(steps_of(-values, 18))
    assert (back.low, back.estimate, back.high) == pytest.approx((-there.high, -there.estimate, -there.low))


def test_the_interval_contains_the_truth_in_95_percent_of_studies_whatever_it_is():
    rng = np.random.default_rng(3)
    studies, missed = 300, 0
    for _ in range(studies):
        truth = rng.choice([0.0, 0.5, 2.0])
        interval = p9.interval(steps_of(truth + rng.standard_normal(12), 12, kept=0.0))
        missed += not interval.low <= truth <= interval.high
    assert missed <= 0.05 * studies + 3 * math.sqrt(0.05 * 0.95 * studies)


@pytest.mark.parametrize(
    ("claims", "kept", "first"), [(1, 0.01, 6), (1, 0.0, 6), (2, 0.01, 7), (4, 0.0, 8), (22, 0.01, 11)]
)
def test_the_first_look_is_the_shortest_plan_in_which_equal_signs_decide(claims, kept, first):
    assert p9.first_look(claims, kept) == first
    assert p9.looks(first - 1, claims, kept) == []
    assert p9.interval(steps_of(np.linspace(0.1, 0.2, first), first, claims=claims, kept=kept)).low > 0
    assert planned(3, claims, kept).planned == (first,)


def test_the_looks_of_plans():
    assert p9.looks(6) == [6]
    assert p9.looks(10) == [8, 10]
    assert p9.looks(40) == [8, 10, 12, 15, 18, 22, 27, 33, 40]
    assert p9.looks(41)[-2:] == [40, 41]


def test_a_large_difference_is_found_at_the_eighth_unit_however_long_the_plan_is():
    for end in (8, 18, 40, 300):
        steps = steps_of(np.linspace(0.1, 0.2, 8), end)
        assert p9.interval(steps).low > 0


@pytest.mark.parametrize("end", [6, 12, 40])
@pytest.mark.parametrize("kept", [0.0, p9.KEPT])
def test_the_error_is_spent_once_and_what_is_kept_lasts_for_ever(end, kept):
    looks = Looks(P9(p9.Spending(end, kept)), tuple(p9.looks(end, kept=kept)))
    spent = [look.alpha for look in looks.schedule()]
    assert sum(spent) == pytest.approx(p9.ERROR - kept)
    later = [look.alpha for look in islice(looks.rule.plan_and_beyond(looks.planned), len(spent), 60)]
    assert sum(later) <= kept
    assert all(alpha >= 0 for alpha in (*spent, *later))
    assert looks.until(2 * end)[: len(spent)] == list(looks.planned)


def test_a_study_that_goes_on_keeps_what_it_has_decided_and_errs_no_more():
    rng = np.random.default_rng(5)
    spending, wrong, studies = p9.Spending(10), 0, 60
    looks = Looks(P9(spending), tuple(p9.looks(10)))
    for _ in range(studies):
        values = rng.standard_normal(22)
        reader = looks.rule.reader()
        readings = []
        for look in looks.rule.plan_and_beyond(looks.planned):
            if look.blocks > len(values):
                break
            readings.append(reader.read(look, range(look.blocks), values[: look.blocks], ratio_limits(0.01), 1))
        words = [reading.verdict for reading in readings]
        wrong += "better" in words or "worse" in words
        decided = [word for word in words if word != "undecided"]
        assert decided == words[len(words) - len(decided) :]
    assert wrong <= 0.05 * studies + 3 * math.sqrt(0.05 * 0.95 * studies)


def test_equal_arms_with_little_noise_are_equivalent_and_rare_stalls_forbid_it():
    rng = np.random.default_rng(4)
    quiet = 0.01 * rng.standard_normal(28)
    look, limits = Look(28, 0.0), ratio_limits(0.05)
    assert p9.read(steps_of(quiet, 28), look, limits, 1).verdict == "equivalent"
    stalls = np.where(np.arange(56) % 14 == 3, -0.9, 0.01 * rng.standard_normal(56))
    reading = p9.read(steps_of(stalls, 56), Look(56, 0.0), limits, 1)
    assert limits[0] < reading.interval.low  # the median sees nothing of them
    assert reading.verdict == "undecided"


def test_units_that_say_nothing_are_left_out():
    values = np.linspace(0.1, 0.3, 10)
    known = [0, 1, 3, 4, 5, 7, 8, 9]
    step = p9.Step(tuple(known), tuple(values[known]), p9.Spending(10).until(10))
    assert p9.interval((step,)).low > 0


@pytest.mark.parametrize("values", [[], [math.nan], [0.1, math.nan]])
def test_an_interval_of_nothing_or_of_no_number_is_an_error(values):
    with pytest.raises(ValueError, match="at least one unit"):
        p9.interval((p9.Step(tuple(range(len(values))), tuple(values), 0.01),))


@pytest.mark.parametrize("units", [1, 6, 13, 14, 15, 40, 300])
def test_flipped_sums_are_those_of_all_flips_of_the_group(units):
    scores = np.random.default_rng(units).integers(-50, 50, units)
    words = code_words(range(units))
    sums = flipped_sums(scores, words)
    assert len(sums) == 2 ** min(units, BITS)
    assert sums[0] == scores.sum()
    for flip in (0, 1, len(sums) // 3, len(sums) - 1):
        signs = [-1 if bin(int(word) & flip).count("1") % 2 else 1 for word in words]
        assert sums[flip] == (signs * scores).sum()


def test_the_flips_are_a_group_and_turn_each_unit_in_half_of_them():
    words = code_words(range(40))
    flips = np.array([[bin(int(word) & flip).count("1") % 2 for word in words] for flip in range(0, 2**BITS, 257)])
    assert ((flips[3] + flips[5]) % 2).tolist() == [
        bin(int(word) & ((3 * 257) ^ (5 * 257))).count("1") % 2 for word in words
    ]
    assert len({int(word) for word in words}) == 40
    assert np.all(code_words(range(2000))[:40] == words)


def test_the_interval_excludes_no_difference_only_where_a_look_rejects_it():
    """Here the last look rejects differences of 0.01 and less, but not zero itself."""
    steps = steps_of(np.round(np.random.default_rng(35).standard_normal(41) + 0.47108, 4), 60)
    assert not any(p9.rejections(steps, 0.0, 1))
    assert p9.rejects(steps, 0.01, 1)
    assert p9.interval(steps).low == 0.0
