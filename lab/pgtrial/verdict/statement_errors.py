"""Counts the errors of a replay's statements on each arm beside the recorded ones, by template and SQLSTATE.

The counts describe the arms; no verdict follows from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pgtrial.model.records.replay import IN_FAILED_TRANSACTION, TemplateResult
from pgtrial.model.records.results import StatementErrors
from pgtrial.model.records.trial import Trial

_Counts = Counter[tuple[int | None, str]]
"""Numbers of errors, by template and SQLSTATE."""


def statement_errors(trials: Iterable[Trial]) -> list[StatementErrors]:
    """Returns the errors of all trials of an arm, the new ones first; [] without a replay.

    Errors that follow from an earlier one in the same transaction (25P02) are counted with that error, and also are one
    entry of their own.
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
    """Sorts causes before the errors that follow from them, then by the numbers of new, gone and recorded errors."""
    is_cause = errors.template is not None
    number = errors.template if errors.template is not None else -1
    return (not is_cause, -errors.new, -errors.gone, -errors.recorded, number, errors.sqlstate)
