"""Finds, marks (`marks.py`) and drops what SQL of packs, scripts and sysbench tests makes in a database.

An object is marked in the transaction that makes it, so that a lab that is killed leaves no object of unknown origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgtrial.loads.marks import Mark, Marks, place_in
from pgtrial.loads.names import array_of
from pgtrial.loads.target import Session, lab_path, schemas_of_load
from pgtrial.model.errors import StudyError


class _Catalog(NamedTuple):
    """A catalog of objects that have comments; "" for a column or a function that it does not have."""

    name: str
    label: str
    """The column of an object's name."""
    schema: str
    owner: str
    since: int = 0


_CATALOGS = (
    _Catalog("pg_class", "relname", "relnamespace", "relowner"),
    _Catalog("pg_proc", "proname", "pronamespace", "proowner"),
    _Catalog("pg_type", "typname", "typnamespace", "typowner"),
    _Catalog("pg_operator", "oprname", "oprnamespace", "oprowner"),
    _Catalog("pg_collation", "collname", "collnamespace", "collowner"),
    _Catalog("pg_ts_config", "cfgname", "cfgnamespace", "cfgowner"),
    _Catalog("pg_ts_dict", "dictname", "dictnamespace", "dictowner"),
    _Catalog("pg_namespace", "nspname", "", "nspowner"),
    _Catalog("pg_extension", "extname", "", "extowner"),
    _Catalog("pg_foreign_server", "srvname", "", "srvowner"),
    _Catalog("pg_cast", "", "", ""),
    _Catalog("pg_event_trigger", "evtname", "", "evtowner"),
    _Catalog("pg_publication", "pubname", "", "pubowner", 100000),
)

TABLES = ("r", "p")
"""The letters of pg_class.relkind for tables and partitioned tables."""
_RELATIONS = "c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND c.relpersistence <> 't'"
_SYSTEM = "'pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace"
_PART = (
    "NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalog}'::regclass AND d.objid = c.oid "
    "AND d.deptype::text = ANY ({kinds}))"
)
"""Parts of other objects have no mark of their own: those of extensions, row types, sequences of columns."""

_AHEAD = "(((XMIN::text::bigint - (txid_current() & 4294967295) + 6442450944) & 4294967295) - 2147483648)"
"""The distance from the own transaction to the one that made a row; it is small for the own subtransactions."""
_MOST_AHEAD = 2**20
_MADE_HERE = (
    f"CASE WHEN {_AHEAD} NOT BETWEEN 0 AND {_MOST_AHEAD} THEN false "
    f"WHEN txid_current() + {_AHEAD} < txid_snapshot_xmax(txid_current_snapshot()) "
    f"THEN txid_status(txid_current() + {_AHEAD}) = 'in progress' ELSE true END"
)
"""SQL condition for the objects that the session's own transaction has made, in one of its parts too (a block with an
exception handler): a row that is visible and whose transaction is in progress is of the own one."""
_MADE_HERE_BEFORE_10 = f"{_AHEAD} = 0"
_MAY_MARK = "MAY"
"""SQL condition for the objects that the session's role may comment on."""

_MOST_NAMED = 5_000
"""The most objects that were there before which a query may name."""

_FIXED_PATH = (
    "SELECT WHERE pg_catalog.set_config("
    "'pgtrial.search_path', pg_catalog.current_setting('search_path'), true) IS NULL; "
    "SET LOCAL search_path = pg_catalog, pg_temp"
)
"""Makes names be found in pg_catalog alone, and keeps the former search path. It returns no row."""
_FORMER_PATH = "SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('pgtrial.search_path'), true)"

_MAY_MAKE = re.compile(r"(CREATE|SELECT|WITH|DO|CALL|IMPORT|EXECUTE|COMMENT|ALTER\b.*\bRENAME)\b", re.I | re.S)
"""The statements that may make objects, or exchange a mark."""
_CHANGES_MARKS = re.compile(r"COMMENT\b|.*\bRENAME\b", re.I | re.S)


class MadeObject(NamedTuple):
    """An object of a database; `kind` and `identity` are those of COMMENT and DROP, `letter` is that of pg_class."""

    catalog: str
    oid: int
    mark: Mark
    place: str
    """The place of the object, in the form of `marks.place_in`."""
    kind: str
    identity: str
    name: str
    letter: str
    schema: int
    reached: bool
    """True if the object is in a schema in which unqualified names of the load are looked up, or in none."""

    @property
    def key(self) -> tuple[str, int]:
        """The catalog and the OID, by which the object is known."""
        return self.catalog, self.oid


