"""A running study reads each of its trials once."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.readings import Readings
from pgtrial.model.records.facts import Audit
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import committed_per_second
from pgtrial.verdict.changes import regimes_of
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run


@pytest.fixture
def study(tmp_path):
    plan = make_plan(blocks=8, duration_s=60.0)
    trials = run(plan, noisy({}))
    changes = {trial.index: {30: 0.25} for trial in trials if trial.block == 2}
    return write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Once?", changes=changes)


def test_the_seconds_of_a_trial_are_read_once_whatever_follows(study, monkeypatch):
    read = []
    timeline = StudyDirectory.timeline

    def recorded(self, trial):
        read.append(trial.index)
        return timeline(self, trial)

    monkeypatch.setattr(StudyDirectory, "timeline", recorded)
    every = study.trials()
    monkeypatch.setattr(StudyDirectory, "trials", lambda self: [])
    readings = Readings(study)
    for block in range(8):
        readings.add([trial for trial in every if trial.block == block])
        regimes = readings.regimes()
        assert read == list(range(2 * block + 2))
    assert readings.grid().counted == list(range(8))
    seconds = {trial.index: committed_per_second(study.timeline(trial)) for trial in every}
    assert regimes == regimes_of(every, seconds)
    assert len(regimes) == 16
    assert {trial.block for trial in every if regimes[trial.index].shape != "flat"} == {2}
