"""Finds, marks and drops the objects that the SQL of packs, scripts and sysbench tests creates in a database. A mark is
a comment on the object (`marks.py`).

An object is marked in the transaction that creates it. If pgtrial is killed, the database therefore contains no object
that a later study could not recognise as pgtrial's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgtrial.loads.marks import Mark, Marks, address_of
from pgtrial.loads.names import array_of
from pgtrial.loads.target import Session, lab_path, schemas_of_load
from pgtrial.model.errors import StudyError


class _Catalog(NamedTuple):
    """A system catalog whose objects can have comments. The fields name its columns for the object's name, schema and
    owner; a field is "" if the catalog has no such column. `since` is the first version of PostgreSQL that has the
    catalog, as server_version_num counts."""

    name: str
    label: str
    """The column with the name of the object."""
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
"""The values of pg_class.relkind for tables and partitioned tables."""
_RELATIONS = "c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND c.relpersistence <> 't'"
_SYSTEM = "'pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace"
_PART = (
    "NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalog}'::regclass AND d.objid = c.oid "
    "AND d.deptype::text = ANY ({kinds}))"
)
"""SQL condition that leaves out objects which belong to another object: members of extensions, row types of tables, and
sequences of columns. Such objects get no marks of their own, since they are dropped with the object to which they
belong."""

_AHEAD = "(((XMIN::text::bigint - (txid_current() & 4294967295) + 6442450944) & 4294967295) - 2147483648)"
"""SQL for the number of transactions between the session's own transaction and the one that wrote a row, modulo 2^32.
Subtransactions of the session's own transaction have numbers that are slightly larger."""
_MOST_AHEAD = 2**20
_MADE_HERE = (
    f"CASE WHEN {_AHEAD} NOT BETWEEN 0 AND {_MOST_AHEAD} THEN false "
    f"WHEN txid_current() + {_AHEAD} < txid_snapshot_xmax(txid_current_snapshot()) "
    f"THEN txid_status(txid_current() + {_AHEAD}) = 'in progress' ELSE true END"
)
"""SQL condition for the objects that the session's own transaction created, including those of its subtransactions (a
block with an exception handler). If a row is visible and the transaction that wrote it is in progress, that transaction
is the session's own."""
_MADE_HERE_BEFORE_10 = f"{_AHEAD} = 0"
_XMINS_OF_RELATION = tuple(
    f"coalesce((SELECT made.xmin FROM {row}), c.xmin)"
    for row in (
        "pg_type made WHERE made.oid = c.reltype",
        "pg_attribute made WHERE made.attrelid = c.oid AND made.attnum = CASE c.relkind WHEN 'v' THEN 1 ELSE -1 END",
    )
)
"""SQL for the numbers of the transactions that wrote two rows of the catalogs which PostgreSQL writes when it creates a
relation: the row of its type, and the row of its system column `ctid` (for a view, which has no system columns, the row
of its first column). A relation is new only if both rows are new.

A later change writes one of these rows again, but not both: RENAME, SET SCHEMA and OWNER write the row of the type, and
renaming the first column of a view writes the row of this column. Many changes write the row of pg_class itself, such
as a foreign key that refers to the table, or ALTER SEQUENCE ... RESTART."""
_MAY_MARK = "MAY"
"""The placeholder, in the SQL here, for a condition that is true if the session's role has the right to comment on the
object."""

_MOST_NAMED = 5_000
"""The largest number of objects that a query excludes by a list of their OIDs, because they existed before."""

_FIXED_PATH = (
    "SELECT WHERE pg_catalog.set_config("
    "'pgtrial.search_path', pg_catalog.current_setting('search_path'), true) IS NULL; "
    "SET LOCAL search_path = pg_catalog, pg_temp"
)
"""SQL that restricts the search path to pg_catalog, and saves the former search path in the setting
pgtrial.search_path, from which it is restored later. The statement returns no row."""
_FORMER_PATH = "SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('pgtrial.search_path'), true)"

_MAY_MAKE = re.compile(r"(CREATE|SELECT|WITH|DO|CALL|IMPORT|EXECUTE|COMMENT|ALTER\b.*\bRENAME)\b", re.I | re.S)
"""Matches the statements that may create objects, or replace the comment by which pgtrial has marked an object."""
_CHANGES_MARKS = re.compile(r"COMMENT\b|.*\bRENAME\b", re.I | re.S)


class MadeObject(NamedTuple):
    """An object of a database. `kind` and `identity` are the words for its type and its name as pg_identify_object
    returns them, such as `table` and `public.orders`, and `letter` is pg_class.relkind."""

    catalog: str
    oid: int
    mark: Mark
    address: str
    """A text that names the database and the object, as the SQL expression of `marks.address_of` returns it."""
    kind: str
    identity: str
    name: str
    letter: str
    schema: int
    reached: bool
    """True if the load reaches the object by a name without a schema: it is in a schema of the load's search path, or
    it is of a type that belongs to no schema."""

    @property
    def key(self) -> tuple[str, int]:
        """The catalog and the OID, which identify the object."""
        return self.catalog, self.oid


