"""Collects the unlogged tables in the database of the load. A server with such tables may lose acknowledged
transactions, whatever its settings are."""

from __future__ import annotations

from typing import Any

from pgtrial.evidence.collect.subject import Subject, collector

_UNLOGGED = """SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relpersistence = 'u' AND c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_'"""


@collector("server", server=True)
def unlogged_tables(subject: Subject) -> dict[str, Any]:
    """Returns the fact `unlogged_tables`: the names of the tables that write no WAL, which are empty after a crash of
    the server."""
    rows = subject.rows(_UNLOGGED)
    return {"unlogged_tables": None if rows is None else sorted(str(name) for (name,) in rows)}
