"""Tests of findings on arms whose rows differ, and on statements that find rows in one arm only."""

from __future__ import annotations

import pytest

from pgtrial.model.records.facts import Facts
from pgtrial.model.records.rows import TableRows
from pgtrial.model.records.trial import StatementRows
from pgtrial.verdict.rules.case import Case
from pgtrial.verdict.rules.rows import unequal_data
from tests.verdict.studies import findings_over

from .cases import facts, named, plan_of, trials_of

TEXT = "SELECT * FROM orders WHERE id = $1"


def table(digest, rows=10, **more):
    return TableRows(rows=rows, digest=digest, **more).model_dump(exclude_defaults=True)


def found(a, b, deployments=None):
    known = facts(A={"data": {"public.orders": a}}, B={"data": {"public.orders": b} if b is not None else {}})
    return unequal_data.findings(Case(plan_of(), known, deployments=deployments or {}))


@pytest.mark.parametrize(
    ("a", "b", "severity", "words"),
    [
        (table("x"), table("x"), None, ""),
        (table("x", columns={"n": "1", "m": "2"}), table("y", columns={"n": "1", "m": "3"}), "withhold", "column m "),
        (table("x", columns={"n": "1"}), table("y", columns={"n": "1"}), "withhold", "in other combinations"),
        (table("x"), table("y", rows=9), "withhold", "the table public.orders has 10 rows in A and 9 in B."),
        (
            table("x", columns={"n": "1"}),
            table("y", columns={"n": "1", "m": "3"}),
            "withhold",
            "m in one of them alone",
        ),
        (table("x", sample=5), table("y", sample=5), "withhold", "looked up by 5 keys"),
        (table("x", sample=5, estimate=2e6), table("x", sample=5, estimate=2.2e6), None, ""),
        (
            table("x", sample=5, estimate=2e6),
            table("x", sample=5, estimate=4e6),
            "withhold",
            "the table public.orders has about 2,000,000 rows in A and 4,000,000 in B, as PostgreSQL estimates",
        ),
        (table("x", sample=5, estimate=2e6), table("x", sample=5), None, ""),
        (table("x", changed_by_load=True), table("y"), "warning", "earlier trials wrote"),
        (table("x"), {}, None, ""),
        ({}, table("y"), None, ""),
    ],
)
def test_rows_that_are_known_and_differ_are_told(a, b, severity, words):
    findings = [finding for finding, _ in found(a, b)]
    assert named(findings) == ({("unequal_data", severity)} if severity else set())
    assert words in "".join(finding.message for finding in findings)


def test_arms_whose_rows_were_not_read_say_nothing():
    assert found(table("x"), None) == []


def test_each_deployment_is_compared_with_the_first_of_the_baseline():
    rows = {"A": ["x", "x"], "B": ["x", "y"]}
    deployments = {
        arm: [
            Facts(arm=arm, deployment=number, collected="", facts={"data": {"public.orders": table(digest)}})
            for number, digest in enumerate(digests)
        ]
        for arm, digests in rows.items()
    }
    [(finding, _)] = found(table("x"), table("x"), deployments)
    assert finding.arms == ["A", "B"]
    assert "10 in deployment 2 of B" in finding.message


@pytest.mark.parametrize(
    ("base", "other", "odd"),
    [((200, 200), (200, 0), True), ((200, 0), (200, 1), False), ((200, 0), (200, 9), True), ((20, 20), (20, 0), False)],
)
def test_a_statement_that_finds_rows_in_one_arm_only_withholds(base, other, odd):
    plan = plan_of(blocks=4)
    counts = {"A": base, "B": other}

    def rows(trial):
        calls, rows = counts[trial.arm]
        return {"statement_rows": {TEXT: StatementRows(calls=calls, rows=rows)}}

    findings = [one for one in findings_over(plan, facts(), trials_of(plan, rows)) if one.rule == "rows_in_one_arm"]
    assert [one.severity for one in findings] == (["withhold"] if odd else [])
    assert all(TEXT in one.message for one in findings)