def _query(
    session: Session,
    condition: str,
    *,
    identify: bool,
    before: Iterable[tuple[str, int]] = (),
    catalogs: Iterable[_Catalog] = _CATALOGS,
) -> str:
    """Returns a query for the objects that satisfy `condition`, an SQL condition, except the objects in `before` (pairs
    of catalog and OID), which existed earlier."""
    parts = []
    path = array_of(schemas_of_load(session))
    for catalog in catalogs:
        if session.info.server_version < catalog.since:
            continue
        relation = catalog.name == "pg_class"
        conditions = [_RELATIONS] if relation else []
        if catalog.schema:
            conditions.append(f"c.{catalog.schema} NOT IN ({_SYSTEM})")
        # partitions get marks like their tables, since pgtrial finds the tables of a load by their marks
        kinds = "CASE WHEN c.relkind IN ('r', 'p') THEN '{e}' ELSE '{e,i,a}' END::text[]" if relation else "'{e,i,a}'"
        conditions.append(_PART.format(catalog=catalog.name, kinds=kinds))
        owner = f"c.{catalog.owner}" if catalog.owner else ""
        own = f"pg_get_userbyid({owner}) = current_user" if owner else "true"
        may = f"pg_has_role({owner}, 'USAGE')" if owner else "true"
        conditions += [
            condition.replace("OWN", own).replace("MAY", may).replace("XMIN", xmin)
            for xmin in (_XMINS_OF_RELATION if relation else ("c.xmin",))
        ]
        if known := [str(oid) for name, oid in before if name == catalog.name]:
            conditions.append(f"c.oid::bigint <> ALL ('{{{','.join(known)}}}'::bigint[])")
        name = f"c.{catalog.label}" if catalog.label else "''"
        columns = (
            f"'{catalog.name}', c.oid::bigint, coalesce(obj_description(c.oid, '{catalog.name}'), ''), "
            f"{address_of(name, 'c.oid')} AS address, "
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
        MadeObject(catalog, oid, marks.read(comment, address), address, *others)
        for catalog, oid, comment, address, *others in rows
    ]


def marked_objects(session: Session, text: str) -> list[MadeObject]:
    """Returns the objects, in all schemas, that pgtrial has marked by a comment with exactly this text."""
    return [made for made in _objects(session, _MAY_MARK) if made.mark == Mark(text)]


def copied_objects(session: Session, beginnings: tuple[str, ...]) -> list[str]:
    """Returns the names of objects that somebody has copied from pgtrial's own, for instance by restoring a dump, so
    that they have comments that begin with one of `beginnings`. Only copies are returned that the load would reach, or
    whose schema was copied too: their names would clash with those of the objects that pgtrial creates."""
    copies = [made for made in _objects(session, "true") if made.mark.is_copy(beginnings)]
    schemas = {made.oid for made in copies if made.catalog == "pg_namespace"}
    return [made.identity for made in copies if made.reached or made.schema in schemas]


