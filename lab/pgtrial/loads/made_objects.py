"""What SQL of packs, scripts and sysbench tests makes in a database: found, marked by its comment, and dropped.

An object is marked in the transaction that makes it, so that a lab that is killed leaves none that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgtrial.loads.target import Session, value
from pgtrial.model.errors import StudyError


class _Catalog(NamedTuple):
    """A catalog of objects that have comments; "" for a column or a function that it does not have."""

    name: str
    schema: str
    owner: str
    is_visible: str
    since: int = 0


_CATALOGS = (
    _Catalog("pg_class", "relnamespace", "relowner", "pg_table_is_visible"),
    _Catalog("pg_proc", "pronamespace", "proowner", "pg_function_is_visible"),
    _Catalog("pg_type", "typnamespace", "typowner", "pg_type_is_visible"),
    _Catalog("pg_operator", "oprnamespace", "oprowner", "pg_operator_is_visible"),
    _Catalog("pg_collation", "collnamespace", "collowner", "pg_collation_is_visible"),
    _Catalog("pg_ts_config", "cfgnamespace", "cfgowner", "pg_ts_config_is_visible"),
    _Catalog("pg_ts_dict", "dictnamespace", "dictowner", "pg_ts_dict_is_visible"),
    _Catalog("pg_namespace", "", "nspowner", ""),
    _Catalog("pg_extension", "", "extowner", ""),
    _Catalog("pg_foreign_server", "", "srvowner", ""),
    _Catalog("pg_cast", "", "", ""),
    _Catalog("pg_event_trigger", "", "evtowner", ""),
    _Catalog("pg_publication", "", "pubowner", "", 100000),
)

TABLES = ("r", "p")
"""Letters of pg_class."""
_RELATIONS = "c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND c.relpersistence <> 't'"
_SYSTEM = "'pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace"
_PART = (
    "NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalog}'::regclass AND d.objid = c.oid "
    "AND d.deptype::text = ANY ({kinds}))"
)
"""Parts of other objects have no mark of their own: those of extensions, row types, sequences of columns."""

_MAY_MAKE = re.compile(r"(CREATE|SELECT|WITH|DO|CALL|IMPORT|EXECUTE|COMMENT)\b", re.IGNORECASE)
"""The statements that may make objects, or exchange a mark."""


class MadeObject(NamedTuple):
    """An object of a database; `kind` and `identity` are those of COMMENT and DROP, `letter` is that of pg_class."""

    catalog: str
    oid: int
    comment: str
    kind: str
    identity: str
    name: str
    letter: str
    schema: int
    visible: bool

    @property
    def key(self) -> tuple[str, int]:
        """What it is known by."""
        return self.catalog, self.oid


def _query(session: Session, condition: str, *, identify: bool) -> str:
    parts = []
    for catalog in _CATALOGS:
        if session.info.server_version < catalog.since:
            continue
        relation = catalog.name == "pg_class"
        conditions = [_RELATIONS] if relation else []
        if catalog.schema:
            conditions.append(f"c.{catalog.schema} NOT IN ({_SYSTEM})")
        # a partition is marked with its table: the load's tables are looked for by that
        kinds = "CASE WHEN c.relkind IN ('r', 'p') THEN '{e}' ELSE '{e,i,a}' END::text[]" if relation else "'{e,i,a}'"
        conditions.append(_PART.format(catalog=catalog.name, kinds=kinds))
        if catalog.owner:
            conditions.append(condition.replace("OWN", f"pg_get_userbyid(c.{catalog.owner}) = current_user"))
        else:
            conditions.append(condition.replace("OWN", "true"))
        columns = (
            f"'{catalog.name}', c.oid::bigint, coalesce(obj_description(c.oid, '{catalog.name}'), ''), "
            + ("i.type, i.identity, " if identify else "'', '', ")
            + ("c.relname::text, c.relkind::text, " if relation else "'', '', ")
            + (f"c.{catalog.schema}::bigint, " if catalog.schema else "0, ")
            + (f"{catalog.is_visible}(c.oid)" if catalog.is_visible else "true")
        )
        identity = f", pg_identify_object('{catalog.name}'::regclass, c.oid, 0) i" if identify else ""
        parts.append(f"SELECT {columns} FROM {catalog.name} c{identity} WHERE {' AND '.join(conditions)}")
    return " UNION ALL ".join(parts)


def _objects(session: Session, condition: str, *, identify: bool = True, parameters: Any = None) -> list[MadeObject]:
    query = _query(session, condition, identify=identify)
    repeated = [*parameters] * query.count("%s") if parameters else None
    return [MadeObject(*row) for row in session.execute(query.encode(), repeated).fetchall()]


def marked_objects(session: Session, mark: str) -> list[MadeObject]:
    """The objects of all schemas that have this very comment."""
    return [found for found in _objects(session, "OWN") if found.comment == mark]


def new_relations(session: Session, before: frozenset[tuple[str, int]]) -> list[MadeObject]:
    """The relations of the session's role that were not there before."""
    found = [each for each in _objects(session, "OWN") if each.catalog == "pg_class"]
    return [each for each in found if each.key not in before]