def _query(
    session: Session,
    condition: str,
    *,
    identify: bool,
    before: Iterable[tuple[str, int]] = (),
    catalogs: Iterable[_Catalog] = _CATALOGS,
) -> str:
    """Returns a query for the objects that fulfil a condition and were not there `before`, as keys."""
    parts = []
    path = array_of(schemas_of_load(session))
    for catalog in catalogs:
        if session.info.server_version < catalog.since:
            continue
        relation = catalog.name == "pg_class"
        conditions = [_RELATIONS] if relation else []
        if catalog.schema:
            conditions.append(f"c.{catalog.schema} NOT IN ({_SYSTEM})")
        # a partition has a mark as its table does, since the load's tables are found by their marks
        kinds = "CASE WHEN c.relkind IN ('r', 'p') THEN '{e}' ELSE '{e,i,a}' END::text[]" if relation else "'{e,i,a}'"
        conditions.append(_PART.format(catalog=catalog.name, kinds=kinds))
        owner = f"c.{catalog.owner}" if catalog.owner else ""
        own = f"pg_get_userbyid({owner}) = current_user" if owner else "true"
        may = f"pg_has_role({owner}, 'USAGE')" if owner else "true"
        # the row of a table's type keeps its xmin when the table changes later, such as by a foreign key to it
        xmin = "coalesce((SELECT t.xmin FROM pg_type t WHERE t.oid = c.reltype), c.xmin)" if relation else "c.xmin"
        conditions.append(condition.replace("OWN", own).replace("MAY", may).replace("XMIN", xmin))
        if known := [str(oid) for name, oid in before if name == catalog.name]:
            conditions.append(f"c.oid::bigint <> ALL ('{{{','.join(known)}}}'::bigint[])")
        name = f"c.{catalog.label}" if catalog.label else "''"
        columns = (
            f"'{catalog.name}', c.oid::bigint, coalesce(obj_description(c.oid, '{catalog.name}'), ''), "
            f"{place_in(name, 'c.oid')} AS place, "
            + ("i.type AS kind, i.identity, " if identify else "'' AS kind, '' AS identity, ")
            + ("c.relname::text, c.relkind::text, " if relation else "'', '', ")
            + (f"c.{catalog.schema}::bigint, " if catalog.schema else "0, ")
            + (f"c.{catalog.schema} = ANY ({path})" if catalog.schema else "true")
        )
        identity = f", pg_identify_object('{catalog.name}'::regclass, c.oid, 0) i" if identify else ""
        parts.append(f"SELECT {columns} FROM {catalog.name} c{identity} WHERE {' AND '.join(conditions)}")
    return " UNION ALL ".join(parts)


def _objects(session: Session, condition: str, *, identify: bool = True) -> list[MadeObject]:
    rows = session.execute(_query(session, condition, identify=identify).encode()).fetchall()
    marks = Marks(session)
    return [
        MadeObject(catalog, oid, marks.read(comment, place), place, *others)
        for catalog, oid, comment, place, *others in rows
    ]


def marked_objects(session: Session, text: str) -> list[MadeObject]:
    """Returns the objects of all schemas that have this very mark."""
    return [made for made in _objects(session, _MAY_MARK) if made.mark == Mark(text)]


def copied_objects(session: Session, beginnings: tuple[str, ...]) -> list[str]:
    """Returns the objects with copied marks that are in the way of the objects which are made with such marks."""
    copies = [made for made in _objects(session, "true") if made.mark.is_copy(beginnings)]
    schemas = {made.oid for made in copies if made.catalog == "pg_namespace"}
    return [made.identity for made in copies if made.reached or made.schema in schemas]


def marking_query(session: Session, text: str) -> str:
    """Returns SQL for another session, which returns the statements that mark what its transaction has made.

    The result is one value. These statements must run before the transaction ends. Objects that were there before, and
    those of other sessions, get no mark.
    """
    before = present(session)
    too_many = len(before) > _MOST_NAMED
    catalogs = [catalog for catalog in _CATALOGS if catalog.name == "pg_class" or not too_many]
    query = _query(
        session, _made_here(session), identify=True, before=() if too_many else sorted(before), catalogs=catalogs
    )
    comment = sql.Literal(Marks(session).comment(text, "")).as_string()
    return (
        f"{_FIXED_PATH}; SELECT concat(string_agg(format('COMMENT ON %s %s IS %L; ', upper(replace(kind, '-', ' ')), "
        f"identity, concat({comment}, place)), ''), {sql.Literal(_FORMER_PATH).as_string()}) FROM ({query}) AS made"
    )


def _made_here(session: Session) -> str:
    here = _MADE_HERE if session.info.server_version >= 100000 else _MADE_HERE_BEFORE_10
    return f"{_MAY_MARK} AND {here}"


