"""Tests that the next step of a study follows from its plan, its budget and its stored trials alone."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.planning.stopping import Stop, ended_too_early, leaving, next_step, time_left
from pgtrial.model.records.plan import PlannedTrial, Spending
from pgtrial.model.records.trial import Phase, Trial
from pgtrial.report.gate.outcome import Rules, outcome
from pgtrial.statistics import p9
from pgtrial.store.study_file import build_study
from pgtrial.verdict.changes import regimes_of
from tests.verdict.replays import Template, run_replays
from tests.verdict.studies import verdict_of
from tests.verdict.suite_trials import Query, run_suites

HOUR = 3600.0


def plan(blocks, **verdict):
    arms = {"base": {}, "other": {"settings": {"jit": "off"}}}
    return make_plan(build_study({"arms": arms, "verdict": {"blocks": blocks, **verdict}}, "test"), 3, "now")


def trials(plan, blocks, ratio, seconds=10.0):
    """Returns trials for the first blocks of a plan, in which the second arm is `ratio` times as fast as the baseline.

    Each trial lasts this number of seconds, and the trials follow each other without a pause.
    """
    began = datetime.fromisoformat("2026-11-20T14:12:00+00:00")
    return [
        Trial(
            index=planned.index,
            block=planned.block,
            arm=planned.arm,
            load_point=plan.load_points[0],
            seed=planned.seed,
            status="completed",
            started=(began + timedelta(seconds=seconds * planned.index)).isoformat(),
            ended=(began + timedelta(seconds=seconds * (planned.index + 1))).isoformat(),
            phases_s={"load": seconds},
            measured=_phase(100 * (ratio + planned.block / 1e4 if planned.arm == "other" else 1)),
        )
        for planned in plan.trials
        if planned.block < blocks
    ]


def _phase(tps):
    return Phase(duration_s=5, transactions=int(tps * 5), failures={}, tps=tps, latency_us=None)


def test_the_next_trial_is_the_first_that_is_missing_even_amid_the_others():
    planned = plan(8)
    stored = [trial for trial in trials(planned, 4, 1.0) if trial.index != 3]
    step = next_step(planned, HOUR, stored)
    assert isinstance(step, PlannedTrial)
    assert step.index == 3


def test_a_study_ends_with_its_last_planned_trial():
    planned = plan(8)
    assert next_step(planned, HOUR, trials(planned, 8, 1.0)) == Stop("all 8 planned blocks are complete")


def test_a_clear_difference_ends_a_study_at_the_first_look_and_not_before():
    planned = plan(27)
    assert isinstance(next_step(planned, HOUR, trials(planned, 7, 2.0)), PlannedTrial)
    assert next_step(planned, HOUR, trials(planned, 8, 2.0)) == Stop(
        "the intervals of all comparisons decide after 8 blocks"
    )


def test_a_study_that_does_not_stop_early_goes_on_after_a_decision():
    planned = plan(27, stop_early=False)
    assert isinstance(next_step(planned, HOUR, trials(planned, 8, 2.0)), PlannedTrial)


@pytest.mark.parametrize(
    ("budget", "blocks", "ended"),
    [
        # blocks of two trials of ten seconds; the looks are after 8, 10, 12, 15, 18, 22 and 27
        (161.0, 8, None),
        (
            159.0,
            8,
            "the budget of 2min 39s ended after 8 of 27 blocks: 2 more blocks up to the next look at the verdict would "
            "take about 40s",
        ),
        (353.0, 21, None),
        (
            300.0,
            21,
            "the budget of 5min ended after 21 of 27 blocks: 1 more block up to the next look at the verdict would "
            "take about 20s; "
            "3 of them wait for the next look at the verdict, after block 22 (1 block, about 20s: --more 20s)",
        ),
    ],
)
def test_the_budget_ends_a_study_at_a_look_if_the_next_comes_more_than_a_quarter_too_late(budget, blocks, ended):
    planned = plan(27, stop_early=False)
    step = next_step(planned, budget, trials(planned, blocks, 1.01))
    assert step == Stop(ended, {8: 10, 21: 22}[blocks] - blocks) if ended else isinstance(step, PlannedTrial)


@pytest.mark.parametrize(
    ("budget", "blocks", "seconds", "goes_on"),
    [
        (10.0, 1, 1000.0, True),  # one block may be slow by chance
        (120.0, 2, 18.0, True),  # 8 blocks of 36 s: 3 minutes longer at most
        (120.0, 2, 20.0, False),
        (3600.0, 2, 280.0, True),  # a quarter longer at most
        (3600.0, 2, 282.0, False),
    ],
)
def test_the_budget_ends_a_study_of_minutes_before_its_first_look_only_if_it_would_take_three_minutes_more(
    budget, blocks, seconds, goes_on
):
    planned = plan(27, stop_early=False)
    stored = trials(planned, blocks, 1.01, seconds)
    step = next_step(planned, budget, stored)
    assert isinstance(step, PlannedTrial) == goes_on
    assert ended_too_early(planned, step, stored) != goes_on


def test_a_budget_that_ends_before_a_verdict_says_why_and_what_goes_on():
    planned = plan(27, stop_early=False)
    step = next_step(planned, 120.0, trials(planned, 2, 1.01, 20.0))
    assert step == Stop(
        "the budget of 2min ended after 2 of 27 blocks: a verdict takes 8 blocks, and 6 more blocks about 4min; the "
        "same command goes on with this study",
        6,
    )


def test_a_study_that_is_asked_to_stop_finishes_its_block():
    planned = plan(27, stop_early=False)
    stored = trials(planned, 3, 1.01)
    ended = Stop("stopped on request after 3 blocks; run it again to go on")
    assert next_step(planned, HOUR, stored, stop_asked=True) == ended
    assert isinstance(next_step(planned, HOUR, stored[:-1], stop_asked=True), PlannedTrial)
    assert isinstance(next_step(planned, HOUR, [], stop_asked=True), PlannedTrial)


def test_a_decided_study_ends_as_such_though_it_is_asked_to_stop():
    planned = plan(27)
    ended = next_step(planned, HOUR, trials(planned, 8, 2.0), stop_asked=True)
    assert ended == Stop("the intervals of all comparisons decide after 8 blocks")


def test_a_block_that_was_begun_is_finished_whatever_the_budget():
    planned = plan(27, stop_early=False)
    stored = trials(planned, 9, 1.01)[:-1]
    step = next_step(planned, 1.0, stored)
    assert isinstance(step, PlannedTrial)
    assert step.index == 17


def test_the_time_left_follows_the_trials_so_far():
    planned = plan(8)
    assert time_left(planned, []) == pytest.approx(16 * planned.trial_estimate_s)
    assert time_left(planned, trials(planned, 4, 1.0, seconds=20.0)) == pytest.approx(8 * 20.0)


def test_a_study_whose_regime_changes_goes_on_until_both_verdicts_are_decided():
    planned = plan(40)
    stored = [trial.model_copy(update={"measured": _minute(trial.measured)}) for trial in trials(planned, 8, 2.0)]
    seconds = {t.index: [150 + t.index % 7] * 30 + [40 + t.index % 5] * 30 for t in stored}
    assert isinstance(next_step(planned, HOUR, stored), Stop)
    assert isinstance(next_step(planned, HOUR, stored, regimes=lambda: regimes_of(stored, seconds)), PlannedTrial)


def of_gate(planned, trials):
    """Returns a plan as that of a gate, which asks only whether the second arm is worse, with its trials."""
    blocks = planned.max_blocks
    spending = Spending(end=blocks, kept=0.0, worse=p9.ONE_SIDED)
    of_looks = {"looks": p9.looks(blocks, 1, 0.0), "spending": spending, "families": 2, "margin": 0.02}
    return planned.model_copy(update=of_looks), trials


def stops_at(planned, trials):
    """Returns the look at which a study ends, with the reason; None if it runs to its last block."""
    for look in planned.looks_within[:-1]:
        step = next_step(planned, HOUR, [trial for trial in trials if trial.block < look])
        if isinstance(step, Stop):
            return look, step.reason
    return None


def times_as_long(factors, noises):
    """Returns a function that gives the factors by which each part of the load takes longer in a planned trial."""
    rng = np.random.default_rng(5)

    def factors_of(planned):
        drawn = np.exp(np.array(noises) * rng.standard_normal(len(factors)))
        return [float(one * factor if planned.arm == "b" else one) for one, factor in zip(drawn, factors, strict=True)]

    return factors_of


def queries_of(factors, noises):
    of_trial = times_as_long(factors, noises)
    return of_gate(*run_suites(30, lambda planned: [Query(ms) for ms in of_trial(planned)]))


def statements_of(factors, noises):
    of_trial = times_as_long(factors, noises)

    # the last statement takes so little time that the mean over all of them is decided long before it
    def templates(planned):
        *long, short = of_trial(planned)
        return [*map(Template, long), Template(short / 30)]

    return of_gate(*run_replays(30, templates))


@pytest.mark.parametrize(("parts", "noun"), [(queries_of, "query"), (statements_of, "statement")])
def test_a_gate_ends_at_the_first_look_that_finds_a_part_of_the_load_slower(parts, noun):
    planned, stored = parts((1.0, 1.34, 1.0), (0.003, 0.003, 0.2))
    look, reason = stops_at(planned, stored)
    assert reason == f"a {noun} is certainly slower on b after {look} blocks"
    result = verdict_of(planned, [trial for trial in stored if trial.block < look])
    assert (outcome(result, planned, Rules()).status, look < 20) == (1, True)
    both_sides = planned.model_copy(update={"spending": Spending(end=30, kept=0.0)})
    assert stops_at(both_sides, stored) is None, "the noisy part is undecided"


def test_a_gate_goes_on_while_a_statement_of_a_replay_may_be_slower():
    planned, stored = statements_of((1.0, 1.0, 1.0), (0.003, 0.003, 0.2))
    assert stops_at(planned, stored) is None
    result = verdict_of(planned, [trial for trial in stored if trial.block < 12])
    assert result.primary[0].not_worse
    assert result.statements[-1].verdict == "undecided"
    alone = planned.model_copy(update={"families": 1})
    assert stops_at(alone, stored) is not None, "a study that is about the mean alone"


@pytest.mark.parametrize("parts", [queries_of, statements_of])
def test_a_gate_does_not_go_on_to_see_whether_a_part_of_the_load_is_faster(parts):
    planned, stored = parts((1.0, 1 / 1.01, 1.0), (0.004, 0.012, 0.004))
    look, reason = stops_at(planned, stored)
    assert reason == f"the intervals of all comparisons decide after {look} blocks"
    result = verdict_of(planned, [trial for trial in stored if trial.block < look])
    found = [part.verdict for part in (*result.queries[1:], *result.statements)]
    assert "undecided" in found, found
    assert outcome(result, planned, Rules()).status == 0


def _minute(phase):
    return phase.model_copy(update={"duration_s": 60.0, "transactions": int(phase.tps * 60)})


def three_arms(ratios, blocks, *, of=12, points=1, **verdict):
    """Returns a plan in which an arm gets no more trials once its claims are decided, and the trials of the first
    blocks, with these speeds of the arms.
    """
    arms = {"base": {}, "fast": {"settings": {"jit": "off"}}, "open": {"settings": {"work_mem": "1MB"}}}
    given = {"arms": arms, "load": {"clients": [4, 8][:points]}, "verdict": {"blocks": of, **verdict}}
    planned = make_plan(build_study(given, "test"), 3, "now")
    stored = [
        trial.model_copy(
            update={
                "load_point": planned.load_points[planned.trials[trial.index].load_point],
                "measured": _phase(100 * ratios[trial.arm](trial.block, planned.trials[trial.index].load_point)),
            }
        )
        for trial in trials(planned, blocks, 1.0)
    ]
    return planned, stored


def equal(block, point):
    return 1 + (-1) ** block / 20 + block / 1e4


CLEAR = {"base": lambda block, point: 1, "fast": lambda block, point: 2 + block / 1e4, "open": equal}


def test_an_arm_leaves_at_the_look_that_decides_all_its_claims_if_others_are_open():
    planned, stored = three_arms(CLEAR, 8, drop_decided=True)
    assert planned.looks == [8, 10, 12]
    assert leaving(planned, stored) == ["fast"]
    assert leaving(planned, [trial for trial in stored if trial.block < 7]) == []
    assert leaving(planned.model_copy(update={"left": {"fast": 8}}), stored) == []
    assert leaving(three_arms(CLEAR, 8)[0], stored) == []
    nine, of_nine = three_arms(CLEAR, 9, drop_decided=True)
    assert leaving(nine, of_nine) == []


def test_no_arm_leaves_when_all_are_decided_or_one_of_its_load_points_is_open():
    all_fast = {**CLEAR, "open": CLEAR["fast"]}
    assert leaving(*three_arms(all_fast, 8, drop_decided=True)) == []
    half = {**CLEAR, "fast": lambda block, point: equal(block, point) if point else 4 + block / 1e4}
    planned, stored = three_arms(half, 12, of=18, points=2, drop_decided=True)
    assert leaving(planned, stored) == []
    both, of_both = three_arms(CLEAR, 12, of=18, points=2, drop_decided=True)
    assert leaving(both, of_both) == ["fast"]


def test_blocks_without_the_arm_that_left_are_complete():
    planned, stored = three_arms(CLEAR, 11, drop_decided=True)
    without = planned.model_copy(update={"left": {"fast": 8}})
    kept = [trial for trial in stored if trial.block < 8 or trial.arm != "fast"]
    step = next_step(without, HOUR, kept)
    assert isinstance(step, PlannedTrial)
    assert (step.block, step.arm != "fast") == (11, True)
    assert time_left(without, kept) == pytest.approx(2 * 10)
    whole, alone = verdict_of(planned, stored), verdict_of(without, kept)
    assert alone.blocks_complete == 11
    ours, theirs = alone.primary[1], whole.primary[1]
    assert (ours.looks, ours.difference, ours.family) == (theirs.looks, theirs.difference, theirs.family)
    assert [ratio.log_ratio for ratio in ours.ratios] == [ratio.log_ratio for ratio in theirs.ratios]
    assert alone.primary[0].verdict == "better"
    assert (alone.primary[0].blocks, len(alone.primary[0].ratios)) == (8, 8)
    (note,) = [note for note in alone.notes if "left after" in note]
    assert note.startswith("fast left after 8 blocks, for all its claims were decided")
