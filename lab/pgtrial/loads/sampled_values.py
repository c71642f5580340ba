"""Values for variables of scripts: distinct ones of a column, which a seed has sampled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from pgtrial.loads.target import Session
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import StudyError, one_line
from pgtrial.model.study.own_data import column_parts

MOST = 100_000
"""Values of a variable, at most."""

_SAMPLE = """SELECT text
    FROM (SELECT DISTINCT {column}::pg_catalog.text AS text FROM {table} WHERE {column} IS NOT NULL) AS all_values
    ORDER BY pg_catalog.md5(text OPERATOR(pg_catalog.||) %s::pg_catalog.text), text COLLATE pg_catalog."C" LIMIT %s"""
"""The same rows give the same values, wherever the rows lie. Names are looked up as by the load: ours are qualified."""

_IS_NUMBER = """SELECT typcategory OPERATOR(pg_catalog.=) 'N'::pg_catalog."char" FROM pg_catalog.pg_type
    WHERE oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.pg_typeof({column}) FROM {table} LIMIT 1)::pg_catalog.oid"""


def sample_values(
    session: Session, columns: Mapping[str, str], seed: int, folder: Path, *, as_text: bool
) -> dict[str, Path]:
    """Files with sampled values by variable, one value a line, below a folder; `session` is one of `connect_as_load`.

    `as_text`: the values stand in the text of statements, where those that are no numbers need quotes. Raises
    StudyError for a column that is not there, or without values.
    """
    files = {}
    for name, column in columns.items():
        values = _values(session, name, column, seed)
        if as_text and not _is_number(session, column):
            values = [sql.Literal(value).as_string() for value in values]
        files[name] = folder / f"{name}.values"
        # the values are the user's data, and the engine that reads them runs as this account
        LOCAL.write_text(files[name], "".join(f"{value}\n" for value in values), mode=0o600)
    return files


def _values(session: Session, name: str, column: str, seed: int) -> list[str]:
    where = f"[load] values: {name} = {column}"
    try:
        rows = session.execute(_filled(_SAMPLE, column), (str(seed), MOST)).fetchall()
    except psycopg.Error as error:
        words = error.diag.message_primary or one_line(error)
        raise StudyError(f"{where}: PostgreSQL says: {words}; name a table and a column of the data") from None
    values = [str(text) for (text,) in rows]
    if not values:
        raise StudyError(f"{where} has no values to draw from; load rows first, or name another column")
    if any("\n" in value for value in values):
        raise StudyError(f"{where} has values with line breaks, which cannot be drawn; name another column")
    return values


def _is_number(session: Session, column: str) -> bool:
    row = session.execute(_filled(_IS_NUMBER, column), ()).fetchone()
    return row is not None and bool(row[0])


def _filled(query: str, column: str) -> bytes:
    """The query with table and column as the study writes them: names, quoted where that is needed."""
    table, name = column_parts(column) or ("", "")
    return query.format(table=table.replace("%", "%%"), column=name.replace("%", "%%")).encode()
