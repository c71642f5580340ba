"""Lengths that pgtrial chooses: from the budget, the preliminary block and the noise record, blind to the arms."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgtrial.conduct.planning.block_estimates import planned_lengths
from pgtrial.conduct.planning.lengths import in_words, measured_lengths
from pgtrial.conduct.planning.plan import More, extend, make_plan, warnings, with_lengths
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.machine import Conditions, Noise
from pgtrial.model.records.plan import PreliminaryBlock, WarmUpShape
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.store.study_file import build_study
from tests.conduct.test_stopping import trials as stored_trials

NOW = "2026-11-26T09:00:00+00:00"
SERVERS = {"a": {}, "b": {"settings": {"shared_buffers": "64MB"}}}
SESSIONS = {"a": {}, "b": {"settings": {"jit": "off"}}}


def study(budget="5min", *, arms=SERVERS, load=None, **verdict):
    given_load = {"workload": "select-only", **(load or {})}
    return build_study({"arms": arms, "load": given_load, "verdict": {"budget": budget, **verdict}}, "test")


def preliminary(plan, *, rises=(0.0, 0.0), overhead_s=3.0, checkpoint_s=0.1, load_s=4.0):
    """Returns a preliminary block with these times. `rises` are the seconds for which each arm's speed rises; None
    means that the speed still rises at the end.
    """
    places = [(point, arm) for point in range(len(plan.load_points)) for arm in plan.arms]
    found = (list(rises) * len(places))[: len(places)]
    return PreliminaryBlock(
        wall_s=overhead_s + load_s * len(places),
        load_s=load_s,
        overhead_s=overhead_s,
        checkpoint_s=checkpoint_s,
        shapes=[
            WarmUpShape(load_point=point, arm=arm, step_s=0.25, speeds=[1.0], rises_s=rise)
            for (point, arm), rise in zip(places, found, strict=True)
        ],
    )


def chosen(spec, noise=None, **found):
    """Returns the plan after a preliminary block."""
    plan = make_plan(spec, 7, NOW)
    return with_lengths(
        plan,
        Design.planned(spec, plan),
        measured_lengths(Design.planned(spec, plan), plan, preliminary(plan, **found), noise),
    )


def test_a_budget_that_is_said_to_hold_long_slices_holds_them():
    spec = study("2min", load={"workload": "oltp_point_select"})
    plan = make_plan(spec, 7, NOW)
    assert plan.interleaving is not None
    plan = plan.model_copy(update={"interleaving": plan.interleaving.model_copy(update={"longer": {0: 4.0}})})
    found = preliminary(plan, load_s=20.0)
    with pytest.raises(StudyError, match=r"blocks of about 27s .* to (\d+)min or more") as refused:
        measured_lengths(Design.planned(spec, plan), plan, found, None)
    minutes = re.search(r"(\d+)min or more", str(refused.value))[1]
    lengths = measured_lengths(
        Design.planned(study(f"{minutes}min", load={"workload": "oltp_point_select"}), plan), plan, found, None
    )
    assert (lengths.warmup_s % 4, lengths.duration_s % 4) == (0, 0)


@pytest.mark.parametrize("load", [{}, {"warmup": "3s"}, {"workload": "oltp_point_select"}])
@pytest.mark.parametrize("slice_s", [1.0, 1.25, 3.0, 5.0, 30.0])
def test_a_number_of_blocks_that_the_study_gives_is_refused_for_no_length_of_slices(load, slice_s):
    spec = study("5min", load=load, blocks=40)
    plan = make_plan(spec, 7, NOW)
    assert plan.interleaving is not None
    plan = plan.model_copy(update={"interleaving": plan.interleaving.model_copy(update={"longer": {0: slice_s}})})
    lengths = measured_lengths(
        Design.planned(spec, plan), plan, preliminary(plan, rises=(2.0, None), load_s=20.0), None
    )
    assert lengths.duration_s >= 2 * slice_s
    assert lengths.duration_s % slice_s == 0
    assert with_lengths(plan, Design.planned(spec, plan), lengths).max_blocks == 40


def test_lengths_are_chosen_by_default_and_given_ones_stay():
    assert study().load.given_s == (None, None)
    plan = make_plan(study(load={"warmup": "3s", "duration": "7s"}), 7, NOW)
    assert (plan.warmup_s, plan.duration_s, plan.lengths) == (3, 7, None)
    for load, given_s in (({"warmup": "3s"}, (3, None)), ({"duration": "7s"}, (None, 7))):
        plan = chosen(study("10min", load=load), rises=(2.0, 0.5))
        assert [
            given in (None, length) for given, length in zip(given_s, (plan.warmup_s, plan.duration_s), strict=True)
        ]
        assert plan.lengths is not None
        assert plan.warmup_s == given_s[0] or plan.warmup_s == 2
        assert plan.duration_s == given_s[1] or plan.duration_s > 7


@settings(deadline=None, max_examples=60)
@given(
    budget_s=st.integers(120, 7200),
    overhead_s=st.floats(0.5, 6),
    rise_s=st.sampled_from([0.0, 0.5, 1.0, 2.25, 4.0]),
    arms=st.sampled_from([SERVERS, SESSIONS]),
)
def test_a_verdict_fits_the_budget_and_three_quarters_are_measured_where_it_holds_that(
    budget_s, overhead_s, rise_s, arms
):
    spec = study(f"{budget_s}s", arms=arms)
    plan = chosen(spec, rises=(rise_s, 0.0), overhead_s=overhead_s)
    lengths = planned_lengths(plan)
    assert plan.max_blocks >= 6
    assert plan.looks[0] == min(plan.max_blocks, 8)
    assert plan.duration_s == int(plan.duration_s) >= 2
    whole_s = lengths.preliminary_s + plan.max_blocks * lengths.block_s
    assert whole_s <= 1.25 * budget_s
    needed_s = lengths.preliminary_s + 8 * 1.06 * 4 * (overhead_s + 2 * max(0.5, rise_s) + 2)
    if budget_s >= needed_s:
        exact_s = 3 * (lengths.overhead_s / 2 + plan.warmup_s)
        assert plan.duration_s == 2 or abs(plan.duration_s - exact_s) <= 0.5, (
            "the whole second nearest to three quarters"
        )
        assert plan.warmup_s >= rise_s
        assert whole_s <= budget_s
        assert "does not fit" not in " ".join(in_words(plan, Design(spec)))


def test_two_blocks_more_than_a_verdict_takes_are_planned_where_trials_are_not_too_short():
    assert chosen(study("2min"), overhead_s=2.0).max_blocks == 8
    assert chosen(study("2min"), overhead_s=5.5).max_blocks == 6
    assert chosen(study("3min"), overhead_s=10.0).max_blocks == 8


def test_two_minutes_are_the_least_and_three_work():
    for budget in ("1min", "119s", "90s"):
        with pytest.raises(StudyError, match=r"at least 6 blocks of about .* set \[verdict\] budget to 2min or more$"):
            make_plan(study(budget), 7, NOW)
    for arms, first in ((SERVERS, 6), (SESSIONS, 8)):
        assert make_plan(study("2min", arms=arms), 7, NOW).looks[0] == first
        assert chosen(study("3min", arms=arms)).looks[0] == 8


def test_what_cannot_fit_is_refused_with_the_budget_and_the_load_points_that_fit():
    load = {"clients": [1, 2, 4, 8]}
    with pytest.raises(StudyError, match=r"at least 6 blocks .* to (\d+)min or more, or use 2 load points$") as refused:
        make_plan(study("3min", load=load), 7, NOW)
    enough = str(refused.value).partition("[verdict] budget to ")[2].partition("min")[0]
    make_plan(study(f"{enough}min", load=load), 7, NOW)
    make_plan(study("3min"), 7, NOW)
    with pytest.raises(StudyError, match=r"at least 6 blocks of about 2min 10s .* to 14min or more"):
        make_plan(study("3min", load={"warmup": "1min"}), 7, NOW)
    slow = study("2min")
    plan = make_plan(slow, 7, NOW)
    with pytest.raises(StudyError, match=r"at least 6 blocks of about 35s .* to \d+min or more$"):
        measured_lengths(Design.planned(slow, plan), plan, preliminary(plan, overhead_s=30), None)


def test_the_longest_rise_of_all_arms_counts_and_one_length_holds_for_all():
    for rises in ((3.0, 0.0), (0.0, 3.0)):
        plan = chosen(study("1h"), rises=rises)
        assert plan.warmup_s == 3.0
    assert chosen(study("1h"), rises=(0.0, None), load_s=6.0).warmup_s == 6.0
    assert chosen(study("1h"), checkpoint_s=4.0).warmup_s == 4.0, "issued in the middle of two warm-ups in turns"


def test_the_lengths_are_blind_to_which_arm_is_which():
    spec = study("10min")
    plans = [chosen(spec, rises=rises, overhead_s=2.0) for rises in ((2.25, 0.5), (0.5, 2.25))]
    first, second = (plan.model_copy(update={"lengths": None}) for plan in plans)
    assert first == second


def test_a_warm_up_that_the_budget_does_not_hold_is_cut_and_said():
    spec = study("3min")
    plan = chosen(spec, rises=(12.0, 0.0))
    assert 1 <= plan.warmup_s <= plan.duration_s / 3
    cut = list(in_words(plan, Design(spec)))[-1]
    assert cut.startswith("a warm-up of 12s does not fit into the budget of 3min")
    assert not any("does not fit" in words for words in in_words(chosen(study("1h"), rises=(12.0, 0.0)), Design(spec)))


def test_measured_parts_are_whole_numbers_of_slices_and_sysbench_has_whole_warm_ups():
    assert chosen(study("10min", load={"interleave": "3s"})).duration_s % 3 == 0
    tests = study("10min", load={"workload": "oltp_read_only", "interleave": "500ms"})
    assert chosen(tests, rises=(1.25, 0.0)).warmup_s == 2
    plan = make_plan(study("10min"), 7, NOW)
    assert plan.interleaving is not None
    longer = plan.model_copy(update={"interleaving": plan.interleaving.model_copy(update={"longer": {0: 5.0}})})
    lengths = measured_lengths(Design.planned(study("10min"), longer), longer, preliminary(longer), None)
    assert lengths.duration_s in (10, 15, 20)


@pytest.mark.parametrize(("within", "from_noise"), [(None, False), (0.001, False), (0.0499, True)])
def test_noise_from_within_trials_makes_them_longer(within, from_noise):
    conditions = Conditions(lab_host="here", servers=[], load_points=[], arms=2, duration_s=10)
    noise = Noise(study="s", created=NOW, conditions=conditions, blocks=12, spread=0.05, within=within)
    plain, plan = chosen(study("1h")), chosen(study("1h"), noise)
    assert plan.lengths is not None
    assert plan.lengths.from_noise == from_noise
    assert (plan.duration_s > plain.duration_s) == from_noise
    assert plan.looks[0] == 8


def test_the_plan_says_what_was_chosen_and_why():
    spec = study("5min")
    (before,) = in_words(make_plan(spec, 7, NOW), Design(spec))
    assert "a block before them, which does not count, sets both lengths" in before
    (after,) = in_words(chosen(spec, rises=(2.0, 0.0), overhead_s=1.5), Design(spec))
    assert after.startswith("2s of warm-up and 8s measured: the speed rises for 2s after the start; ")
    assert after.endswith("; 13 blocks of about 22s, 74% of it measured")
    (quarters,) = in_words(chosen(spec, rises=(1.25, 0.0), overhead_s=1.5), Design(spec))
    assert quarters.startswith("1.25s of warm-up and ")
    long = study("1h")
    (still,) = in_words(chosen(long, rises=(0.0, None)), Design(long))
    assert "the speed of b still rises 4s after the start" in still
    given = study(load={"warmup": 1, "duration": 5})
    assert not list(in_words(make_plan(given, 7, NOW), Design(given)))


def test_a_budget_that_the_preliminary_block_finds_too_short_by_minutes_holds_the_fewest_blocks_all_the_same():
    spec = study("2min")
    plan = chosen(spec, overhead_s=20.0)
    assert plan.max_blocks == 6, "the first look"
    assert 120 * 1.25 < plan.lengths.preliminary.wall_s + plan.max_blocks * plan.block_estimate_s <= 120 + 90
    *_, told = in_words(plan, Design(spec))
    assert "6 blocks take about 3min" in told
    assert told.endswith("longer than the budget of 2min, since fewer allow no verdict")
    assert not [warning for warning in warnings(Design(spec), plan) if "ends the study" in warning]
    with pytest.raises(BudgetError) as refused:
        chosen(spec, overhead_s=40.0)
    assert refused.value.keys == ("verdict.budget",)
    assert refused.value.needed_s > spec.verdict.budget


def test_the_order_of_the_blocks_does_not_depend_on_the_preliminary_block():
    spec = study("5min")
    before, after = make_plan(spec, 7, NOW), chosen(spec, overhead_s=1.0)
    few = min(len(before.trials), len(after.trials))
    assert before.trials[:few] == after.trials[:few]
    assert after.max_blocks != before.max_blocks


def test_a_study_goes_on_with_the_lengths_of_its_plan():
    spec = thaw(freeze(study("5min")))
    plan = chosen(spec, rises=(2.0, 0.0))
    done = stored_trials(plan, plan.max_blocks, 1.0)
    longer = extend(plan, Design.planned(spec, plan), More(blocks=9), done, decided=False, created=NOW)
    kept = {"warmup_s", "duration_s", "lengths", "trial_estimate_s", "interleaving"}
    assert longer.model_dump(include=kept) == plan.model_dump(include=kept)
    assert longer.trials[: len(plan.trials)] == plan.trials
    assert longer.max_blocks == plan.max_blocks + 9


def test_loads_with_an_end_of_their_own_have_no_lengths_to_choose():
    spec = study(load={"workload": "app-tasks"})
    plan = make_plan(spec, 7, NOW)
    assert (plan.lengths, plan.warmup_s, plan.duration_s) == (None, 0, 0)
    before = freeze(spec).replace('"auto"\nduration = "auto"', "10.0\nduration = 30.0")
    assert "30.0" in before
    assert thaw(before).load.given_s == (0, 0), "as a version without chosen lengths has frozen it"


@pytest.mark.parametrize(("rate", "blocks", "duration_s"), [(2_200, 11, 5), (1_800, 10, 6), (1_500, 8, 7)])
def test_a_declared_percentile_comes_before_spare_blocks(rate, blocks, duration_s):
    plan = chosen(study("150s", load={"rate": rate}, metrics=["p99"]), overhead_s=1.0)
    assert (plan.max_blocks, plan.duration_s) == (blocks, duration_s)
    assert duration_s >= (10_000 + 3 * 100) / rate


def test_spare_blocks_come_first_where_no_length_holds_the_percentile():
    plan = chosen(study("150s", load={"rate": 500}, metrics=["p99"]), overhead_s=1.0)
    assert (plan.max_blocks, plan.duration_s) == (8, 7)
