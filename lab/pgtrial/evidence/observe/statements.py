"""The statements of a load; `plans.py` has their plans.

Only what the study itself sends is explained: its scripts, its queries, what its engine lists, what its capture has
recorded. No session of
others is looked at: its statement may call a function that waits to be planned by somebody with more rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pgtrial.evidence.observe.plans import SentStatement, planned, without_values
from pgtrial.loads.target import Session
from pgtrial.model.records.trial import LoadStatement

MOST_STATEMENTS = 40
"""The statements of a load that are explained, if no file lists them: the first ones."""

_NOT_KEPT = re.compile(
    r"\s*((begin|commit|end|rollback|abort|start|savepoint|release|set|reset|show|deallocate|discard)\b|$)",
    re.IGNORECASE,
)
"""What says nothing of the load's work: the control of transactions and sessions, and empty statements."""


def by_text(statements: Iterable[SentStatement]) -> dict[str, SentStatement]:
    """Returns the first example of each statement, by its text without values; without what controls a session.

    An example whose values are known comes before those whose values are not.
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
    """Further statements of the load, which are not explained."""

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """The statements with their plans on the session's server, by their text without values.

        The session is one of `connect_as_load`: to plan a statement is to run functions that it calls, by the rights of
        the session's role. Raises psycopg.OperationalError.
        """
        return {key: planned(session, statement) for key, statement in self.sent.items()}
