"""Reads and writes the marks of pgtrial. A mark is a comment on an object of a database, which says that pgtrial
created the object, and names the server, the database and the object at that time (the "address").

A restored dump or a copy of a database has the same comments on other objects, and somebody may have renamed an object.
The address in the comment then differs from the object's real address, and pgtrial does not treat the object as its
own. The engine writes and reads marks of the same form (`engine/tables/src/mark.rs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from psycopg import sql

from pgtrial.loads.names import is_reached, qualified
from pgtrial.loads.target import Session, value

_BEGIN = " [made as "
"""The separator, in a mark, between its text and the names of server, database and object."""

_UNKNOWN = "-"
"""The text that stands in a mark in place of the server's system identifier, if the role is not allowed to read the
identifier."""

_MAY_ASK = """SELECT pg_catalog.has_function_privilege(
    pg_catalog.to_regprocedure('pg_catalog.pg_control_system()')::pg_catalog.oid, 'execute')"""
_ASK = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"


class Mark(NamedTuple):
    """The comment on an object of a database, read as a mark by which pgtrial recognises its own objects."""

    text: str
    """The text of the mark without the names of server, database and object; empty if the object has no comment."""
    is_here: bool = True
    """True if the server, the database and the name in the mark are those of the object. Marks by pgtrial up to 0.2 do
    not contain them, and are trusted without this check."""

    def is_ours(self, beginnings: str | tuple[str, ...]) -> bool:
        """True if pgtrial created this object itself: the mark begins with one of `beginnings`, and the server, the
        database and the name in the mark are still those of the object."""
        return self.is_here and self.text.startswith(beginnings)

    def is_copy(self, beginnings: str | tuple[str, ...]) -> bool:
        """True if the mark was copied from another object that pgtrial created: it begins with one of `beginnings`, but
        names another server, database or object."""
        return not self.is_here and self.text.startswith(beginnings)


def address_of(name: str, oid: str) -> str:
    """Returns an SQL expression for the address of an object: a text that names its database and the object. The
    server's identifier, which a mark also contains, is added by `Marks`. `name` and `oid` are SQL
    expressions for its name and its OID.

    The result has only ASCII characters, so that it is the same in every encoding and needs no quotes.
    """
    return (
        "pg_catalog.concat('.', (SELECT d.oid FROM pg_catalog.pg_database d "
        f"WHERE d.datname = pg_catalog.current_database()), '.', {oid}, ' ', "
        f"{_plain('pg_catalog.current_database()')}, '.', {_plain(name)}, ']')"
    )


def _plain(name: str) -> str:
    return f"pg_catalog.regexp_replace({name}::pg_catalog.text, '[^A-Za-z0-9_]', '?', 'g')"


class Marks:
    """Reads and writes marks (comments by which pgtrial recognises its own objects) on the server to which a session is
    connected."""

    def __init__(self, session: Session) -> None:
        self._system = str(value(session, _ASK)) if value(session, _MAY_ASK) else _UNKNOWN

    def read(self, comment: str, address: str) -> Mark:
        """Returns the comment of an object as a mark. `address` is the text that names the object and its database now,
        as the SQL expression of `address_of` returns it."""
        text, begun, named = comment.rpartition(_BEGIN)
        if not begun:
            return Mark(comment)
        system, _, _ = named.partition(".")
        return Mark(text, system in (self._system, _UNKNOWN) and named == system + address)

    def comment(self, text: str, address: str) -> str:
        """Returns the comment that marks an object as pgtrial's: this text, and the names of the server and of the
        object's address (see `address_of`)."""
        return f"{text}{_BEGIN}{self._system}{address}"


def mark_on(connection: Session, relation: str) -> Mark | None:
    """Returns the comment, read as a mark, on the relation that the unqualified name `relation` means in the load; None
    if there is no such relation."""
    row = connection.execute(
        f"SELECT coalesce(obj_description(oid, 'pg_class'), ''), {address_of('relname', 'oid')} FROM pg_class c "
        f"WHERE relname = %s AND {is_reached(connection)}".encode(),
        [relation],
    ).fetchone()
    return None if row is None else Marks(connection).read(*row)


def table_marks(connection: Session) -> dict[str, Mark]:
    """Returns the comments, read as marks, on all tables that the load can reach by an unqualified name, by the name of
    the table."""
    rows = connection.execute(
        f"SELECT relname, coalesce(obj_description(oid, 'pg_class'), ''), {address_of('relname', 'oid')} "
        f"FROM pg_class c WHERE relkind IN ('r', 'p') AND {is_reached(connection)} AND relpersistence <> 't' "
        "AND relnamespace NOT IN "
        "('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY relname".encode()
    ).fetchall()
    marks = Marks(connection)
    return {str(name): marks.read(comment, address) for name, comment, address in rows}


def mark_tables(connection: Session, names: Iterable[str], text: str) -> None:
    """Marks tables by a comment with this text. `names` are unqualified, and mean the same tables as in the load."""
    marks = Marks(connection)
    query = f"SELECT {address_of('relname', 'oid')} FROM pg_class c WHERE relname = %s AND {is_reached(connection)}"
    tables = list(names)
    for name, table in zip(tables, qualified(connection, tables), strict=True):
        comment = marks.comment(text, str(value(connection, query, name)))
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.SQL(table), sql.Literal(comment)))


def marked_by(beginning: str, connection: Session) -> str:
    """Returns an SQL condition for the tables that pgtrial created and whose marks (comments) begin with `beginning`.
    In the condition pg_class has the alias `c`."""
    query = (
        f"SELECT c.oid::bigint, d.description, {address_of('c.relname', 'c.oid')} FROM pg_description d "
        "JOIN pg_class c ON c.oid = d.objoid WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 "
        "AND strpos(d.description, %s) = 1"
    )
    marks = Marks(connection)
    rows = connection.execute(query.encode(), [beginning]).fetchall()
    tables = [str(oid) for oid, comment, address in rows if marks.read(comment, address).is_here]
    return f"c.oid = ANY ('{{{','.join(tables)}}}'::oid[])"
