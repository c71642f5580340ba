"""Counts the errors of a replay's statements on each arm, and compares them with the errors in the recording. Errors
are counted by SQLSTATE and by template, which is the text of statements that differ only in values.

The counts describe the arms, and are not used for verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pgtrial.model.records.replay import IN_FAILED_TRANSACTION, TemplateResult
from pgtrial.model.records.results import StatementErrors
from pgtrial.model.records.trial import Trial

_Counts = Counter[tuple[int | None, str]]
"""The numbers of errors, by template (statements that differ only in values) and SQLSTATE. Errors that follow from an
earlier error have the template None."""


def statement_errors(trials: Iterable[Trial]) -> list[StatementErrors]:
    """Returns the errors of all trials of an arm, beginning with errors that did not occur in the recording. The result
    is empty if there is no replay.

    Errors that follow from an earlier error in the same transaction (25P02) are counted as consequences of that error.
    All of them together also have one entry of their own.
    """
    recorded, new, gone, after, gone_after = _Counts(), _Counts(), _Counts(), _Counts(), _Counts()
    texts: dict[int | None, str] = {None: ""}
    for template in _templates(trials):
        texts[template.template] = template.text
        for counts, errors in (
            (recorded, template.expected),
            (new, template.failures),
            (gone, template.missing_failures),
            (after, template.consequences),
            (gone_after, template.missing_consequences),
        ):
            counts.update({_key(template, sqlstate): count for sqlstate, count in errors.items()})
    keys = recorded.keys() | new.keys() | gone.keys() | after.keys()
    entries = [
        StatementErrors(
            template=template,
            text=texts[template],
            sqlstate=sqlstate,
            recorded=recorded[template, sqlstate],
            new=new[template, sqlstate],
            gone=gone[template, sqlstate],
            consequences=after[template, sqlstate],
            gone_consequences=gone_after[template, sqlstate],
        )
        for template, sqlstate in keys
    ]
    return sorted(entries, key=_rank)


def _templates(trials: Iterable[Trial]) -> list[TemplateResult]:
    return [template for trial in trials if trial.replay is not None for template in trial.replay.templates]


def _key(template: TemplateResult, sqlstate: str) -> tuple[int | None, str]:
    return (None if sqlstate == IN_FAILED_TRANSACTION else template.template, sqlstate)


def _rank(errors: StatementErrors) -> tuple[bool, int, int, int, int, str]:
    """Returns the key by which errors are sorted. Errors come before the errors that follow from them in the same
    transaction; among them, the numbers of new errors, of errors that no longer occur, and of recorded errors
    decide."""
    is_cause = errors.template is not None
    number = errors.template if errors.template is not None else -1
    return (not is_cause, -errors.new, -errors.gone, -errors.recorded, number, errors.sqlstate)
