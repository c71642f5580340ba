"""A voided block is set aside as a whole: a crash at any step loses no trial and leaves none in two places."""

from pathlib import Path

import pytest

from pgtrial.conduct.plan import make_plan
from pgtrial.model.errors import StoreError
from pgtrial.model.records.disturbances import Canary, Judgement, Void
from pgtrial.store import files, voids
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.statistics.canaries import reading, references
from tests.store.samples import completed_trial

SPEC = build_study({"arms": {"old": {}, "new": {"settings": {"jit": "off"}}}, "verdict": {"blocks": 3}}, "test")


class Crash(BaseException):
    """Stands for the end of the process: nothing catches it."""


@pytest.fixture
def study(tmp_path):
    """Two blocks are stored, the second one has just been voided, and nothing has been moved."""
    study = StudyDirectory.create(tmp_path / "s", SPEC, make_plan(SPEC, 5, "2026-11-20T14:12:00+00:00"))
    for planned in study.plan.trials[:4]:
        directory = study.begin_trial(planned)
        (directory / "engine.jsonl").write_text(f"{planned.index}\n")
        study.write_trials([completed_trial(study, planned)])
    for canary in references([reading()] * 6, next_block=1):
        study.write_canary(canary)
    judged = Judgement(block=1, attempt=1, before=5, outcome="void", reason="the canary was off")
    study.write_canary(Canary(number=6, role="after", next_block=1, reading=reading(), judged=judged))
    return study


def places(study):
    """Where each trial is, by its number."""
    files = study.path.glob("*/**/engine.jsonl")
    return sorted(f"{file.parent.parent.relative_to(study.path)}/{file.parent.name[:4]}" for file in files)


ASIDE = ["trials/0000", "trials/0001", "voided/b01-1/0002", "voided/b01-1/0003"]


def test_the_block_is_moved_with_its_reason_and_its_canaries(study):
    study.finish_void()
    assert places(study) == ASIDE
    void = Void.model_validate_json((study.path / "voided" / "b01-1" / "void.json").read_text())
    assert void.reason == "the canary was off"
    assert [canary.number for canary in void.canaries] == [5, 6]
    assert [trial.index for trial in study.trials()] == [0, 1]
    assert [planned.index for planned in study.missing()] == [2, 3, 4, 5]


def test_a_voided_block_counts_no_more_from_the_moment_of_the_judgement(study):
    assert [trial.index for trial in study.trials()] == [0, 1]
    assert [trial.index for trial in StudyDirectory.open(study.path).trials()] == [0, 1]


STEPS = 11
"""As many system calls that change the directory as a move of two trials takes, and one more."""


@pytest.mark.parametrize("step", range(STEPS))
def test_a_crash_at_any_step_is_made_good_at_the_next_start(study, monkeypatch, step):
    done = []

    def crashing(function):
        def act(*arguments, **options):
            if len(done) == step:
                raise Crash
            done.append(function)
            return function(*arguments, **options)

        return act

    with monkeypatch.context() as patch:
        for method in ("mkdir", "rename", "replace"):
            patch.setattr(Path, method, crashing(getattr(Path, method)))
        patch.setattr(voids, "sync_directory", crashing(voids.sync_directory))
        patch.setattr(files, "sync_directory", crashing(files.sync_directory))
        try:
            study.finish_void()
        except Crash:
            assert step < STEPS - 1
            assert len(places(study)) == 4
            assert [trial.index for trial in study.trials()] == [0, 1]
        else:
            assert step == STEPS - 1, "every step is tried, and after the last one nothing is left to crash"
    again = StudyDirectory.open(study.path)
    again.finish_void()
    assert places(again) == ASIDE
    assert not list((study.path / "voided").glob(".*"))
    assert [trial.index for trial in again.trials()] == [0, 1]


def test_finishing_twice_leaves_the_block_that_was_run_again_alone(study):
    study.finish_void()
    study.begin_trial(study.plan.trials[2])
    study.write_trials([completed_trial(study, study.plan.trials[2])])
    study.finish_void()
    assert [trial.index for trial in study.trials()] == [0, 1, 2]


def test_a_block_can_be_voided_twice(study):
    study.finish_void()
    for planned in study.plan.trials[2:4]:
        directory = study.begin_trial(planned)
        (directory / "engine.jsonl").write_text("again\n")
        study.write_trials([completed_trial(study, planned)])
    judged = Judgement(block=1, attempt=2, before=6, outcome="void", reason="again")
    study.write_canary(Canary(number=7, role="after", next_block=1, reading=reading(), judged=judged))
    study.finish_void()
    assert sorted(path.name for path in (study.path / "voided").iterdir()) == ["b01-1", "b01-2"]
    assert [trial.index for trial in study.trials()] == [0, 1]


def test_canaries_read_back_as_they_were_stored(study):
    found = study.canaries()
    assert [canary.number for canary in found] == list(range(7))
    assert found[:6] == references([reading()] * 6, next_block=1)


def test_a_damaged_canary_is_named_with_its_cure(study):
    path = study.path / "canaries" / "0003.json"
    path.write_text("{")
    with pytest.raises(StoreError, match=r"canaries/0003.json is damaged or missing .*; delete .*0003.json and run"):
        study.canaries()


def test_the_number_of_a_note_is_not_used_again(tmp_path):
    for _ in range(3):
        voids.note_interruption(tmp_path, "SIGINT", [])
    (tmp_path / "interruptions" / "0001.json").unlink()
    voids.note_interruption(tmp_path, "SIGINT", [])
    assert [note.number for note in voids.read_interruptions(tmp_path)] == [2, 3, 4]
    (tmp_path / "interruptions" / "0004.json").rename(tmp_path / "interruptions" / "9999.json")
    voids.note_interruption(tmp_path, "SIGINT", [])
    assert sorted(path.stem for path in (tmp_path / "interruptions").iterdir()) == ["0002", "0003", "10000", "9999"]
    assert [note.number for note in voids.read_interruptions(tmp_path)][-1] == 10000
