"""Which statements a load sends, from what its sessions were last seen to run, and their plans on the arm's server.

EXPLAIN executes nothing. Each statement is explained in a transaction of its own that reads only and is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg

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

_EXPLAINED = re.compile(r"\s*\(*\s*(select|insert|update|delete|merge|with|values|table)\b", re.IGNORECASE)
_NOT_KEPT = re.compile(
    r"\s*((begin|commit|end|rollback|abort|start|savepoint|release|set|reset|show|deallocate|discard)\b|$)",
    re.IGNORECASE,
)
"""What says nothing of the load's work: the control of transactions and sessions, and empty statements."""

_PARAMETER = re.compile(r"\$(\d+)\b")
_VALUES = re.compile(r"'(?:[^']|'')*'|(?<![\w$.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", re.IGNORECASE)
_COSTS = re.compile(r"\s*\(cost=[^)]*\)$")
_NAME = "pgtrial_explained"


def without_values(text: str) -> str:
    """A statement with `?` for its numbers and quoted texts, on one line."""
    return _VALUES.sub("?", " ".join(text.split()))


def by_text(texts: Iterable[str]) -> dict[str, str]:
    """The first example of each statement, by its text without values; without what controls a session."""
    examples: dict[str, str] = {}
    for text in texts:
        if not _NOT_KEPT.match(text):
            examples.setdefault(without_values(text), text)
    return examples


@dataclass
class Statements:
    """The statements of the load at a load point, by their text without values.

    All arms explain the same ones, since the plan may depend on the values.
    """

    texts: dict[str, str]
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
        for key, example in by_text(text for text, _ in rows).items():
            if len(self._statements.texts) < MOST_STATEMENTS:
                self._statements.texts.setdefault(key, example)

    def plans(self, session: Session) -> dict[str, LoadStatement]:
        """The statements seen so far with their plans here, by their text without values. Raises OperationalError."""
        return {
            key: LoadStatement(text=text, plan=_plan(session, text)) for key, text in self._statements.texts.items()
        }


def _plan(session: Session, text: str) -> list[str]:
    """The plan without costs; none of what EXPLAIN does not know, or refuses."""
    if not _EXPLAINED.match(text):
        return []
    parameters = max((int(number) for number in _PARAMETER.findall(text)), default=0)
    if parameters and session.info.server_version < 120000:
        return []
    with suppress(psycopg.Error):
        return [_COSTS.sub("", line) for line in explain(session, text, ["NULL"] * parameters, generic=True)]
    return []


def explain(session: Session, text: str, arguments: Sequence[str], *, generic: bool = False) -> list[str]:
    """The plan of a statement whose parameters have these literals; `generic`: the one for any values.

    Nothing is executed: the transaction reads only, and is rolled back. Raises psycopg.Error.
    """
    try:
        with session.transaction(force_rollback=True):
            session.execute("SET TRANSACTION READ ONLY")
            explained = text
            if arguments:
                if generic:
                    session.execute("SET LOCAL plan_cache_mode = force_generic_plan")
                session.execute(f"PREPARE {_NAME} AS {text}".encode(), binary=True)
                explained = f"EXECUTE {_NAME}({', '.join(arguments)})"
            # `binary` has the protocol reject several statements in one text
            return [str(line) for (line,) in session.execute(f"EXPLAIN {explained}".encode(), binary=True).fetchall()]
    finally:
        if arguments:
            with suppress(psycopg.Error):
                session.execute(f"DEALLOCATE {_NAME}")
