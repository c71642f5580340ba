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

Kind = Literal[
    "relation",
    "schema",
    "type",
    "extension",
    "routine",
    "column",
    "constraint",
    "trigger",
    "rule",
    "policy",
    "statistics",
    "collation",
    "text search configuration",
    "text search dictionary",
    "language",
    "event trigger",
    "publication",
    "subscription",
    "server",
    "foreign data wrapper",
    "role",
    "database",
    "tablespace",
]

NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
QUALIFIED = rf"{NAME}(?:\s*\.\s*{NAME})*"
_RELATION = r"(?:FOREIGN\s+)?TABLE|(?:MATERIALIZED\s+)?VIEW|SEQUENCE"
_IF_NOT_EXISTS = r"(?:IF\s+NOT\s+EXISTS\s+)?"
_IF_EXISTS = r"(?:IF\s+EXISTS\s+)?"

_KINDS: dict[str, Kind] = {
    "SCHEMA": "schema",
    "TYPE": "type",
    "DOMAIN": "type",
    "EXTENSION": "extension",
    "FUNCTION": "routine",
    "PROCEDURE": "routine",
    "ROUTINE": "routine",
    "AGGREGATE": "routine",
    "STATISTICS": "statistics",
    "COLLATION": "collation",
    "TEXT SEARCH CONFIGURATION": "text search configuration",
    "TEXT SEARCH DICTIONARY": "text search dictionary",
    "LANGUAGE": "language",
    "EVENT TRIGGER": "event trigger",
    "PUBLICATION": "publication",
    "SUBSCRIPTION": "subscription",
    "SERVER": "server",
    "FOREIGN DATA WRAPPER": "foreign data wrapper",
    "ROLE": "role",
    "USER": "role",
    "GROUP": "role",
    "DATABASE": "database",
    "TABLESPACE": "tablespace",
    "TRIGGER": "trigger",
    "RULE": "rule",
    "POLICY": "policy",
}
"""The kind of object that a word after CREATE or DROP means. Words for relations are in `_RELATION`."""
_ON_TABLES = ("trigger", "rule", "policy")
"""The kinds of objects that belong to a table, and whose names are unique within this table only."""
_OTHER = "|".join(
    word.replace(" ", r"\s+") + (r"(?!\s+MAPPING\b)" if word == "USER" else "")
    for word, kind in _KINDS.items()
    if kind not in _ON_TABLES
)

_INDEX = re.compile(
    rf"CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?:CONCURRENTLY\s+)?{_IF_NOT_EXISTS}(?!ON\s)({NAME})\s+ON\s+(?:ONLY\s+)?"
    rf"({QUALIFIED})",
    re.I,
)
_CREATE = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNLOGGED\s+|TRUSTED\s+)?(?:PROCEDURAL\s+)?({_RELATION}|{_OTHER})\s+"
    rf"{_IF_NOT_EXISTS}(?!ON\b)({QUALIFIED})",
    re.I,
)
_CREATE_ON_TABLE = re.compile(
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:CONSTRAINT\s+)?(TRIGGER|RULE|POLICY)\s+({NAME})\s+"
    rf"(?:AS\s+ON\s+\w+\s+TO|.*?\bON)\s+({QUALIFIED})",
    re.I | re.S,
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
    rf"DROP\s+(?:PROCEDURAL\s+)?({_RELATION}|INDEX|{_OTHER})\s+(?:CONCURRENTLY\s+)?{_IF_EXISTS}(.*?)"
    rf"(?:\s+(?:CASCADE|RESTRICT))?\s*\Z",
    re.I | re.S,
)
_DROP_ON_TABLE = re.compile(rf"DROP\s+(TRIGGER|RULE|POLICY)\s+{_IF_EXISTS}({NAME})\s+ON\s+({QUALIFIED})", re.I)


def _by_name(catalog: str, column: str) -> str:
    """Returns the SQL that finds the objects in a catalog that have the name that was asked for, without its schema, in
    this column."""
    return f"{catalog} WHERE {column} = (parse_ident(%(name)s))[array_upper(parse_ident(%(name)s), 1)]"


def _in_schemas(catalog: str, prefix: str) -> str:
    """Returns the SQL that finds the objects of the name in the schema that the name begins with or, if it has no
    schema, in the schemas of the search path. pg_catalog counts only if the name or the search path contains it.
    `prefix` is the beginning of the names of the catalog's columns."""
    return f"""{_by_name(catalog, f"{prefix}name")} AND EXISTS (
        SELECT FROM pg_namespace n WHERE n.oid = {prefix}namespace AND CASE
        WHEN array_upper(parse_ident(%(name)s), 1) = 1 THEN n.nspname = ANY (current_schemas(false))
        ELSE n.nspname = ANY (parse_ident(%(name)s)) END)"""


