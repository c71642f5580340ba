"""Samples values for the variables of scripts: distinct values of a table's column, chosen at random by a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session
from pgtrial.machines.machine import LOCAL
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.own_data import column_parts

MOST = 100_000
"""The largest number of values that are sampled for one variable."""

_SAMPLE = """SELECT text
    FROM (SELECT DISTINCT {column}::pg_catalog.text AS text FROM {table} WHERE {column} IS NOT NULL) AS all_values
    ORDER BY pg_catalog.md5(text OPERATOR(pg_catalog.||) %s::pg_catalog.text), text COLLATE pg_catalog."C" LIMIT %s"""
"""Samples a column so that the same rows always give the same values, whatever their physical order is. The user's
names are looked up by the search path of the load, so all names of PostgreSQL's own objects are qualified."""

_IS_NUMBER = """SELECT typcategory OPERATOR(pg_catalog.=) 'N'::pg_catalog."char" FROM pg_catalog.pg_type
    WHERE oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.pg_typeof({column}) FROM {table} LIMIT 1)::pg_catalog.oid"""


_ABSENT = """SELECT pg_catalog.count(*) FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS drawn (text)
    WHERE NOT EXISTS (SELECT FROM {table}
        WHERE {column}::pg_catalog.text COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) drawn.text)"""


def draw_values(
    session: Session, columns: Mapping[str, str], seed: int, *, where: str | None = None
) -> dict[str, list[str]]:
    """Returns sampled values for each variable: distinct values of its column, chosen by the seed. `columns` maps
    variables to columns, and `session` must have been opened by `Target.connect_as_load`.

    In messages, `where` is the key of the study file that names the columns, `[load] values` by default. Raises
    StudyError if a column is missing or has no values.
    """
    key = where or marks.key("load", "values")
    return {name: _values(session, column, seed, f"{key}: {name} = {column}") for name, column in columns.items()}


def check_values(
    session: Session, columns: Mapping[str, str], drawn: Mapping[str, Sequence[str]], first: str, arm: str
) -> None:
    """Checks that another arm has the values that were sampled on the first arm, in the same columns.

    Raises StudyError if values are missing: statements would find no rows for them, and would be faster for that
    reason, so the arms could not be compared.
    """
    for name, column in columns.items():
        try:
            row = session.execute(_filled(_ABSENT, column), (list(drawn[name]),)).fetchone()
        except psycopg.Error as error:
            raise _refused(f"arms.{arm}: {_named(name, column)}", error) from None
        absent = int(row[0]) if row is not None else 0
        if absent:
            raise StudyError(
                f"arms.{arm}: {_named(name, column)}: {_share(absent, len(drawn[name]))} of the values that were drawn "
                f"on {first} are not in the column on {arm}, where statements would find no rows for them; load one "
                "dump into all arms, or have the SQL that makes the rows make the same ones each time (SELECT "
                "setseed(0.5) before random(), constant values in place of gen_random_uuid()), or give the arm values "
                f"of its own data: {marks.at_arm(arm)}values"
            )


def _share(absent: int, of: int) -> str:
    return "all" if absent == of else f"{max(100.0 * absent / of, 0.1):.1f}%"


def write_values(
    session: Session, columns: Mapping[str, str], drawn: Mapping[str, Sequence[str]], folder: Path, *, as_text: bool
) -> dict[str, Path]:
    """Writes the sampled values of each variable into a file, one value per line. `session` must have been opened by
    `Target.connect_as_load`.

    Returns the files by variable. With `as_text` the values are inserted into the text of statements, so values that
    are not numbers are written in quotes.
    """
    files = {}
    for name, column in columns.items():
        values = list(drawn[name])
        if as_text and not _is_number(session, column):
            values = [sql.Literal(value).as_string() for value in values]
        files[name] = folder / f"{name}.values"
        # only this account may read the values, since they are the user's data; the engine that reads them runs as this
        # account
        LOCAL.write_text(files[name], "".join(f"{value}\n" for value in values), mode=0o600)
    return files


def _values(session: Session, column: str, seed: int, where: str) -> list[str]:
    try:
        rows = session.execute(_filled(_SAMPLE, column), (str(seed), MOST)).fetchall()
    except psycopg.Error as error:
        raise _refused(where, error) from None
    values = [str(text) for (text,) in rows]
    if not values:
        raise StudyError(f"{where} has no values in its column; load rows first, or name another column")
    if any("\n" in value for value in values):
        raise StudyError(
            f"{where} has values with line breaks, which pgtrial cannot write into a file of values; name another "
            "column"
        )
    return values


def _named(name: str, column: str) -> str:
    return f"{marks.key('load', 'values')}: {name} = {column}"


def _refused(where: str, error: psycopg.Error) -> StudyError:
    words = message_of(error)
    return StudyError(f"{where}: PostgreSQL says: {words}; name a table and a column of the data")


def _is_number(session: Session, column: str) -> bool:
    row = session.execute(_filled(_IS_NUMBER, column), ()).fetchone()
    return row is not None and bool(row[0])


def _filled(query: str, column: str) -> bytes:
    """Returns the query in which the placeholders are replaced by the table and the column. The names are inserted as
    the study file writes them: the user has already quoted names that need quotes."""
    table, name = column_parts(column) or ("", "")
    return query.format(table=table.replace("%", "%%"), column=name.replace("%", "%%")).encode()
