"""Canaries around the blocks of a study: what is disturbed is set aside and run again, whoever stops the lab."""

import json

import pytest

from pgtrial.cli.progress import shown
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.progress import BlockEnds, BlockNoisy, BlockVoid, StudyEnds, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.stopping import JudgeBlock, Stop, next_step
from pgtrial.conduct.watch import Watch
from pgtrial.report.data import read_data
from pgtrial.statistics.canaries import REFERENCE, judgements
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import each_once, small_study
from tests.conftest import require_engine
from tests.statistics.canaries import reading
from tests.store.samples import completed_trial

HOUR = 3600.0


class Killed(BaseException):
    """Stands for the end of the lab."""


def readings(*odd, then=()):
    """A canary that is usual but for the readings of these numbers, and kills the lab at those of `then`."""
    taken = []

    def read():
        number = len(taken)
        taken.append(number)
        if number in then:
            raise Killed
        # no two readings are the same
        return reading(cpu_per_s=2000 + number % 3, flushes_per_s=100.0 if number in odd else 1000.0 + number % 2)

    return read


def run(study, read, listener=lambda event: None):
    """The lab's loop without servers: trials are stored as if they had been run. Returns their numbers in order."""
    study.finish_void()
    watch = Watch(study, read, listener)
    order = []
    while not isinstance(step := next_step(study.plan, HOUR, study.trials(), study.canaries()), Stop):
        if isinstance(step, JudgeBlock):
            watch.judge(step.block, study.trials())
            continue
        watch.before(step.block, study.trials())
        study.begin_trial(step)
        study.write_trials([completed_trial(study, step)])
        order.append(step.index)
    return order


@pytest.fixture
def study(tmp_path):
    return small_study(tmp_path / "s", blocks=3)


def outcomes(study):
    return [(each.block, each.attempt, each.outcome) for each in judgements(study.canaries())]


def test_a_quiet_study_has_one_canary_at_each_border_after_the_reference(study):
    assert run(study, readings()) == [0, 1, 2, 3, 4, 5]
    roles = [canary.role for canary in study.canaries()]
    assert roles == ["reference"] * REFERENCE + ["after"] * 3
    assert outcomes(study) == [(0, 1, "kept"), (1, 1, "kept"), (2, 1, "kept")]
    # the canary after a block is the one before the next
    assert [each.before for each in judgements(study.canaries())] == [5, 6, 7]
    assert study.canaries()[-1].next_block is None


def test_a_disturbed_block_is_run_again_in_the_same_order_after_a_canary_that_is_not_off(study):
    events = []
    assert run(study, readings(REFERENCE + 1), events.append) == [0, 1, 2, 3, 2, 3, 4, 5]
    assert outcomes(study) == [(0, 1, "kept"), (1, 1, "void"), (1, 2, "kept"), (2, 1, "kept")]
    assert [(canary.role, canary.next_block) for canary in study.canaries()[6:]] == [
        ("after", 1),
        ("after", 1),
        ("before", 1),
        ("after", 2),
        ("after", None),
    ]
    assert each_once(study)
    assert [event.block for event in events if isinstance(event, BlockVoid)] == [1]
    assert [path.name[:4] for path in sorted((study.path / "voided" / "b01-1").glob("[0-9]*"))] == ["0002", "0003"]


def test_once_the_cap_is_reached_a_disturbed_block_counts_and_is_told(study):
    events = []
    run(study, readings(REFERENCE, REFERENCE + 2, REFERENCE + 4), events.append)
    assert outcomes(study) == [(0, 1, "void"), (0, 2, "noisy"), (1, 1, "noisy"), (2, 1, "kept")]
    assert [event.block for event in events if isinstance(event, BlockNoisy)] == [0, 1]
    assert each_once(study)


def test_a_machine_that_stays_odd_does_not_stop_the_study(study):
    run(study, readings(*range(REFERENCE, 100)))
    assert each_once(study)
    assert [outcome for _, _, outcome in outcomes(study)][:2] == ["void", "noisy"]


