"""The coin is the statistics: with two alike arms swapped a block has the other sign, whatever the noise is.

From the plan of a study through simulated trials to the verdict. The noise may depend on everything but the arm's name:
on the order of starts, on the place among the engines that alternate, on the slice, on what ran before, on the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
import scipy

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.plan import Interleaving, Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySection, StudySpec, VerdictSection
from tests.slice_order import Slices
from tests.verdict.studies import verdict_of

from .slices import OWN_SLICES, SLICE_S, Study, Turn, alternate

ON, OFF = "on", "off"
SWAPPED = {ON: OFF, OFF: ON}

Noise = Callable[[Turn], float]
"""A function that returns the logarithm of a slice's speed as far as it does not depend on the arm."""


def drawn_plan(seed: int, blocks: int = 8, rate: Sequence[float] = ()) -> Plan:
    """Returns the plan that `pgtrial run` makes of two equal arms with alternating slices. With a rate, their response
    times are compared.
    """
    spec = StudySpec(
        study=StudySection(question="Do alike arms differ?"),
        load=LoadSection(workload=["select-only"], clients=[8], duration=OWN_SLICES * SLICE_S, rate=list(rate)),
        arms={ON: SetUp(), OFF: SetUp()},
        verdict=VerdictSection(blocks=blocks, margin=0.0001),
    )
    plan = make_plan(spec, seed, "2026-11-20T14:12:03+00:00")
    return plan.model_copy(update={"interleaving": Interleaving(slice_s=SLICE_S)})


def swapped(plan: Plan, blocks: Sequence[bool]) -> Plan:
    """Returns the plan as if the draw of the order had come out the other way in these blocks."""
    trials = [
        planned.model_copy(update={"arm": SWAPPED[planned.arm]}) if blocks[planned.block] else planned
        for planned in plan.trials
    ]
    return plan.model_copy(update={"trials": trials})


def renamed(plan: Plan, trials: Sequence[Trial]) -> list[Trial]:
    """Trials of alike arms under another plan: the same work at the same places."""
    return [trial.model_copy(update={"arm": plan.trials[trial.index].arm}) for trial in trials]


def simulated(plan: Plan, noise: Noise) -> Study:
    return alternate(plan, lambda turn: 20_000.0 * math.exp(noise(turn)))


def by_participant(turn: Turn) -> float:
    return 0.2 * turn.participant


def by_number_of_the_trial(turn: Turn) -> float:
    return -0.01 * turn.planned.index


def by_slot(turn: Turn) -> float:
    return 0.3 * (turn.slot % 4 == 0)


def by_place_in_the_round(turn: Turn) -> float:
    return -0.25 * (turn.slot % 2)


def by_what_ran_before(turn: Turn) -> float:
    """Returns the effect of the preceding slice: a loss if the other participant had it, which is larger for the second
    participant.
    """
    other = turn.before is not None and turn.before.participant != turn.participant
    return -0.1 * other * (1 + turn.participant)


def by_time(turn: Turn) -> float:
    """Returns the effect of time, a random walk over the whole study with sudden collapses."""
    at = turn.planned.block * 100 + turn.slot
    return float(_WALK[at]) - 2.0 * float(_ODD[at])


_RNG = np.random.default_rng(8)
_WALK = np.cumsum(0.05 * _RNG.standard_t(2, 6000))
_ODD = _RNG.random(6000) < 0.02

KINDS: tuple[Noise, ...] = (
    by_participant,
    by_number_of_the_trial,
    by_slot,
    by_place_in_the_round,
    by_what_ran_before,
    by_time,
)


def all_at_once(turn: Turn) -> float:
    return sum(kind(turn) for kind in KINDS)


def claim_of(result: StudyResult) -> Claim:
    return result.primary[0]


RATE = 100.0
"""A rate so low that every simulated trial keeps it."""


