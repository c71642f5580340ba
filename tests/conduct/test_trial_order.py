"""The order for a trial: the time since its beginning, and whether its server is sampled."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pgtrial.conduct.trial.order import Beginning, TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.run_trial import TrialRunner
from pgtrial.conduct.trial.sampled import sampler_for, seen_in
from pgtrial.model.study.load_section import LoadSection
from tests.verdict.studies import make_plan


def order(beginning: Beginning, load: LoadSection) -> TrialOrder:
    nothing = cast("Any", None)
    planned = make_plan(blocks=1).trials[0]
    return TrialOrder(planned, nothing, load, *[nothing] * 6, beginning=beginning)


def test_a_study_may_do_without_a_sampler():
    unobserved, nothing = order(Beginning(), LoadSection(observe=False)), cast("Any", None)
    with sampler_for(unobserved, nothing) as sampler:
        sampler.load_begins(1)
        sampler.measure_begins()
    assert seen_in(unobserved, sampler, Outcome(), None) is None


def test_a_trial_under_which_the_clock_was_set_forward_took_no_longer(tmp_path):
    yesterday = datetime.now(UTC) - timedelta(days=1)
    beginning = Beginning(yesterday.isoformat(timespec="milliseconds"))
    assert datetime.fromisoformat(beginning.present) - yesterday < timedelta(hours=1)
    interrupted = TrialRunner(replace(order(beginning, LoadSection()), directory=tmp_path), None).interrupted()
    assert cast("float", interrupted.under_way_s) < 3600
