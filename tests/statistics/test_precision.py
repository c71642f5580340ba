"""Tests that the predicted precision of a plan agrees with a simulation of the rule, and that the predicted spread is
that of the blocks.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.forecasts import kept

from pgtrial.statistics import p8, p9
from pgtrial.statistics.precision import ESTABLISH, EXCLUDE, FIND, POWER, blocks_for, precision
from pgtrial.statistics.rules import P8, P9, Looks, planned
from pgtrial.statistics.shamos import spread
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import measured_spread
from tests.verdict.studies import deployed, make_plan, noisy, peculiar, run

STUDIES = 400
FEWER = 150
"""The number of simulated studies by the rule P9, whose intervals take longer to compute."""


def simulated(looks: Looks, claims: int, studies: int = STUDIES) -> tuple[float, float]:
    """Returns two log-ratios for noise of variance 1: the difference that 80% of simulated studies find, and the margin
    within which 80% of them establish equivalence.
    """
    noise = np.random.default_rng(7).standard_normal((studies, looks.planned[-1]))
    found, established = [], []
    for blocks in noise:
        # a difference d shifts every interval by d: it is found at a look where d exceeds how far the bound is below 0
        reader = looks.rule.reader()
        intervals = [
            reader.read(look, range(look.blocks), blocks[: look.blocks], (-math.inf, math.inf), claims).interval
            for look in looks.schedule()
        ]
        found.append(min(-each.low for each in intervals))
        established.append(min(max(-each.low, each.high) for each in intervals))
    return float(np.quantile(found, POWER)), float(np.quantile(established, POWER))


PLANS = [(8, 1), (9, 1), (12, 1), (18, 1), (33, 1), (9, 2), (27, 2), (14, 4)]


@pytest.mark.parametrize(("blocks", "claims"), [*PLANS, (60, 1)])
def test_what_a_plan_of_p8_can_tell_is_what_a_simulation_of_the_rule_says(blocks, claims):
    looks, sd = Looks(P8(), tuple(p8.looks(blocks, claims))), 0.01
    told = precision(looks, claims, sd)
    assert told is not None
    assert told.blocks == blocks
    found, established = simulated(looks, claims)
    assert math.log1p(told.difference) / FIND.factor == pytest.approx(sd * found, rel=0.15)
    assert math.log1p(told.margin) / ESTABLISH.factor == pytest.approx(sd * established, rel=0.15)


@pytest.mark.parametrize(("blocks", "claims"), PLANS)
def test_what_a_plan_can_find_is_what_a_simulation_of_the_rule_says(blocks, claims):
    looks, sd = planned(blocks, claims), 0.01
    told = precision(looks, claims, sd)
    assert told is not None
    assert told.blocks == blocks
    found, _ = simulated(looks, claims, FEWER)
    assert math.log1p(told.difference) / FIND.factor == pytest.approx(sd * found, rel=0.15)


def test_a_gate_of_the_proposed_length_excludes_the_loss_in_four_of_five_cases():
    margin, sd, gates = 0.06, 0.04, 100
    blocks = blocks_for(margin, 1, sd, promise=EXCLUDE)
    assert blocks is not None
    rule = P9(p9.Spending(blocks, 0.0, p9.ONE_SIDED))
    looks = rule.schedule(p9.looks(blocks, 1, 0.0))
    passed = 0
    for values in EXCLUDE.factor * sd * np.random.default_rng(7).standard_normal((gates, blocks)):
        reader = rule.reader()
        passed += any(
            reader.read(look, range(look.blocks), values[: look.blocks], p8.ratio_limits(margin), 1).not_worse
            for look in looks
        )
    assert passed / gates == pytest.approx(POWER, abs=0.12), "three standard deviations"


@pytest.mark.parametrize("origin", ["same", "another"])
@pytest.mark.parametrize("blocks", [8, 12])
def test_four_of_five_studies_in_recorded_noise_keep_what_their_plan_says(blocks, origin):
    """77 to 85% on the average of all recorded noise; 500 studies have a standard deviation of 1.8%."""
    of_plan = kept(blocks, origin, 500)
    for number in (of_plan.found, of_plan.established):
        assert 0.74 <= number / of_plan.studies <= 0.88


def test_a_plan_without_a_look_that_can_decide_tells_nothing():
    assert precision(Looks(P8(), ()), 1, 0.05) is None
    assert precision(Looks(P8(), (8,)), 2, 0.05) is None
    assert precision(Looks(P9(p9.Spending(6)), (6,)), 2, 0.05) is None


@pytest.mark.parametrize("claims", [1, 2, 4])
@pytest.mark.parametrize("margin", [0.01, 0.05, 0.3])
def test_the_shortest_plan_for_a_margin_establishes_it_and_one_block_less_does_not(margin, claims):
    needed = blocks_for(margin, claims, 0.05)
    assert needed is not None
    if needed > 100:
        return  # longer plans are taken to have the bounds of one of 100 blocks
    enough = precision(planned(needed, claims), claims, 0.05)
    assert enough is not None
    assert enough.margin <= margin
    less = precision(planned(needed - 1, claims).within(needed - 1), claims, 0.05)
    assert less is None or less.margin > margin


def test_a_margin_of_one_percent_in_noise_of_five_takes_hundreds_of_blocks():
    assert 330 < (blocks_for(0.01, 1, 0.05) or 0) < 460
    assert blocks_for(1e-9, 1, 0.05) is None


def test_the_spread_is_the_standard_deviation_of_normal_noise_and_one_odd_block_in_twelve_hardly_moves_it():
    noise = 0.04 * np.random.default_rng(3).standard_normal((500, 12))
    assert np.mean([spread(list(each)) for each in noise]) == pytest.approx(0.04, rel=0.1)
    noise[:, 5] = p8.WORST
    assert np.mean([spread(list(each)) for each in noise]) < 0.06


def test_a_studys_spread_is_known_from_the_fourth_complete_block_on():
    plan = make_plan(blocks=12)
    trials = run(plan, noisy({"off": 1.3}, sd=0.02))
    assert measured_spread(Grid(plan, trials[:7])) is None
    fourth = measured_spread(Grid(plan, trials[:8]))
    assert fourth is not None
    assert fourth[1] == 4
    found = measured_spread(Grid(plan, trials))
    assert found is not None
    assert found[1] == 12
    assert found[0] == pytest.approx(0.02 * math.sqrt(2), rel=0.5)


def test_of_several_comparisons_the_noisiest_counts():
    plan = make_plan(("a", "b", "c"), blocks=12)
    calm, wild = noisy({}, sd=0.01), noisy({}, sd=0.1)
    both = measured_spread(Grid(plan, run(plan, lambda planned: (wild if planned.arm == "c" else calm)(planned))))
    without = measured_spread(Grid(plan, run(plan, calm)))
    assert both is not None
    assert without is not None
    assert both[0] > 3 * without[0]


def test_where_deployments_are_the_units_no_spread_of_blocks_is_told():
    plan = deployed(4)
    assert measured_spread(Grid(plan, run(plan, peculiar(plan)))) is None