def marking_query(session: Session, text: str) -> str:
    """Returns a query for another session to run within its transaction. Its result is one text value: the COMMENT
    statements that mark the objects which the transaction has created.

    The other session must run these statements before its transaction ends. Objects that existed before the
    transaction, and objects that other sessions created, get no mark.
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
        f"identity, concat({comment}, address)), ''), {sql.Literal(_FORMER_PATH).as_string()}) FROM ({query}) AS made"
    )


def _made_here(session: Session) -> str:
    here = _MADE_HERE if session.info.server_version >= 100000 else _MADE_HERE_BEFORE_10
    return f"{_MAY_MARK} AND {here}"


def present(session: Session) -> frozenset[tuple[str, int]]:
    """Returns the catalog and OID of each object of the database that pgtrial could mark by a comment, no matter who
    created it."""
    return frozenset(made.key for made in _objects(session, "true", identify=False))


def mark_objects(session: Session, objects: Iterable[MadeObject], text: str) -> None:
    """Marks each of the objects by a comment with this text."""
    marks = Marks(session)
    for made in objects:
        _comment(session, made, marks.comment(text, made.address))


def _comment(session: Session, made: MadeObject, comment: str) -> None:
    words, identity = sql.SQL(_words(made)), sql.SQL(made.identity)
    session.execute(sql.SQL("COMMENT ON {} {} IS {}").format(words, identity, sql.Literal(comment)))


def _words(made: MadeObject) -> str:
    return made.kind.upper().replace("-", " ")


class MarkingSession:
    """Runs statements of the user in a session, and marks the objects that they create by comments. Each statement and
    the comments on its objects are one transaction."""

    def __init__(self, session: Session, mark: str) -> None:
        """Sets up the object for a session that `Target.connect_as_load` has opened. `mark` is the text of the comment
        on each object that the statements create."""
        self.session = session
        self._mark = mark
        with lab_path(session):
            self._before = set(present(session))
        self._made: list[MadeObject] = []

    def execute(self, statement: bytes) -> psycopg.Cursor[tuple[Any, ...]]:
        """Runs one statement. A statement that PostgreSQL does not allow in a transaction block runs outside of one,
        and the objects that it creates get no mark. Raises psycopg.Error if the statement fails."""
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
        """Marks, by comments, the objects that the statement `text` has created in its transaction."""
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
    """Drops the objects that pgtrial created and whose marks begin with one of `marks`. Either all of these objects are
    dropped, or none of them.

    With `everywhere`, objects in all schemas are dropped, and extensions. Otherwise only objects in schemas of the
    load's search path, and in schemas that pgtrial created, are dropped. Returns the extensions that stay because other
    objects need them; the marks of these extensions are removed. Raises StudyError if an object without such a mark
    depends on one that would be dropped.
    """
    with session.transaction():
        ours = _locked(session, marks)
        schemas = {made.oid for made in ours if made.catalog == "pg_namespace"}
        extensions = [made for made in ours if made.catalog == "pg_extension"]
        left = [made for made in ours if made not in extensions]
        if not everywhere:
            left = [made for made in left if made.reached or made.schema in schemas]
        _refuse_partitions(session, left, ours)
        _, error = _drop_all(session, left)
        if error is not None:
            detail = (error.diag.message_detail or str(error)).splitlines()[0]
            raise _depended(session, detail) from None
        if not everywhere:
            return []
        kept, _ = _drop_all(session, extensions)
        for made in kept:
            _comment(session, made, "")
    return [made.identity for made in kept]


def _locked(session: Session, marks: tuple[str, ...]) -> list[MadeObject]:
    """Returns all objects whose marks begin with one of `marks`, and locks the tables among them until the session's
    transaction ends.

    The marks are read again once the tables are locked, since somebody may have replaced a table by another one before
    the lock was granted.
    """
    ours = [made for made in _objects(session, "true") if made.mark.is_ours(marks)]
    tables = sorted(made.identity for made in ours if made.letter in TABLES)
    if not tables:
        return ours
    try:
        with session.transaction():
            session.execute(f"LOCK TABLE {', '.join(tables)}".encode())
    except psycopg.errors.UndefinedTable:  # a table was dropped meanwhile: lock those that are left one by one
        for table in tables:
            with suppress(psycopg.errors.UndefinedTable), session.transaction():
                session.execute(f"LOCK TABLE {table}".encode())
    return [made for made in _objects(session, "true") if made.mark.is_ours(marks)]


def _refuse_partitions(session: Session, dropped: list[MadeObject], ours: list[MadeObject]) -> None:
    """Raises StudyError if a table that would be dropped has partitions that pgtrial did not make, since PostgreSQL
    drops partitions together with their table."""
    tables, known = ([made.oid for made in objects if made.catalog == "pg_class"] for objects in (dropped, ours))
    rows = session.execute(
        "SELECT c.oid::regclass::text, parent.oid::regclass::text FROM pg_inherits i "
        "JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent "
        "WHERE parent.relkind = 'p' AND parent.oid::bigint = ANY (%s::bigint[]) "
        "AND c.oid::bigint <> ALL (%s::bigint[]) ORDER BY 1",
        [tables, known],
    ).fetchall()
    if rows:
        listed = "; ".join(f"table {child} is a partition of {parent}" for child, parent in rows)
        raise _depended(session, f"{listed}; detach it to keep it")


def _drop_all(
    session: Session, left: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drops these objects, each one after the objects that depend on it. Returns the objects that could not be dropped
    because other objects depend on them, and PostgreSQL's error for that."""
    while left:
        tried = left
        left, error = _dropped_once(session, tried)
        if len(left) == len(tried):
            return left, error
    return [], None


def _dropped_once(
    session: Session, objects: list[MadeObject]
) -> tuple[list[MadeObject], psycopg.errors.DependentObjectsStillExist | None]:
    """Drops the objects on which no other object depends. Tables are dropped in one statement, since they may refer to
    each other.

    Returns the objects that are left, and the error that PostgreSQL gave for one of them.
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


def _depended(session: Session, depends: str) -> StudyError:
    """Returns the error for objects of others that depend on tables of pgtrial. `depends` says which objects depend on
    what."""
    return StudyError(
        f"the database {session.info.dbname} has objects that pgtrial did not make and that depend on tables it "
        f"made and would drop ({depends}); drop those objects, or name another database in the dsn"
    )
