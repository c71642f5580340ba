"""The tables of a replay of recorded sessions. They compare the times of each template (the text of statements that
differ only in values) between the arms, and show the plans of statements that became slower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.replay import IN_FAILED_TRANSACTION
from pgtrial.model.records.results import StatementClaim, StatementErrors
from pgtrial.model.study.replay import MOST_STATEMENTS
from pgtrial.model.units import as_written, percent
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE, Column, Table, number
from pgtrial.report.tables.plans import side_by_side
from pgtrial.report.tables.results import verdict_text
from pgtrial.report.words import signed, times_as_long
from pgtrial.verdict.metrics.statements import FEWEST_STATEMENTS, LEAST_SHARE


def statement_tables(data: StudyData) -> list[Table[StatementClaim]]:
    """Returns one table for each comparison, with a row for each template (the text of statements that differ only in
    values). The result is empty if the load is not a replay, and before there are trials of both arms."""
    arms = dict.fromkeys(claim.arm for claim in data.result.statements)
    return [_statements(data, arm) for arm in arms]


def _statements(data: StudyData, arm: str) -> Table[StatementClaim]:
    claims = [claim for claim in data.result.statements if claim.arm == arm]
    baseline = claims[0].baseline
    caption = (
        f"Statements of {arm} against {baseline}: templates that take {percent(LEAST_SHARE, 0)} of the time of all "
        f"statements on one of the arms, with {FEWEST_STATEMENTS} statements in each trial, at most {MOST_STATEMENTS}. "
        "Times are of the median trial, from sending to the answer. The difference is one of speed (-50%: twice the "
        f"time); the margin is {as_written(data.plan.margin)}. The claims of a comparison share the error of each "
        "look: their intervals hold together."
    )

    def of_both(head: str, value: Callable[[str, StatementClaim], Any], form: str = "") -> list[Column[StatementClaim]]:
        return [number(f"{name}: {head}", partial(value, name), form) for name in (baseline, arm)]

    return Table(
        caption,
        claims,
        [
            Column("template", lambda claim: str(claim.template)),
            Column("statement", lambda claim: claim.text),
            number("statements", lambda claim: claim.statements, ","),
            *of_both("mean, ms", lambda name, claim: claim.mean_us[name] / 1000, ",.3f"),
            *of_both("share", lambda name, claim: percent(claim.share[name], 1)),
            number("difference", lambda claim: claim.difference, lambda difference: signed(difference.value)),
            number("95% interval", lambda claim: claim.difference, Estimate.text),
            Column("verdict", _verdict, verdict=lambda claim: claim.verdict),
            *of_both("rows", lambda name, claim: round(median(rows for rows, _ in _of(data, name, claim))), ","),
            *of_both("errors", lambda name, claim: sum(errors for _, errors in _of(data, name, claim)), ","),
        ],
        lambda claim: claim.is_slower,
    )


def _verdict(claim: StatementClaim) -> str:
    if claim.is_slower and claim.difference is not None:
        return f"worse: {times_as_long(claim.difference)}"
    return verdict_text(claim)


def _of(data: StudyData, arm: str, claim: StatementClaim) -> list[tuple[int, int]]:
    """Returns the numbers of rows and of errors of a template (statements that differ only in values), for each
    completed trial of an arm. Errors that also occurred in the recording do not count."""
    return [
        (template.rows, sum(template.failures.values()))
        for trial in data.trials
        if trial.arm == arm and trial.status == "completed" and trial.replay is not None
        for template in trial.replay.templates
        if template.template == claim.template
    ]


def error_tables(data: StudyData) -> list[Table[tuple[str, StatementErrors]]]:
    """Returns the table of the statements that failed in the replay or in the recording."""
    return [
        Table(
            "Errors of statements in comparison with the recorded ones, over all trials of an arm: new ones, "
            "those that occurred as recorded, and recorded ones that are gone. After an error, later "
            f"statements of the same transaction fail with {IN_FAILED_TRANSACTION}. They are counted "
            "with that error, and are the last row of an arm.",
            [(failures.arm, errors) for failures in data.result.failures for errors in failures.statements],
            [
                Column("arm", lambda row: row[0]),
                number("template", lambda row: row[1].template),
                Column("statement", lambda row: row[1].text or "later statements of failed transactions"),
                Column("SQLSTATE", lambda row: row[1].sqlstate),
                number("new", lambda row: row[1].new, ","),
                number("as recorded", lambda row: row[1].recorded, ","),
                number("gone", lambda row: row[1].gone, ","),
                number("new after it", lambda row: row[1].consequences, ","),
                number("gone after it", lambda row: row[1].gone_consequences, ","),
            ],
        )
    ]


def plan_tables(data: StudyData) -> list[Table[Sequence[str]]]:
    """Returns, for each statement that became slower, its plans on both arms side by side. If EXPLAIN rejects the
    statement on both arms, there is no plan to show, and the statement is left out."""
    if data.statement_plans is None:
        return []
    known = {(plan.arm, plan.template): plan for plan in data.statement_plans.plans}
    tables = []
    for claim in data.result.statements:
        keys = [(arm, claim.template) for arm in (claim.baseline, claim.arm)]
        pair = [known[key] for key in keys if key in known]
        if not claim.is_slower or len(pair) < 2 or not any(statement.plan for statement in pair):
            continue
        tables.append(
            side_by_side(
                f"Plans of template {claim.template}: {claim.text}, for one recorded statement, by EXPLAIN on a fresh "
                f"copy of the data after {data.statement_plans.blocks} blocks.",
                (claim.baseline, claim.arm),
                [statement.plan or [statement.refusal or NONE] for statement in pair],
            )
        )
    return tables
