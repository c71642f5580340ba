"""Which statements a load sends, by what its sessions were last seen to run; `plans.py` has their plans."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

from pgtrial.evidence.observe.plans import SentStatement, planned, without_values
from pgtrial.evidence.observe.views import LAB_NAME
from pgtrial.loads.target import Session, backend_type, is_pooled, value
from pgtrial.model.records.trial import LoadStatement

MOST_STATEMENTS = 40
"""Statements of a load that are kept: those that were seen first."""

_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"

_LAST_STATEMENTS = f"""SELECT query, count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND {{backend_type}} = 'client backend' AND pid <> pg_backend_pid()
        AND application_name NOT LIKE '{LAB_NAME}' AND application_name NOT LIKE 'pgtrial study %%'
        AND extract(epoch FROM backend_start) >= %s
        AND octet_length(query) < pg_size_bytes(current_setting('track_activity_query_size')) - 1
    GROUP BY query ORDER BY query LIMIT 200"""
"""Of the sessions that began with the load; what the view has cut is no statement."""

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
    """Whether they are those of the scripts; else sessions are looked at."""


class SeenStatements:
    """The statements of the load of one trial."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._since: float | None = None
        self.sessions = 0
        """How often a session was looked at."""

    def begin(self, session: Session) -> None:
        """Take the sessions that begin from now on for those of the load. Raises psycopg.Error."""
        if not self._statements.are_complete and not is_pooled(session):  # a pooler's are older, and any client's
            self._since = value(session, _NOW)

    def look(self, session: Session) -> None:
        """Note what the sessions of the load run now, or have run last. What the server refuses ends the looking."""
        if self._since is None:
            return
        try:
            query = _LAST_STATEMENTS.format(backend_type=backend_type(session))
            rows = session.execute(query.encode(), (self._since,)).fetchall()
        except psycopg.Error:
            self._since = None
            return
        self.sessions += sum(sessions for _, sessions in rows)
        for key, example in by_text(SentStatement(text) for text, _ in rows).items():
            if len(self._statements.sent) < MOST_STATEMENTS:
                self._statements.sent.setdefault(key, example)

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """The statements seen so far with their plans here, by their text without values. Raises OperationalError."""
        return {key: planned(session, statement) for key, statement in self._statements.sent.items()}