def _on_table(catalog: str, table: str, column: str) -> str:
    """Returns the SQL that finds the objects of the name that belong to the table that was asked for, whose OID is in
    the column `table`."""
    return f"{_by_name(catalog, column)} AND {table} = to_regclass(%(table)s)"


_FIND: dict[Kind, str] = {
    "relation": "pg_class WHERE oid = to_regclass(%(name)s)",
    "schema": "pg_namespace WHERE oid = to_regnamespace(%(name)s)",
    "type": "pg_type WHERE oid = to_regtype(%(name)s)",
    "extension": _by_name("pg_extension", "extname"),
    # to_regproc finds nothing if several functions have the name
    "routine": _in_schemas("pg_proc", "pro"),
    "column": _on_table("pg_attribute", "attrelid", "attname") + " AND NOT attisdropped",
    "constraint": _on_table("pg_constraint", "conrelid", "conname"),
    "trigger": _on_table("pg_trigger", "tgrelid", "tgname"),
    "rule": _on_table("pg_rewrite", "ev_class", "rulename"),
    "policy": _on_table("pg_policy", "polrelid", "polname"),
    "statistics": _in_schemas("pg_statistic_ext", "stx"),
    "collation": _in_schemas("pg_collation", "coll"),
    "text search configuration": _in_schemas("pg_ts_config", "cfg"),
    "text search dictionary": _in_schemas("pg_ts_dict", "dict"),
    "language": _by_name("pg_language", "lanname"),
    "event trigger": _by_name("pg_event_trigger", "evtname"),
    "publication": _by_name("pg_publication", "pubname"),
    # few roles may read xmin of the catalogs of subscriptions and roles; without it an undo asks a person
    "subscription": _by_name(
        "(SELECT '' AS xmin, subname FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid "
        "WHERE d.datname = current_database()) AS here",
        "subname",
    ),
    "server": _by_name("pg_foreign_server", "srvname"),
    "foreign data wrapper": _by_name("pg_foreign_data_wrapper", "fdwname"),
    "role": _by_name("(SELECT '' AS xmin, rolname FROM pg_roles) AS roles", "rolname"),
    "database": _by_name("pg_database", "datname"),
    "tablespace": _by_name("pg_tablespace", "spcname"),
}
"""For each kind of object, the part of a query after FROM, with the catalog and the condition by which the objects of
this name are found."""
_QUALIFY = re.compile(r"\b(?:pg|to|parse|array|current)_\w+|=")


class Named(NamedTuple):
    """The name of an object, as a statement writes it."""

    kind: Kind
    name: str
    table: str = ""
    """The table of a column, constraint, trigger, rule or policy; empty for other objects."""

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
    if of_table := _CREATE_ON_TABLE.match(statement):
        return [Named(_kind(of_table[1]), of_table[2], of_table[3])]
    if into := _INTO.match(statement):
        return [Named("relation", into[1])]
    if renamed := _RENAME.match(statement):
        schema, dot, _ = renamed[1].rpartition(".")
        return [Named("relation", f"{schema}{dot}{renamed[2]}")]
    return list(_parts(statement, _ADD))


def dropped(statement: str) -> list[Named]:
    """Returns the objects that a statement drops, if its text names them."""
    if of_table := _DROP_ON_TABLE.match(statement):
        return [Named(_kind(of_table[1]), of_table[2], of_table[3])]
    if (drop := _DROP.match(statement)) is None:
        return list(_parts(statement, _REMOVE))
    names = re.sub(r"\([^()]*\)", "", drop[2])
    return [Named(_kind(drop[1]), name) for name in re.findall(QUALIFIED, names)]


def only_drops(statement: str) -> bool:
    """True if the only effect of a statement is to drop the objects that it names."""
    if _DROP.match(statement) or _DROP_ON_TABLE.match(statement):
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
    """Returns the objects among `names` that exist in the database; several for the name of an overloaded function.
    `session` must have been opened by `Target.connect_as_load`. Raises psycopg.Error if a query fails."""
    found = []
    for named in names:
        query = f"SELECT xmin::pg_catalog.text FROM {_QUALIFY.sub(_in_catalog, _FIND[named.kind])}".encode()
        rows = session.execute(query, {"name": named.name, "table": named.table}).fetchall()
        found += [Found(named, made_by) for (made_by,) in rows]
    return found


def _in_catalog(name: re.Match[str]) -> str:
    return "OPERATOR(pg_catalog.=)" if name[0] == "=" else f"pg_catalog.{name[0]}"


def _kind(words: str) -> Kind:
    return _KINDS.get(" ".join(words.upper().split()), "relation")


def _parts(statement: str, of: re.Pattern[str]) -> Iterator[Named]:
    """Yields the columns and constraints that an ALTER TABLE adds or drops; `of` matches the actions to look for."""
    if alter := _ALTER.match(statement):
        for part in of.finditer(alter[2]):
            yield Named("constraint" if part[1] else "column", part[2], alter[1])
