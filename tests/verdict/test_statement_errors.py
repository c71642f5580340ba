"""Errors of a replay's statements beside the recorded ones: which are counted where, and how they are named."""

from __future__ import annotations

from pgtrial.model.records.results import StatementErrors
from pgtrial.report.brief import brief
from tests.verdict.replays import Template, run_replays
from tests.verdict.studies import decision_of, findings_over


def templates(planned):
    """Returns the statements of a trial. One names a table that the arm `b` lacks; another one violates a unique
    constraint, which `b` lacks as well.
    """
    if planned.arm == "a":
        return [
            Template(),
            Template(rows=90, expected={"23505": 5, "25P02": 5}),
            Template(expected={"22012": 1}),
        ]
    return [
        Template(failures={"42P01": 3}, consequences={"42P01": 6}),
        Template(failures={"25P02": 4}, missing_failures={"23505": 5, "25P02": 5}, missing_consequences={"23505": 5}),
        Template(failures={"25P02": 2, "22012": 1}, expected={"22012": 1}),
    ]


def test_errors_are_new_as_recorded_or_gone_by_statement_and_sqlstate():
    plan, trials = run_replays(2, templates)
    of_a, of_b = decision_of(plan, trials).failures

    def errors(template, sqlstate, *counts):
        recorded, new, gone, consequences, gone_consequences = counts
        return StatementErrors(
            template=template,
            text=f"SELECT {template}" if template is not None else "",
            sqlstate=sqlstate,
            recorded=recorded,
            new=new,
            gone=gone,
            consequences=consequences,
            gone_consequences=gone_consequences,
        )

    assert of_a.statements == [
        errors(1, "23505", 10, 0, 0, 0, 0),
        errors(2, "22012", 2, 0, 0, 0, 0),
        errors(None, "25P02", 10, 0, 0, 0, 0),
    ]
    assert of_b.statements == [
        errors(0, "42P01", 0, 6, 0, 12, 0),
        errors(2, "22012", 2, 2, 0, 0, 0),
        errors(1, "23505", 0, 0, 10, 0, 10),
        errors(None, "25P02", 0, 12, 10, 0, 0),
    ]


def test_the_terminal_names_the_causes_of_new_errors_and_what_is_gone():
    plan, trials = run_replays(2, templates)
    lines = {line.label: line.text for line in brief(decision_of(plan, trials), plan).lines()}
    assert lines["errors"] == (
        "a: 22 as recorded; b: 20 new (SELECT 0 with 42P01, 6 times and 12 later in the same transactions; SELECT 2 "
        "with 22012, 2 times), 2 as recorded, 20 recorded and gone (SELECT 1 with 23505, 10 times and 10 later in the "
        "same transactions)"
    )
    plan, trials = run_replays(2, lambda planned: [Template()])
    assert "errors" not in {line.label for line in brief(decision_of(plan, trials), plan).lines()}


def test_findings_name_causes_and_not_what_follows_from_them():
    plan, trials = run_replays(8, templates)
    (found,) = [finding for finding in findings_over(plan, {}, trials) if finding.rule == "unequal_errors"]
    assert found.message == (
        "Statements of template 0 (SELECT 0) fail in b with SQLSTATE 42P01, a table is missing there: 24 of them and "
        "48 times later in the same transactions (25P02), and 0 in a; 1 more templates fail on one arm more than on "
        "the other."
    )
    plan, trials = run_replays(
        8, lambda planned: [Template(failures={"42P01": 3, "25P02": 6}, consequences={"42P01": 6})]
    )
    (found,) = [finding for finding in findings_over(plan, {}, trials) if finding.rule == "new_errors"]
    assert found.message == (
        "Statements fail in all arms that did not fail when they were recorded: template 0 (SELECT 0) with 42P01 (a "
        "table is missing), 48 times and 96 times later in the same transactions (25P02)."
    )
