"""Describes the errors of a replay's statements in one line for each arm. A replay runs recorded sessions again. The
line has errors that are new, errors that also occurred when the sessions were recorded, and errors of the recording
that did not occur again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pgtrial.model.records.results import Failures, StatementErrors
from pgtrial.model.units import and_more, plural, shortened

NAMED_STATEMENTS = 2
"""The number of statements that a text about an arm names, such as statements with new errors. The text gives the
number of the others."""
NAMED_LENGTH = 40
"""The number of characters of a statement that are shown."""


@dataclass(frozen=True)
class _Errors:
    """The failures of the statements of one template with one SQLSTATE, and the later failures in the same
    transactions. A template is the text of statements that differ only in values."""

    text: str
    sqlstate: str
    count: int
    later: int

    def __str__(self) -> str:
        later = f" and {self.later:,} later in the same transactions" if self.later else ""
        return f"{shortened(self.text, NAMED_LENGTH)} with {self.sqlstate}, {plural(self.count, 'time')}{later}"


def errors_text(failures: Failures) -> str:
    """Returns one line about the errors of an arm's statements in a replay, such as `b: 5 new (SELECT * FROM t with
    42P01, 2 times and 3 later in the same transactions), 13 as recorded`. Errors are new if they did not occur when the
    sessions were recorded."""
    of_arm = failures.statements
    new, recorded, gone = (sum(getattr(errors, kind) for errors in of_arm) for kind in ("new", "recorded", "gone"))
    parts = [f"{new:,} new{_named(_new(of_arm))}"] if new else []
    parts += [f"{recorded:,} as recorded"] if recorded else []
    parts += [f"{gone:,} recorded and gone{_named(_gone(of_arm))}"] if gone else []
    return f"{failures.arm}: {', '.join(parts)}"


def _new(of_arm: Iterable[StatementErrors]) -> Iterator[_Errors]:
    for errors in of_arm:
        if errors.template is not None and errors.new + errors.consequences:
            yield _Errors(errors.text, errors.sqlstate, errors.new, errors.consequences)


def _gone(of_arm: Iterable[StatementErrors]) -> Iterator[_Errors]:
    for errors in of_arm:
        if errors.template is not None and errors.gone + errors.gone_consequences:
            yield _Errors(errors.text, errors.sqlstate, errors.gone, errors.gone_consequences)


def _named(causes: Iterable[_Errors]) -> str:
    ranked = sorted(causes, key=lambda errors: -errors.count - errors.later)
    named = [str(errors) for errors in ranked[:NAMED_STATEMENTS]]
    return f" ({'; '.join(and_more(named, len(ranked)))})" if named else ""
