"""What a study does next follows from its plan, its budget and its stored trials alone."""

import pytest

from pgtrial.conduct.plan import make_plan
from pgtrial.conduct.stopping import Stop, next_step, time_left
from pgtrial.model.records.study import Phase, PlannedTrial, Trial
from pgtrial.store.study_file import build_study

HOUR = 3600.0


def plan(blocks, **verdict):
    arms = {"base": {}, "other": {"settings": {"jit": "off"}}}
    return make_plan(build_study({"arms": arms, "verdict": {"blocks": blocks, **verdict}}, "test"), 3, "now")


def trials(plan, blocks, ratio, seconds=10.0):
    """The first so many blocks, the other arm `ratio` times as fast as the baseline in every one."""
    return [
        Trial(
            index=planned.index,
            block=planned.block,
            arm=planned.arm,
            load_point=plan.load_points[0],
            seed=planned.seed,
            status="completed",
            started="2026-11-20T14:12:00+00:00",
            ended="2026-11-20T14:12:10+00:00",
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
    assert next_step(planned, HOUR, trials(planned, 8, 2.0)) == Stop("every comparison is decided after 8 blocks")


def test_a_study_that_does_not_stop_early_goes_on_after_a_decision():
    planned = plan(27, stop_early=False)
    assert isinstance(next_step(planned, HOUR, trials(planned, 8, 2.0)), PlannedTrial)


@pytest.mark.parametrize(("budget", "ends"), [(200.0, False), (140.0, True)])
def test_the_budget_ends_a_study_between_blocks_with_a_quarter_of_grace(budget, ends):
    planned = plan(27, stop_early=False)
    # nine blocks of two trials of ten seconds: 180 s spent, the next block makes it 200 s
    step = next_step(planned, budget, trials(planned, 9, 1.01))
    assert isinstance(step, Stop) == ends


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
    assert isinstance(next_step(planned, HOUR, stored, seconds=lambda: seconds), PlannedTrial)


def _minute(phase):
    return phase.model_copy(update={"duration_s": 60.0, "transactions": int(phase.tps * 60)})