@pytest.mark.parametrize("number", range(REFERENCE + 5))
def test_a_lab_killed_at_any_canary_goes_on_and_runs_each_trial_once(study, number):
    with pytest.raises(Killed):
        run(study, readings(REFERENCE, then=[number]))
    again = StudyDirectory.open(study.path)
    run(again, readings())
    assert each_once(again)
    judged = outcomes(again)
    assert [(block, outcome) for block, _, outcome in judged if outcome != "void"] == [(b, "kept") for b in range(3)]
    assert sum(outcome == "void" for *_, outcome in judged) == (number > REFERENCE)


def test_a_lab_that_goes_on_between_blocks_takes_a_fresh_canary_and_within_a_block_none(study):
    read = readings()
    watch = Watch(study, read, lambda event: None)
    watch.before(0, study.trials())
    assert len(study.canaries()) == REFERENCE
    # nothing was run: the next lab looks again
    Watch(study, read, lambda event: None).before(0, study.trials())
    assert len(study.canaries()) == REFERENCE + 1
    study.begin_trial(study.plan.trials[0])
    study.write_trials([completed_trial(study, study.plan.trials[0])])
    Watch(study, read, lambda event: None).before(0, study.trials())
    assert len(study.canaries()) == REFERENCE + 1


def test_a_judged_block_is_not_judged_again_when_a_trial_of_it_is_repeated(study):
    run(study, readings())
    gone = study.trial_path(study.trials()[1])
    (gone / "trial.json").unlink()
    gone.rmdir()
    before = outcomes(study)
    assert run(study, readings()) == [1]
    assert outcomes(study) == before


def test_the_time_of_voided_blocks_counts_as_spent(study):
    run(study, readings(REFERENCE))
    (void,) = [each for each in judgements(study.canaries()) if each.outcome == "void"]
    assert void.spent_s == 14.0
    stored = [trial for trial in study.trials() if trial.block < 2]
    canaries = study.canaries()[:-1]
    # 14 s void and 28 s that count; the last block makes it 56 s, more than a quarter beyond 44 s, but not beyond 45 s
    assert isinstance(next_step(study.plan, 44.0, stored, canaries), Stop)
    assert not isinstance(next_step(study.plan, 45.0, stored, canaries), Stop)
    assert not isinstance(next_step(study.plan, 44.0, stored), Stop)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_void_block_is_told_while_the_study_runs(capsys, as_json):
    with shown(Terminal(), as_json=as_json) as listener:
        listener(BlockVoid(2, "the canary after it had 100 flushes a second"))
    out = capsys.readouterr().out
    if as_json:
        told = {"event": "block_void", "block": 2, "reason": "the canary after it had 100 flushes a second"}
        assert json.loads(out) == told
    else:
        assert out.startswith("block 3 is void: the canary after it had 100 flushes a second; running it again")


def test_a_real_study_voids_what_is_disturbed_and_goes_on_after_being_killed_at_the_canary(tmp_path, state_root):
    require_engine()
    study = small_study(tmp_path / "s", blocks=1, verdict={"canary": True})
    with pytest.raises(Killed):
        run_study(study, lambda event: None, read_canary=readings(then=[REFERENCE]))
    assert len(study.trials()) == 2
    events = []
    run_study(study, events.append, read_canary=readings(0))
    result = read_data(study).result
    assert [type(event) for event in events if isinstance(event, BlockVoid | BlockEnds | StudyEnds)] == [
        BlockVoid,
        BlockEnds,
        StudyEnds,
    ]
    assert [event.trial.index for event in events if isinstance(event, TrialEnds)] == [0, 1]
    assert each_once(study)
    assert [(each.block, each.attempt) for each in result.voids] == [(0, 1)]
    assert result.trials_stored == 2
    assert "The canary voided 1 block" in " ".join(result.notes)
