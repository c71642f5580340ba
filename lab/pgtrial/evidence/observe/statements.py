"""The statements of a load; `plans.py` has their plans.

Only statements that the study itself sends are explained: those of its scripts, of its queries, of its engine's list
and of its capture. The sessions of others are not looked at: their statement may call a function that somebody has
prepared to run with the rights of whoever plans it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pgtrial.evidence.observe.plans import SentStatement, planned, without_values
from pgtrial.loads.target import Session
from pgtrial.model.records.trial import LoadStatement

MOST_STATEMENTS = 40
"""The number of a load's statements that are explained if no file lists them: the first ones."""

_NOT_KEPT = re.compile(
    r"\s*((begin|commit|end|rollback|abort|start|savepoint|release|set|reset|show|deallocate|discard)\b|$)",
    re.IGNORECASE,
)
"""Matches statements that do none of the load's work: control of transactions and sessions, and empty statements."""


def by_text(statements: Iterable[SentStatement]) -> dict[str, SentStatement]:
    """Returns the first example of each statement, by its text without values. An example with known values is
    preferred.

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
    """The statements of the load at a load point, by their text without values.

    All arms explain the same ones, since the plan may depend on the values.
    """

    sent: dict[str, SentStatement]
    are_complete: bool
    """True if the load sends no other statements than these."""
    left_out: int = 0
    """The number of further statements of the load, which are not explained."""

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """Returns the statements with their plans on the session's server, by their text without values.

        The session must come from `connect_as_load`, since planning a statement can run functions that it calls, with
        the rights of the session's role. Raises psycopg.OperationalError.
        """
        return {key: planned(session, statement) for key, statement in self.sent.items()}
