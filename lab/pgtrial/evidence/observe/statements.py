"""Selects the statements of a load for which pgtrial asks the server for a plan by EXPLAIN; `plans.py` does that.

Only statements that the study itself sends are explained: those of its scripts and its query files, those that the
load engine reports to have sent, and those of the capture (recorded sessions) that a replay runs again.
Statements in the sessions of other users are not explained: such a statement may call a function that somebody has
written to run with the rights of the role that plans it.
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
    """Returns one example (the text with the values of one execution) for each statement, by the text of the statement
    without values. The example is the first execution whose values are known, or else the first execution.

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
    """The statements of a load point (one load with its number of clients) that are explained by EXPLAIN, by their text
    without values.

    The servers of all arms explain the same statements with the same values, since the plan may depend on the values.
    """

    sent: dict[str, SentStatement]
    are_complete: bool
    """True if the load sends only the statements in `sent`."""
    left_out: int = 0
    """The number of further statements of the load that are not explained."""

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """Returns the statements with their plans on the server of a session, by their text without values.

        The session must come from `connect_as_load`, since planning a statement can run functions that it calls, with
        the rights of the session's role. Raises psycopg.OperationalError if the session is lost.
        """
        return {key: planned(session, statement) for key, statement in self.sent.items()}
