"""A trial in progress: its time, and the sampler around its load, which is there only where the study wants it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from pgtrial.conduct.trial.running_trial import RunningTrial, observed
from pgtrial.model.study.load_section import LoadSection
from tests.verdict.studies import make_plan


def test_a_study_may_do_without_it():
    trial: Any = SimpleNamespace(load=LoadSection(observe=False), deltas={}, observation=None)
    nothing: Any = None
    with observed(trial, nothing, nothing) as sampler:
        sampler.load_begins(1)
        sampler.measure_begins()
    assert (trial.deltas, trial.observation) == ({}, None)


def test_a_trial_under_which_the_clock_was_set_forward_took_no_longer():
    nothing = cast("Any", None)
    planned = make_plan(blocks=1).trials[0]
    yesterday = datetime.now(UTC) - timedelta(days=1)
    trial = RunningTrial(nothing, planned, *[nothing] * 6, started=yesterday.isoformat(timespec="milliseconds"))
    assert datetime.fromisoformat(trial.ended) - yesterday < timedelta(hours=1)
    assert cast("float", trial.interrupted().under_way_s) < 3600
