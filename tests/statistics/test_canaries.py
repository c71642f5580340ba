"""The rule by which a block is disturbed: it sees canaries and nothing else, and voids few."""

import inspect
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.model.records.disturbances import Canary, CanaryReading
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.report.verdict import disturbance_notes
from pgtrial.statistics import canaries as rule
from pgtrial.statistics.canaries import is_off, judge, judgements, most_voids

from .canaries import USUAL, reading, references
from .studies import make_plan

PROBES = st.sampled_from(sorted(USUAL))


def study(outcomes, *, failed=None, off_after=True):
    """Canaries of a study whose blocks were judged like this, each block of `outcomes` once."""
    found = references([reading()] * 6)
    for block, off in outcomes:
        after = reading(flushes_per_s=500.0) if off and off_after else reading()
        judgement = judge(found, after, block, 80)
        found.append(
            Canary(
                number=found[-1].number + 1,
                role="after",
                next_block=block + 1,
                reading=after,
                judged=judgement.model_copy(update={"failed": failed or {}}),
            )
        )
        # a canary that is not off follows, as the lab takes one
        found.append(Canary(number=found[-1].number + 1, role="before", next_block=block + 1, reading=reading()))
    return found


def test_the_rule_is_given_canaries_and_numbers_only():
    names = {name for function in (judge, is_off, rule.deviations) for name in inspect.signature(function).parameters}
    assert names == {"canaries", "after", "block", "planned_blocks", "readings", "about"}
    source = inspect.getsource(judge) + inspect.getsource(rule.deviations)
    for kind in (Trial, Plan, PlannedTrial):
        assert kind.__name__ not in source


@given(count=st.integers(6, 40), scale=st.floats(1e-3, 1e9))
def test_constant_canaries_void_nothing(count, scale):
    same = reading(cpu_per_s=scale)
    assert judge(references([same] * count), same, 3, 27).outcome == "kept"


@given(noise=st.lists(st.floats(-0.04, 0.04), min_size=8, max_size=40), probe=PROBES)
def test_a_noise_of_some_percent_voids_nothing_however_quiet_the_rest(noise, probe):
    readings = [reading(**{probe: USUAL[probe] * math.exp(each)}) for each in noise]
    assert judge(references(readings[:-1]), readings[-1], 0, 8).outcome == "kept"


@given(
    noise=st.lists(st.floats(-0.02, 0.02), min_size=7, max_size=40),
    probe=PROBES,
    factor=st.one_of(st.floats(0.01, 0.7), st.floats(1.5, 100)),
    before=st.booleans(),
)
def test_a_planted_disturbance_voids_the_block_and_is_named(noise, probe, factor, before):
    readings = [reading(**{probe: USUAL[probe] * math.exp(each)}) for each in noise]
    odd = reading(**{probe: USUAL[probe] * factor})
    past, after = ([*readings[:-1], odd], readings[-1]) if before else (readings, odd)
    judgement = judge(references(past), after, 4, 8)
    assert judgement.outcome == "void"
    assert [(each.probe, each.canary) for each in judgement.off] == [(probe, len(past) - 1 if before else len(past))]
    assert f"the canary {'before' if before else 'after'} it had" in judgement.reason
    assert rule.PROBES[probe] in judgement.reason


@given(order=st.permutations([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.3, 0.7]))
def test_only_the_canaries_around_a_block_are_held_against_it(order):
    # whatever happened before, the block between two usual canaries is kept
    past = references([reading(cpu_per_s=2000 * each) for each in [*order, 1.0]])
    assert judge(past, reading(), 0, 8).outcome == "kept"


def test_a_probe_of_wide_noise_tolerates_more_than_the_floor():
    wide = [reading(flushes_per_s=1000 * factor) for factor in (0.6, 0.8, 1.0, 1.25, 1.6, 0.7, 1.4)]
    assert judge(references(wide), reading(flushes_per_s=500.0), 0, 8).outcome == "kept"
    assert judge(references(wide), reading(flushes_per_s=50.0), 0, 8).outcome == "void"


def test_what_is_not_known_is_not_held_against_a_block():
    blind = [reading(flushes_per_s=None, select1_per_s=None)] * 7
    assert judge(references(blind), blind[0], 0, 8).outcome == "kept"
    assert judge(references([reading()] * 6), reading(flushes_per_s=None), 0, 8).outcome == "kept"


def test_too_few_canaries_judge_nothing():
    assert judge(references([reading()] * 4), reading(cpu_per_s=1.0), 0, 8).outcome == "kept"


@pytest.mark.parametrize(("planned", "most"), [(1, 1), (8, 1), (19, 1), (20, 2), (27, 2), (40, 4), (300, 30)])
def test_at_most_a_tenth_of_the_planned_blocks_is_voided_but_one_always_may(planned, most):
    assert most_voids(planned) == most


def test_beyond_the_cap_a_disturbed_block_is_kept_and_called_noisy():
    found = study([(block, True) for block in range(11)])
    assert [each.outcome for each in judgements(found)] == ["void"] * 8 + ["noisy"] * 3
    assert judgements(found)[-1].reason


def test_a_block_that_is_void_twice_has_two_attempts():
    found = study([(2, True), (2, True), (3, True)])
    assert [(each.block, each.attempt) for each in judgements(found)] == [(2, 1), (2, 2), (3, 1)]


@given(values=st.lists(st.floats(1.0, 1e6), min_size=7, max_size=20))
def test_the_same_canaries_give_the_same_judgement(values):
    readings = [reading(cpu_per_s=value) for value in values]
    assert judge(references(readings), reading(), 1, 8) == judge(references(list(readings)), reading(), 1, 8)


def last_arms(plan):
    per_block = len(plan.arms) * len(plan.load_points)
    return {block: plan.trials[(block + 1) * per_block - 1].arm for block in range(plan.max_blocks)}


def test_canaries_that_are_off_after_one_arm_every_time_are_told():
    plan = make_plan(blocks=40)
    after_off = [block for block, arm in last_arms(plan).items() if arm == "off"][:8]
    (told,) = [note for note in disturbance_notes(plan, study([(b, True) for b in after_off])) if "just after" in note]
    assert "off 8 of 8 times just after a trial of off (p = 0.0078)" in told


def test_canaries_that_are_off_after_either_arm_say_nothing_of_an_arm():
    plan = make_plan(blocks=40)
    mixed = [block for arm in ("on", "off") for block, last in last_arms(plan).items() if last == arm][:8:2]
    mixed += [block for block, last in last_arms(plan).items() if last == "off"][:4]
    notes = disturbance_notes(plan, study([(block, True) for block in mixed]))
    assert notes
    assert not any("just after" in note for note in notes)


def test_failures_of_one_arm_that_voiding_took_away_are_told():
    notes = disturbance_notes(make_plan(blocks=40), study([(0, True), (3, True)], failed={"off": 3}))
    assert "Of 6 failed trials in voided blocks 6 are of off (p = 0.031)" in notes[-1]


def test_a_study_without_canaries_has_nothing_to_note():
    assert disturbance_notes(make_plan(), []) == []
    assert not is_off([])


def test_no_probe_is_judged_that_a_reading_does_not_have():
    assert set(rule.PROBES) <= set(CanaryReading.model_fields)