@pytest.mark.parametrize("rate", [[], [RATE]], ids=["closed", "at a rate"])
@pytest.mark.parametrize("noise", [*KINDS, all_at_once])
def test_swapped_roles_flip_the_sign_of_every_block_and_of_all_that_follows(noise, rate):
    plan = drawn_plan(seed=3, rate=rate)
    assert plan.measure == ("mean response time" if rate else "goodput")
    other = swapped(plan, [True] * plan.max_blocks)
    (ours, our_slices), (theirs, their_slices) = simulated(plan, noise), simulated(other, noise)
    one, two = verdict_of(plan, ours, slices=our_slices), verdict_of(other, theirs, slices=their_slices)
    logs = [[ratio.log_ratio for ratio in claim_of(result).ratios] for result in (one, two)]
    assert None not in logs[0]
    assert any(logs[0])
    assert logs[1] == pytest.approx([-value for value in logs[0]], abs=1e-15)
    first, second = (claim_of(result).difference for result in (one, two))
    assert first is not None
    assert second is not None
    assert math.log1p(second.value) == pytest.approx(-math.log1p(first.value), abs=1e-14)
    shifts = [result.carry_over_shifts[0].difference for result in (one, two)]
    assert shifts[0] is not None
    assert shifts[1] is not None
    assert math.log1p(shifts[1].value) == pytest.approx(-math.log1p(shifts[0].value), abs=1e-13)


def test_the_noise_of_the_test_is_blind_to_names():
    plan = drawn_plan(seed=3)
    other = swapped(plan, [True, False] * 4)
    assert simulated(other, all_at_once)[0] == renamed(other, simulated(plan, all_at_once)[0])


@pytest.mark.parametrize(("noise", "rate"), [*((kind, []) for kind in KINDS), (all_at_once, []), (all_at_once, [RATE])])
def test_of_all_ways_in_which_the_coin_can_fall_no_more_than_the_level_give_a_verdict(noise, rate):
    """The test reads one record of noise under each of the orders that 8 blocks can have. Opposite orders give opposite
    verdicts, as the test above shows, so that half of the 256 orders suffice.
    """
    plan = drawn_plan(seed=5, rate=rate)
    trials = simulated(plan, noise)[0]
    ways = [(False, *rest) for rest in product((False, True), repeat=plan.max_blocks - 1)]
    words = []
    for way in ways:
        other = swapped(plan, way)
        words.append(claim_of(verdict_of(other, renamed(other, trials))).verdict)
    false = sum(word in ("better", "worse") for word in words)
    assert false / len(ways) <= 0.04


def test_over_the_plans_that_are_drawn_the_error_keeps_its_level():
    """Two looks, orders as drawn, all noise at once."""
    studies, false = 100, 0
    for seed in range(studies):
        plan = drawn_plan(seed, blocks=12)
        trials = simulated(plan, all_at_once)[0]
        false += claim_of(verdict_of(plan, trials)).verdict in ("better", "worse")
    assert false / studies <= 0.05


def test_without_the_coin_the_same_noise_gives_a_false_verdict():
    """Without random order the false verdict is found, which shows that the tests above would fail if the rule were
    wrong.
    """
    plan = drawn_plan(seed=3)
    fixed = swapped(plan, [plan.trials[2 * block].arm == OFF for block in range(plan.max_blocks)])
    assert claim_of(verdict_of(fixed, simulated(fixed, by_participant)[0])).verdict == "better"


def test_the_coin_is_fair_and_tells_nothing_of_the_order_of_slices():
    plans = [drawn_plan(seed, blocks=12) for seed in range(100)]
    firsts = [plan.trials[2 * block] for plan in plans for block in range(plan.max_blocks)]
    on_first = sum(first.arm == ON for first in firsts)
    assert scipy.stats.binomtest(on_first, len(firsts)).pvalue > 0.001
    on_begins = sum(
        (Slices(SLICE_S, 2, first.seed).order(number)[0] == 0) == (first.arm == ON)
        for first in firsts
        for number in range(OWN_SLICES)
    )
    assert scipy.stats.binomtest(on_begins, len(firsts) * OWN_SLICES).pvalue > 0.001
