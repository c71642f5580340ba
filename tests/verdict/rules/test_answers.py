"""A replay whose arms do not give the same answers: rows that differ, and statements that fail on one arm."""

from __future__ import annotations

from pgtrial.model.records.facts import Finding
from tests.verdict.replays import Template, Templates, run_replays
from tests.verdict.studies import decision_of, findings_over


def findings(templates: Templates, blocks: int = 8) -> list[Finding]:
    plan, trials = run_replays(blocks, templates)
    return [each for each in findings_over(plan, {}, trials) if each.rule in ("unequal_rows", "unequal_errors")]


def test_equal_answers_are_no_finding():
    assert findings(lambda planned: [Template(), Template(rows=0, failures={"23505": 3})]) == []


def test_a_fast_wrong_answer_is_named_with_both_numbers_of_rows():
    (found,) = findings(lambda planned: [Template(), Template(rows=500 if planned.arm == "a" else 40)])
    assert (found.rule, found.severity, found.arms) == ("unequal_rows", "warning", ["a", "b"])
    assert found.message == (
        "Statements of template 1 (SELECT 1) do not return or change the same rows: 500 in a and 40 in b (the first "
        "such block)."
    )


def test_statements_that_find_rows_in_one_arm_only_withhold_the_verdict_and_are_named_first():
    def templates(planned):
        is_b = planned.arm == "b"
        return [Template(rows=90 if is_b else 100), Template(rows=0 if is_b else 100), Template(rows=0)]

    (found,) = findings(templates)
    assert (found.severity, found.arms) == ("withhold", ["a", "b"])
    assert found.message == (
        "Statements of template 1 (SELECT 1) do not return or change the same rows: 100 in a and 0 in b (the first "
        "such block); 1 more templates differ."
    )


def test_the_same_number_of_other_values_is_found_by_their_hashes():
    (found,) = findings(lambda planned: [Template(rows_hash="0a" if planned.arm == "a" else "0b")])
    assert (
        "do not return or change the same values: 100 rows in both have the hashes 0a in a and 0b in b" in found.message
    )


def test_rows_that_depend_on_the_order_of_sessions_are_no_finding():
    def templates(planned):
        return [Template(rows=100 + (planned.seed % 7))]

    assert findings(lambda planned: [Template(rows=100 + planned.index)]) == []
    assert findings(templates) == []


def test_one_odd_block_of_eight_is_tolerated():
    def odd(planned):
        return [Template(rows=7 if planned.arm == "b" and planned.block == 3 else 8)]

    assert findings(odd) == []


def test_a_table_that_is_missing_in_an_arm_withholds_its_verdict():
    (found,) = findings(lambda planned: [Template(), Template(failures={"42P01": 100} if planned.arm == "b" else {})])
    assert (found.rule, found.severity, found.arms) == ("unequal_errors", "withhold", ["b"])
    assert found.message == (
        "Statements of template 1 (SELECT 1) fail in b with SQLSTATE 42P01, a table is missing there: 800 of them, and "
        "0 in a."
    )


def test_a_table_that_the_baseline_lacks_is_told_of_the_comparison():
    (found,) = findings(lambda planned: [Template(), Template(failures={"42P01": 100} if planned.arm == "a" else {})])
    assert found.arms == ["a", "b"]
    assert "fail in a with SQLSTATE 42P01" in found.message


def test_a_few_statements_on_a_missing_table_and_other_errors_are_warnings():
    def templates(planned):
        is_b = planned.arm == "b"
        few = {"42P01": 1} if is_b else {}
        return [Template(statements=5000), Template(failures=few), Template(failures={"40001": 9} if is_b else {})]

    (found,) = findings(templates)
    assert found.severity == "warning"
    assert "template 2 (SELECT 2) fail in b with SQLSTATE 40001, errors that were not recorded: 72" in found.message
    assert "1 more templates fail on one arm more" in found.message


def test_statements_that_fail_anew_on_all_arms_are_named():
    def templates(planned):
        return [Template(failures={"42P01": 2}), Template(), Template(failures={"23505": 1, "40001": 9})]

    plan, trials = run_replays(8, templates)
    (found,) = [finding for finding in findings_over(plan, {}, trials) if finding.rule == "new_errors"]
    assert (found.severity, found.arms) == ("warning", ["a", "b"])
    assert found.message == (
        "Statements fail in all arms that did not fail when they were recorded: template 2 (SELECT 2) with 40001, 144 "
        "times; template 0 (SELECT 0) with 42P01 (a table is missing), 32 times; template 2 (SELECT 2) with 23505, 16 "
        "times."
    )


def test_errors_with_the_sqlstate_of_recorded_ones_are_failures_too():
    """The engine counts errors that were recorded as transactions, never as failures."""
    plan, trials = run_replays(8, lambda planned: [Template(failures={"23505": 3}, expected={"23505": 10})])
    recorded = [
        trial.model_copy(
            update={
                "measured": trial.measured.model_copy(update={"transactions": 97, "failures": {"23505": 3}}),
                "replay": trial.replay.model_copy(update={"expected_failures": {"23505": 10}}),
            }
        )
        for trial in trials
        if trial.measured and trial.replay
    ]
    for found in decision_of(plan, recorded).failures:
        assert (found.by_kind, found.failed_transactions, found.transactions) == ({"23505": 24}, 24, 8 * 97)