def present(session: Session) -> frozenset[tuple[str, int]]:
    """All objects that are there, whoever made them."""
    return frozenset(found.key for found in _objects(session, "true", identify=False))


def mark_objects(session: Session, found: Iterable[MadeObject], mark: str) -> None:
    """Set the comments."""
    for each in found:
        words, identity = sql.SQL(_words(each)), sql.SQL(each.identity)
        session.execute(sql.SQL("COMMENT ON {} {} IS {}").format(words, identity, sql.Literal(mark)))


def _words(found: MadeObject) -> str:
    return found.kind.upper().replace("-", " ")


class MarkingSession:
    """Runs statements of somebody's SQL in a session, each in one transaction with the marks on what it makes."""

    def __init__(self, session: Session, mark: str) -> None:
        self.session = session
        self._mark = mark
        self._before = set(present(session))
        self._made: list[MadeObject] = []

    def execute(self, statement: bytes) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement. What refuses to run in a transaction runs without one. Raises psycopg.Error."""
        text = statement.decode(errors="replace")
        within = self.session.info.transaction_status != TransactionStatus.IDLE
        if not _MAY_MAKE.match(text):
            return self.session.execute(statement)
        if within:
            return self._marked(statement, text)
        try:
            with self.session.transaction():
                return self._marked(statement, text)
        except (psycopg.errors.ActiveSqlTransaction, psycopg.errors.InvalidTransactionTermination):
            return self.session.execute(statement)

    def _marked(self, statement: bytes, text: str) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = self.session.execute(statement)
        if self.session.info.transaction_status != TransactionStatus.INTRANS:
            return cursor
        if text[:7].upper() == "COMMENT":
            there = present(self.session)
            self._made = [each for each in self._made if each.key in there]
            mark_objects(self.session, self._made, self._mark)
            return cursor
        xid = value(self.session, "SELECT txid_current_if_assigned()" if self._has_xid else "SELECT txid_current()")
        if xid is not None:
            new = _objects(self.session, "OWN AND c.xmin::text = %s", parameters=[str(int(xid) % 2**32)])
            new = [each for each in new if each.key not in self._before]
            mark_objects(self.session, new, self._mark)
            self._made += new
            self._before.update(each.key for each in new)
        return cursor

    @property
    def _has_xid(self) -> bool:
        """Whether the server says if a transaction has written anything."""
        return self.session.info.server_version >= 100000


def drop_marked(session: Session, marks: tuple[str, ...], *, everywhere: bool = False) -> list[str]:
    """Drop the objects whose comments begin with one of these marks, all or none.

    With `everywhere` those of all schemas and the extensions, else those that unqualified names reach and those of
    marked schemas. Returns the extensions that stay, without a mark, since other objects need them. Raises StudyError
    if something that has no such mark depends on the others.
    """
    with session.transaction():
        ours = [each for each in _objects(session, "true") if each.comment.startswith(marks)]
        schemas = {made.oid for made in ours if made.catalog == "pg_namespace"}
        extensions = [made for made in ours if made.catalog == "pg_extension"]
        left = [made for made in ours if made not in extensions]
        if not everywhere:
            left = [each for each in left if each.visible or each.schema in schemas]
        _, error = _drop_all(session, left)
        if error is not None:
            raise _depended(session, error) from None
        if not everywhere:
            return []
        kept, _ = _drop_all(session, extensions)
        mark_objects(session, kept, "")
    return [each.identity for each in kept]


def _drop_all(
    session: Session, left: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drop these objects, those that others of them need later; what others need is left, and why."""
    while left:
        tried = left
        left, error = _dropped_once(session, tried)
        if len(left) == len(tried):
            return left, error
    return [], None


def _dropped_once(
    session: Session, objects: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drop what nothing depends on, tables together, since they may refer to each other; what is left, and why."""
    tables = [each for each in objects if each.letter in TABLES]
    left: list[MadeObject] = []
    why = None
    for group in ([each] for each in objects if each not in tables):
        error = _drop(session, group)
        left += group if error else []
        why = error or why
    if tables and (error := _drop(session, tables)):
        for table in tables:
            if _drop(session, [table]):
                left.append(table)
        why = error
    return left, why


def _drop(session: Session, group: list[MadeObject]) -> psycopg.errors.DependentObjectsStillExist | None:
    listed = sql.SQL(", ").join(sql.SQL(each.identity) for each in group)
    words = sql.SQL("TABLE" if group[0].letter in TABLES else _words(group[0]))
    try:
        with session.transaction():
            session.execute(sql.SQL("DROP {} IF EXISTS {}").format(words, listed))
    except psycopg.errors.DependentObjectsStillExist as error:
        return error
    return None


def _depended(session: Session, error: psycopg.errors.DependentObjectsStillExist) -> StudyError:
    depends = (error.diag.message_detail or str(error)).splitlines()[0]
    return StudyError(
        f"the database {session.info.dbname} has objects that pgtrial did not make and that depend on tables it "
        f"made and would drop ({depends}); drop those objects, or name another database in the dsn"
    )
