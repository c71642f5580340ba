"""The cheap decision of the loop: the same as in the study's result."""

from __future__ import annotations

import pytest

from pgtrial.model.records.results import StudyResult
from pgtrial.verdict.changes import regimes_of
from pgtrial.verdict.claims import comparisons
from pgtrial.verdict.grid import Grid
from tests.verdict.studies import decision_of

from .studies import deployed, make_plan, noisy, peculiar, run
from .test_changes import both, recorded


def _from(result: StudyResult):
    return [
        (part.arm, part.regime, any(look.verdict != "undecided" for look in part.looks), part.running)
        for claim in result.primary
        for part in claim.read
    ]


def _decided(plan, trials, seconds=None):
    return [
        (each.arm, each.regime, each.decided, each.so_far)
        for each in comparisons(Grid(plan, trials), regimes_of(trials, seconds or {}))
    ]


@pytest.mark.parametrize("upto", [0, 1, 23, 24, 48])
@pytest.mark.parametrize("ratio", [1.0, 1.005, 1.3])
def test_it_is_what_the_result_says(ratio, upto):
    plan = make_plan(("on", "off", "other"), blocks=16)
    trials = run(plan, noisy({"off": ratio}), upto=upto)
    assert _decided(plan, trials) == _from(decision_of(plan, trials))


def test_it_is_what_the_result_says_of_deployments():
    plan = deployed(12)
    trials = run(plan, peculiar(plan, 0.4))
    assert _decided(plan, trials) == _from(decision_of(plan, trials))


def test_it_is_what_the_result_says_of_each_regime():
    plan, trials, seconds = recorded(both)
    found = _decided(plan, trials, seconds)
    assert found == _from(decision_of(plan, trials, None, seconds))
    assert [regime for _, regime, _, _ in found] == ["before", "after"]