def present(session: Session) -> frozenset[tuple[str, int]]:
    """Returns the catalog and OID of each object of the database that could have a mark, whoever made it."""
    return frozenset(made.key for made in _objects(session, "true", identify=False))


def mark_objects(session: Session, objects: Iterable[MadeObject], text: str) -> None:
    """Marks each of these objects with the text."""
    marks = Marks(session)
    for made in objects:
        _comment(session, made, marks.comment(text, made.place))


def _comment(session: Session, made: MadeObject, comment: str) -> None:
    words, identity = sql.SQL(_words(made)), sql.SQL(made.identity)
    session.execute(sql.SQL("COMMENT ON {} {} IS {}").format(words, identity, sql.Literal(comment)))


def _words(made: MadeObject) -> str:
    return made.kind.upper().replace("-", " ")


class MarkingSession:
    """Runs statements of the study in a session, each in one transaction with the marks on what it makes."""

    def __init__(self, session: Session, mark: str) -> None:
        """Takes a session of `connect_as_load` and the text of the mark."""
        self.session = session
        self._mark = mark
        with lab_path(session):
            self._before = set(present(session))
        self._made: list[MadeObject] = []

    def execute(self, statement: bytes) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs one statement. What refuses to run in a transaction runs without one. Raises psycopg.Error."""
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
        with lab_path(self.session):
            self._mark_new(text)
        return cursor

    def _mark_new(self, text: str) -> None:
        """Marks what the statement has made in its transaction."""
        if _CHANGES_MARKS.match(text):
            there = {made.key: made for made in _objects(self.session, "true")}
            self._made = [there[made.key] for made in self._made if made.key in there]
            mark_objects(self.session, self._made, self._mark)
        made_here = _objects(self.session, _made_here(self.session))
        new = [made for made in made_here if made.key not in self._before]
        mark_objects(self.session, new, self._mark)
        self._made += new
        self._before.update(made.key for made in new)


def drop_marked(session: Session, marks: tuple[str, ...], *, everywhere: bool = False) -> list[str]:
    """Drops the objects that pgtrial has made and whose marks begin with one of these, all or none.

    With `everywhere` they are those of all schemas and the extensions; otherwise those that unqualified names reach and
    those of marked schemas. Returns the extensions that stay, without a mark, since other objects need them. Raises
    StudyError if something that has no such mark depends on the others.
    """
    with session.transaction():
        ours = _locked(session, marks)
        schemas = {made.oid for made in ours if made.catalog == "pg_namespace"}
        extensions = [made for made in ours if made.catalog == "pg_extension"]
        left = [made for made in ours if made not in extensions]
        if not everywhere:
            left = [made for made in left if made.reached or made.schema in schemas]
        _, error = _drop_all(session, left)
        if error is not None:
            raise _depended(session, error) from None
        if not everywhere:
            return []
        kept, _ = _drop_all(session, extensions)
        for made in kept:
            _comment(session, made, "")
    return [made.identity for made in kept]


def _locked(session: Session, marks: tuple[str, ...]) -> list[MadeObject]:
    """Returns the objects with such marks, whose tables are locked for the session's transaction.

    The marks are read again under the locks, since somebody may have replaced a table by one of their own meanwhile.
    """
    ours = [made for made in _objects(session, "true") if made.mark.is_ours(marks)]
    tables = sorted(made.identity for made in ours if made.letter in TABLES)
    if not tables:
        return ours
    try:
        with session.transaction():
            session.execute(f"LOCK TABLE {', '.join(tables)}".encode())
    except psycopg.errors.UndefinedTable:  # dropped meanwhile, and perhaps with others: each is looked at by itself
        for table in tables:
            with suppress(psycopg.errors.UndefinedTable), session.transaction():
                session.execute(f"LOCK TABLE {table}".encode())
    return [made for made in _objects(session, "true") if made.mark.is_ours(marks)]


def _drop_all(
    session: Session, left: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drops these objects, each after those that need it. Returns what others still need, and the error for that."""
    while left:
        tried = left
        left, error = _dropped_once(session, tried)
        if len(left) == len(tried):
            return left, error
    return [], None


def _dropped_once(
    session: Session, objects: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drops what nothing depends on; tables together, since they may refer to each other.

    Returns what is left, and the error for it.
    """
    tables = [made for made in objects if made.letter in TABLES]
    left: list[MadeObject] = []
    why = None
    for group in ([made] for made in objects if made not in tables):
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
    listed = sql.SQL(", ").join(sql.SQL(made.identity) for made in group)
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
