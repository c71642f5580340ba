"""Selects the statements of a load that are explained; `plans.py` finds their plans.

Only statements that the study itself sends are explained: those of its scripts, of its query files, of its engine's
list and of its capture. Statements in the sessions of other users are not explained: such a statement may call a
function that somebody has written to run with the rights of the role that plans it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pgtrial.evidence.observe.plans import SentStatement, planned, without_values
from pgtrial.loads.target import Session
from pgtrial.model.records.trial import LoadStatement

MOST_STATEMENTS = 40
"""The largest number of statements that are explained if no file lists the statements of the load; these are the first
ones that it sends."""

_NOT_KEPT = re.compile(
    r"\s*((begin|commit|end|rollback|abort|start|savepoint|release|set|reset|show|deallocate|discard)\b|$)",
    re.IGNORECASE,
)
"""Matches statements that only control transactions or sessions, and empty statements."""


def by_text(statements: Iterable[SentStatement]) -> dict[str, SentStatement]:
    """Returns one example of each statement, by its text without values: the first example, or the first one with known
    values.

    Statements that control transactions or sessions are left out.
    """
    examples: dict[str, SentStatement] = {}
    for one in statements:
        if not _NOT_KEPT.match(one.text):
            key = without_values(one.text)
            known = examples.setdefault(key, one)
            if one.values and not known.values:
                examples[key] = one
    return examples


@dataclass
class Statements:
    """The statements of a load point that are explained, by their text without values.

    All arms explain the same examples, since the plan may depend on the values.
    """

    sent: dict[str, SentStatement]
    are_complete: bool
    """True if the load sends only these statements."""
    left_out: int = 0
    """The number of further statements of the load that are not explained."""

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """Returns the statements with their plans on the server of a session, by their text without values.

        The session must come from `connect_as_load`, since planning a statement can run functions that it calls, with
        the rights of the session's role. Raises psycopg.OperationalError.
        """
        return {key: planned(session, statement) for key, statement in self.sent.items()}
