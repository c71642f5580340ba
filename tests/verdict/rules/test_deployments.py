"""Tests of findings on an arm whose deployments differ from each other."""

from __future__ import annotations

from pgtrial.model.records.facts import Facts
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.verdict.rules import audit

from .cases import named, plan_of


def _findings(*deployments):
    """Findings on an arm B with these deployments, beside an A that is like the first of them."""
    known = [
        Facts(arm="B", deployment=number, collected="2026-11-20T14:12:00Z", facts=facts)
        for number, facts in enumerate(deployments)
    ]
    spec = StudySpec.model_validate({"arms": {"A": {}, "B": {}}})
    first = known[0].model_copy(update={"arm": "A"})
    return audit(plan_of(), {"A": first, "B": known[0]}, Design(spec), {"A": [first], "B": known}).findings


def _server(version="18.6", work_mem="4MB", microseconds=300.0):
    return {
        "server": {"version": version},
        "settings": {},
        "defaults": {"work_mem": work_mem},
        "probes": {"round_trip_median_us": microseconds},
    }


def test_deployments_that_are_alike_are_no_finding_however_far_away_they_are():
    assert _findings(_server(), _server(microseconds=900.0), _server()) == []


def test_what_differs_is_told_once_a_fact_with_the_numbers_of_the_deployments():
    found = _findings(_server(), _server(version="18.5", work_mem="8MB"), _server(version="18.5"))
    assert named(found) == {("unlike_deployments", "warning")}
    assert [finding.arms for finding in found] == [["B"]] * 2
    assert [finding.message.partition(": ")[2] for finding in found] == [
        "18.6 in deployment 1 and 18.5 in deployments 2 and 3 (numbered from 1).",
        "4MB in deployments 1 and 3 and 8MB in deployment 2 (numbered from 1).",
    ]


def test_a_value_that_somebody_set_is_like_the_same_one_by_default():
    chosen = {**_server(), "settings": {"work_mem": "4MB"}, "defaults": {}}
    assert _findings(_server(), chosen) == []


def test_what_is_not_known_of_a_deployment_is_no_difference():
    assert _findings(_server(), {"server": {"version": None}}) == []
