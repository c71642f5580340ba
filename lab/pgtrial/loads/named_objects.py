"""Finds the names of the objects that SQL statements create and drop, and checks whether a database has objects of
these names.

pgtrial reads only the first words of a statement for this: objects that a DO block, a function or a program creates are
not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from pgtrial.loads.target import Session

Kind = Literal["relation", "schema", "type", "extension", "routine", "column", "constraint"]

NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
QUALIFIED = rf"{NAME}(?:\s*\.\s*{NAME})*"
_RELATION = r"(?:FOREIGN\s+)?TABLE|(?:MATERIALIZED\s+)?VIEW|SEQUENCE"
_IF_NOT_EXISTS = r"(?:IF\s+NOT\s+EXISTS\s+)?"
_IF_EXISTS = r"(?:IF\s+EXISTS\s+)?"

_INDEX = re.compile(
    rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?:CONCURRENTLY\s+)?{_IF_NOT_EXISTS}(?!ON\s)({NAME})\s+ON\s+(?:ONLY\s+)?"
    rf"({QUALIFIED})",
    re.I,
)
_CREATE = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNLOGGED\s+)?"
    rf"({_RELATION}|SCHEMA|TYPE|DOMAIN|EXTENSION|FUNCTION|PROCEDURE)\s+{_IF_NOT_EXISTS}({QUALIFIED})",
    re.I,
)
_INTO = re.compile(rf"SELECT\b.*?\bINTO\s+(?:UNLOGGED\s+)?(?:TABLE\s+)?(?!TEMP)({QUALIFIED})", re.I | re.S)
_ALTER = re.compile(rf"ALTER\s+TABLE\s+{_IF_EXISTS}(?:ONLY\s+)?({QUALIFIED})\s*\*?\s+(.*)\Z", re.I | re.S)
_RENAME = re.compile(rf"ALTER\s+(?:{_RELATION}|INDEX)\s+{_IF_EXISTS}({QUALIFIED})\s+RENAME\s+TO\s+({NAME})", re.I)
_ADD = re.compile(
    rf"(?:\A|,\s*)ADD\s+(?:(CONSTRAINT)\s+|(?:COLUMN\s+)?{_IF_NOT_EXISTS}"
    rf"(?!(?:PRIMARY|UNIQUE|FOREIGN|CHECK|EXCLUDE|CONSTRAINT)\b))({NAME})",
    re.I,
)
_REMOVE = re.compile(rf"(?:\A|,\s*)DROP\s+(?:(CONSTRAINT)\s+|(?:COLUMN\s+)?){_IF_EXISTS}({NAME})", re.I)
_DROP = re.compile(
    rf"DROP\s+({_RELATION}|INDEX|SCHEMA|TYPE|DOMAIN|EXTENSION|FUNCTION|PROCEDURE|ROUTINE)\s+(?:CONCURRENTLY\s+)?"
    rf"{_IF_EXISTS}(.*?)(?:\s+(?:CASCADE|RESTRICT))?\s*\Z",
    re.I | re.S,
)
_KINDS: dict[str, Kind] = {
    "SCHEMA": "schema",
    "TYPE": "type",
    "DOMAIN": "type",
    "EXTENSION": "extension",
    "FUNCTION": "routine",
    "PROCEDURE": "routine",
    "ROUTINE": "routine",
}

_FIND: dict[str, str] = {
    "relation": "pg_class WHERE oid = to_regclass(%(name)s)",
    "schema": "pg_namespace WHERE oid = to_regnamespace(%(name)s)",
    "type": "pg_type WHERE oid = to_regtype(%(name)s)",
    "extension": "pg_extension WHERE extname = (parse_ident(%(name)s))[1]",
    "routine": "pg_proc WHERE oid = to_regproc(%(name)s)",
    "column": "pg_attribute WHERE attrelid = to_regclass(%(table)s) AND attname = (parse_ident(%(name)s))[1] "
    "AND NOT attisdropped",
    "constraint": "pg_constraint WHERE conrelid = to_regclass(%(table)s) AND conname = (parse_ident(%(name)s))[1]",
}
"""For each kind of object, the part of a query after FROM, with the catalog and the condition by which an object of
this name is found."""
_QUALIFY = re.compile(r"\b(?:pg|to|parse)_\w+|=")


class Named(NamedTuple):
    """The name of an object, as a statement writes it."""

    kind: Kind
    name: str
    table: str = ""
    """The table of a column or constraint; empty for other objects."""

    def __str__(self) -> str:
        return f"the {self.kind} {self.name} of {self.table}" if self.table else self.name


class Found(NamedTuple):
    """An object that exists in a database."""

    named: Named
    made_by: str
    """The lower 32 bits of the number of the transaction that created or last changed the object (xmin), by which
    pgtrial sees whether the job itself or somebody else created it."""


def made(statement: str) -> list[Named]:
    """Returns the objects that a statement creates, if its text names them."""
    if index := _INDEX.match(statement):
        schema, dot, _ = index[2].rpartition(".")
        return [Named("relation", f"{schema}{dot}{index[1]}")]
    if created := _CREATE.match(statement):
        return [Named(_kind(created[1]), created[2])]
    if into := _INTO.match(statement):
        return [Named("relation", into[1])]
    if renamed := _RENAME.match(statement):
        schema, dot, _ = renamed[1].rpartition(".")
        return [Named("relation", f"{schema}{dot}{renamed[2]}")]
    return list(_parts(statement, _ADD))


def dropped(statement: str) -> list[Named]:
    """Returns the objects that a statement drops, if its text names them."""
    if (drop := _DROP.match(statement)) is None:
        return list(_parts(statement, _REMOVE))
    names = re.sub(r"\([^()]*\)", "", drop[2])
    return [Named(_kind(drop[1]), name) for name in re.findall(QUALIFIED, names)]


def only_drops(statement: str) -> bool:
    """True if the only effect of a statement is to drop the objects that it names."""
    if _DROP.match(statement):
        return True
    alter = _ALTER.match(statement)
    return alter is not None and not _REMOVE.sub("", alter[2]).replace("CASCADE", "").strip(" ,\n\t")


def names_of_job(job: Iterable[str], undo: Iterable[str]) -> tuple[Named, ...]:
    """Returns the names of the objects that a job creates and its undo drops. pgtrial refuses to run the job if an
    object with one of these names exists before it.

    Objects that the job drops before it creates them, and objects that its undo creates again, belong to the user and
    may exist before the job.
    """
    new: dict[Named, None] = {}
    former: set[Named] = set()
    for statement in job:
        former.update(name for name in dropped(statement) if name not in new)
        new.update(dict.fromkeys(made(statement)))
    undo = list(undo)
    for statement in undo:
        new.update(dict.fromkeys(dropped(statement)))
    former.update(name for statement in undo for name in made(statement))
    return tuple(name for name in new if name not in former)


def find(session: Session, names: Iterable[Named]) -> list[Found]:
    """Returns the objects among `names` that exist in the database. `session` must have been opened by
    `Target.connect_as_load`. Raises psycopg.Error if a query fails."""
    found = []
    for named in names:
        query = f"SELECT xmin::pg_catalog.text FROM {_QUALIFY.sub(_in_catalog, _FIND[named.kind])}".encode()
        row = session.execute(query, {"name": named.name, "table": named.table}).fetchone()
        if row is not None:
            found.append(Found(named, row[0]))
    return found


def _in_catalog(name: re.Match[str]) -> str:
    return "OPERATOR(pg_catalog.=)" if name[0] == "=" else f"pg_catalog.{name[0]}"


def _kind(words: str) -> Kind:
    return _KINDS.get(words.upper(), "relation")


def _parts(statement: str, of: re.Pattern[str]) -> Iterator[Named]:
    """Yields the columns and constraints that an ALTER TABLE adds or drops; `of` matches the actions to look for."""
    if alter := _ALTER.match(statement):
        for part in of.finditer(alter[2]):
            yield Named("constraint" if part[1] else "column", part[2], alter[1])
