"""The failures of a rehearsal: the arms on which they occur, and the advice for the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pgtrial.loads.script_commands import ScriptFailure
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec

_MISSING = frozenset(("42P01", "3F000", "42703", "42883", "42704"))
"""The SQLSTATEs with which PostgreSQL refuses names that do not exist."""

_NOT_PERMITTED = "42501"
"""The SQLSTATE of a statement for which the role of the load lacks the right."""

AT_TIMES = frozenset(("57014", "55P03", "40001", "40P01"))
"""The SQLSTATEs of failures that a transaction can have by chance: it took longer than a limit of its session
(`statement_timeout`, `lock_timeout`), could not be serialised, or was in a deadlock."""

MOST_TRIES = 3
"""The number of times that a script that fails with one of AT_TIMES is run before its rehearsal counts as failed. A
study can measure a load in which some transactions fail, by chance or because a cache was cold; such failures count in
each trial."""

TOO_LONG = f"write a statement that needs less time, use less data, or set a longer {marks.key('load', 'duration')}"


@dataclass(frozen=True)
class RehearsalFailure:
    """One failure of a rehearsal: a sentence on what has failed, and the advice what to do about it. The sentence does
    not name the arms."""

    text: str
    cure: str

    def complain(self, where: str) -> NoReturn:
        """Raises StudyError with the failure, the advice, and `where`, a phrase that names the arms."""
        raise StudyError(f"{self.text}, {where}; {self.cure}")


def cure_of(spec: StudySpec, failure: ScriptFailure, owner: str | None) -> str:
    """Returns the advice for the failure of a script. `owner` is the role of the load on a server that pgtrial makes;
    None on a given server."""
    if failure.sqlstate in _MISSING:
        return (
            f"correct the name, or load what is missing by --data{marks.file_key('load', 'data')}"
            if not spec.load.data
            else ("correct the name, or add what is missing to the data")
        )
    if failure.sqlstate == _NOT_PERMITTED and owner is not None:
        setup_sql = marks.key_in("server", "setup_sql", preposition="of")
        return (
            f"the load runs as {owner}, which is not a superuser: GRANT the needed rights to this role in {setup_sql}"
        )
    if "has no value" in failure.words:
        return f"give the variable a value by \\set, or by --values NAME=TABLE.COLUMN{marks.file_key('load', 'values')}"
    if "time limit of a rehearsal" in failure.words:
        return TOO_LONG
    return "correct the script, and run the study again"


@dataclass
class RehearsalFailures:
    """All failures of a rehearsal, with the arms on which each of them occurred."""

    arms: Sequence[str]
    by_failure: dict[RehearsalFailure, list[str]] = field(default_factory=dict)

    def add(self, arm: str, failures: Sequence[RehearsalFailure]) -> None:
        """Adds the failures that occurred on an arm."""
        for failure in failures:
            self.by_failure.setdefault(failure, []).append(arm)

    def complain(self) -> None:
        """Raises StudyError with the first failure, if there is one."""
        for failure, arms in self.by_failure.items():
            where = "on all arms" if len(arms) == len(self.arms) else f"on {' and '.join(arms)} alone"
            more = f" ({len(self.by_failure) - 1} more failed)" if len(self.by_failure) > 1 else ""
            failure.complain(f"{where}{more}")
