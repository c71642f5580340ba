"""Examines SQL statements without executing them: lets the server parse them, and reads their first words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg
from psycopg import generators
from psycopg.pq import ExecStatus

from pgtrial.loads.script_commands import ScriptCommand, ScriptFailure
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session

_READING = frozenset(("select", "values", "table", "show", "with"))
_ROWS = _READING | {"insert", "update", "delete", "merge"}
FINDS_ROWS = frozenset(("select", "table", "with", "update", "delete", "merge"))
"""The first words of statements that search for rows, in order to return or to change them."""
TRANSACTION = frozenset(("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"))
"""The first words of statements that begin or end transactions or savepoints."""
_CHANGES = re.compile(r"\b(insert|update|delete|merge|into)\b", re.IGNORECASE)
_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/|\()*([A-Za-z]+)", re.DOTALL)


def first_refusal(session: Session, commands: Sequence[ScriptCommand], protocol: str) -> ScriptFailure | None:
    """Lets the server parse the statements of a script without executing them. Returns the error for the first
    statement that the server rejects; None if it rejects none.

    The check stops at the first statement that creates something, such as a temporary table or a setting, since the
    server may reject later statements only because that object or setting does not exist yet. In the simple protocol,
    statements with variables are skipped, since a variable may stand for any part of the text. Raises psycopg.Error if
    the session is lost.
    """
    for number, command in enumerate(commands):
        if command.sql is None or (protocol == "simple" and command.variables):
            continue
        session.pgconn.send_prepare(b"", command.sql.encode())
        results = session.wait(generators.execute(session.pgconn))
        if results and results[-1].status == ExecStatus.FATAL_ERROR:
            error = psycopg.errors.error_from_result(results[-1])
            words = message_of(error)
            return ScriptFailure(words, error.sqlstate, number)
        if first_word(command.sql) not in _ROWS | TRANSACTION:
            return None
    return None


def changes_data(sql: str) -> bool:
    """True if the text of a statement shows that it changes data. Functions that the statement calls are not
    examined."""
    word = first_word(sql)
    return word not in _READING or (word in ("with", "select") and _CHANGES.search(_without_quotes(sql)) is not None)


def first_word(sql: str) -> str:
    """Returns the first word of a statement in lower case; empty if there is none."""
    match = _WORD.match(sql)
    return match[1].lower() if match is not None else ""


def _without_quotes(sql: str) -> str:
    return re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL)
