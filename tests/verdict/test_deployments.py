"""Several deployments of each arm: the pair of them is the unit, since a deployment keeps its peculiarities."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy

from pgtrial.conduct.planning.deployments import share_out
from pgtrial.model.records.claims import BlockRatio
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.statistics import p8, p9
from pgtrial.statistics.paired_t import t_interval
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.units import Units
from tests.verdict.studies import verdict_of

from .studies import POINT, deployed, peculiar, run

SECOND = POINT.model_copy(update={"clients": 32})


def blocks_of(plan: Plan) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for block, place in {trial.block: trial.place for trial in plan.trials}.items():
        found.setdefault(place, []).append(block)
    return found


# ---- how blocks are shared out


@pytest.mark.parametrize("number", [2, 3, 4, 7, 8, 12, 20])
def test_every_pair_has_as_many_blocks_and_a_block_is_all_on_one_number(number):
    plan = deployed(number)
    assert sorted(blocks_of(plan)) == list(range(number))
    assert {len(blocks) for blocks in blocks_of(plan).values()} == {4}
    assert len({(trial.block, trial.place) for trial in plan.trials}) == plan.max_blocks


def test_pairs_take_turns_in_rounds_of_random_order():
    plan = deployed(6, 5)
    places = [plan.trials[2 * block].place for block in range(plan.max_blocks)]
    rounds = [tuple(places[start:end]) for start, end in pairwise(range(0, 31, 6))]
    assert all(sorted(each) == list(range(6)) for each in rounds)
    assert len(set(rounds)) > 1
    assert share_out(plan.trials, 6, seed=3) == plan.trials
    assert share_out(plan.trials, 6, seed=4) != plan.trials


def test_what_a_look_reads_is_complete_before_it_and_the_rest_not_begun():
    plan = deployed(12, 4)
    assert plan.looks == [8 * 4, 10 * 4, 12 * 4]
    begun = {block: trial.place for trial in plan.trials for block in [trial.block]}
    assert len({begun[block] for block in range(32)}) == 8
    assert len({begun[block] for block in range(32, 40)}) == 2
    assert len({begun[block] for block in range(40, 48)}) == 2


# ---- the rule


def test_the_t_interval_is_that_of_the_textbook():
    values = [0.01, 0.03, -0.02, 0.05, 0.02]
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.99)
    found = t_interval(values, 0.01)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_one_look_at_the_end_decides_few_deployments_and_not_the_blocks():
    plan = deployed(6)
    trials = run(plan, peculiar(plan, effect=0.25))
    (early,) = verdict_of(plan, trials[:-1]).primary
    assert (early.verdict, early.looks, early.unit) == ("undecided", [], "deployment")
    (claim,) = verdict_of(plan, trials).primary
    assert (claim.verdict, claim.blocks, len(claim.ratios)) == ("better", 6, 6)
    logs = [ratio.log_ratio for ratio in claim.ratios if ratio.log_ratio is not None]
    expected = t_interval(logs)
    assert claim.difference is not None
    assert claim.difference.low == pytest.approx(math.expm1(expected.low))
    assert claim.looks[0].alpha == 0.05


def test_from_eight_on_deployments_are_the_blocks_of_the_rule():
    plan = deployed(12)
    trials = run(plan, peculiar(plan, effect=0.25))
    (claim,) = verdict_of(plan, trials).primary
    assert [look.blocks for look in claim.looks] == [8, 10, 12]
    assert claim.looks[0].alpha == p9.Spending(12).until(8)
    (first_eight,) = comparisons(Grid(plan, [trial for trial in trials if trial.block < 32]))
    (one_less,) = comparisons(Grid(plan, [trial for trial in trials if trial.block < 31]))
    assert (first_eight.decided, one_less.decided) == (True, False)


def test_with_fewer_than_four_the_block_stays_the_unit():
    plan = deployed(3)
    (claim,) = verdict_of(plan, run(plan, peculiar(plan, effect=0.3))).primary
    assert (claim.unit, len(claim.ratios)) == ("block", 12)


def test_a_deployment_counts_once_all_its_blocks_are_there():
    plan = deployed(4, 2)
    units = Units(plan)
    ratios = [
        BlockRatio(block=block, log_ratio=float(block), counted=block < 7, failed=[], order=[]) for block in range(8)
    ]
    pooled = units.pooled(ratios)
    missing = plan.trials[2 * 7].place
    assert {ratio.block: ratio.counted for ratio in pooled} == {k: k != missing for k in range(4)}
    assert {ratio.block: ratio.log_ratio for ratio in pooled} == {
        k: sum(blocks) / 2 for k, blocks in blocks_of(plan).items()
    }
    assert units.blocks([0, 1]) == {*blocks_of(plan)[0], *blocks_of(plan)[1]}


def test_several_arms_and_load_points_share_the_error_of_the_one_look():
    plan = deployed(5, arms=("a", "b", "c"), points=(POINT, SECOND))
    result = verdict_of(plan, run(plan, peculiar(plan)))
    assert [claim.looks[0].claim_alpha for claim in result.primary] == [0.025] * 2
    assert {claim.family for claim in result.by_load_point} == {2}
    assert [look.blocks for look in result.looks] == [5]


@pytest.mark.parametrize(("number", "name"), [(6, "95% t interval"), (8, "95% sequential interval")])
def test_the_sentence_counts_deployments(number, name):
    plan = deployed(number)
    result = verdict_of(plan, run(plan, peculiar(plan, effect=0.25)))
    assert f"{name} " in result.sentences[0]
    assert f"{number} deployments of each arm with 4 blocks of 2 x 6s each" in result.sentences[0]
    assert StudyResult.model_validate_json(result.model_dump_json()) == result


def test_undecided_is_told_with_the_deployments_that_would_decide():
    plan = deployed(6)
    result = verdict_of(plan, run(plan, peculiar(plan, effect=0.02, seed=2)))
    (claim,) = result.primary
    assert claim.verdict == "undecided"
    assert "Undecided after 6 deployments" in result.sentences[0]
    assert claim.more_blocks is not None
    assert f"about {claim.more_blocks} more deployments" in result.sentences[0]
    assert claim.more_s == claim.more_blocks * 4 * result.block_s


# ---- what it is for

_STUDIES = 500
_NOISE = 0.02


def word(units: Units, means: list[float], margin: float) -> str:
    """Returns the verdict after all planned looks for which there are enough deployments."""
    limits = p8.ratio_limits(margin)
    reached = [look for look in units.looks() if look.blocks <= len(means)]
    reader = units.reader()
    readings = [reader.read(look, range(look.blocks), means[: look.blocks], limits, 1) for look in reached]
    return p8.conclude(readings).verdict


def false_verdicts(number: int, each: int, own: float) -> float:
    """Returns the share of studies of two equal products that come to a false verdict. The deployments' speeds differ
    with the standard deviation `own` in logarithms.
    """
    rng = np.random.default_rng(11)
    units = Units(deployed(number, each))
    wrong = 0
    for _ in range(_STUDIES):
        pairs = own * math.sqrt(2) * rng.standard_normal(number)
        means = pairs + _NOISE * rng.standard_normal((each, number)).mean(axis=0)
        wrong += word(units, list(means), 1e-6) in ("better", "worse")
    return wrong / _STUDIES


@pytest.mark.parametrize("own", [0.01, 0.02])
@pytest.mark.parametrize("number", [4, 6, 8, 12])
def test_peculiar_deployments_of_one_product_are_not_taken_for_a_difference(number, own):
    assert false_verdicts(number, 4, own) <= 0.07


@pytest.mark.parametrize(("own", "at_least"), [(0.01, 0.4), (0.02, 0.6)])
def test_the_block_rule_on_one_pair_would_take_them_for_one(own, at_least):
    rng = np.random.default_rng(11)
    studies = 300
    pair = own * math.sqrt(2) * rng.standard_normal(studies)
    wrong = sum(
        p8.decide(each + _NOISE * rng.standard_normal(27), 1e-6, planned=[8, 12, 18, 27]).verdict != "undecided"
        for each in pair
    )
    assert wrong / studies > at_least


def test_a_true_difference_is_found():
    rng = np.random.default_rng(5)
    units = Units(deployed(8))
    means = 0.05 + 0.014 * rng.standard_normal((200, 8))
    assert sum(word(units, list(each), 0.01) == "better" for each in means) > 180
