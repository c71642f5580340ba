"""Contains the base classes of all kinds of data that a trial may need on its server, and estimates how much disk space
data takes."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.made_objects import TABLES, copied_objects, drop_marked, mark_objects, marked_objects
from pgtrial.loads.marks import Mark, Marks, address_of, marked_by
from pgtrial.loads.names import array_of, is_reached
from pgtrial.loads.target import Session, Target, schemas_of_load
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec

CLUSTER_MB = 50
"""The size, in megabytes, of a database cluster without user tables, rounded up."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""The largest size, in megabytes, of the WAL files that exist at one time while data is loaded; see `max_wal_size` in
the settings for loading."""


class Data(abc.ABC):
    """The data that a load point needs, of one kind. Equal objects mean the same data on a server, so trials whose data
    are equal share a template, which is loaded once and copied for each trial."""

    marks: ClassVar[tuple[str, ...]]
    """The beginnings of the marks on these tables, both while the data are being made and when they are complete. A
    mark is a comment on a table by which pgtrial recognises that it created the table, and is therefore allowed to drop
    it."""

    making_is_measured: ClassVar[bool] = False
    """True if reports show how long making the data took. Each study then makes its own data, even if an earlier study
    has left the same data, so that there is a time to report."""

    @property
    def has_users_rows(self) -> bool:
        """True if SQL or a program of the user makes the rows. The rows may then differ each time the data is made."""
        return False

    @classmethod
    @abc.abstractmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """Returns the data of this kind that a load point needs. Returns None if the load point needs data of another
        kind, or no data."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The name by which messages and reports call the data, such as `scale 20` or `sysbench, 250 x 450,000
        rows`."""

    @property
    @abc.abstractmethod
    def relations_made(self) -> str:
        """A list, for messages, of the objects that pgtrial creates in a database when it makes the data:
        `pgbench_accounts, ...`."""

    @property
    @abc.abstractmethod
    def short_name(self) -> str:
        """The name of the data in the names of directories, such as `s20`, `sysbench-1a2b3c4d` or
        `table_a-10x100000`."""

    @property
    @abc.abstractmethod
    def mb(self) -> int:
        """The approximate size of tables and indexes in megabytes; 0 if it is not known."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """A text that differs whenever the data differ: it contains everything that determines the data, or a hash of
        it.

        If the text begins with a word and a space, the word names the kind of the data.
        """

    @abc.abstractmethod
    def relations(self, connection: Session) -> str:
        """Returns an SQL condition for the tables of the data on a server. In the condition pg_class has the alias
        `c`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables, indexes and views that making the data creates, as far as pgtrial knows them in
        advance."""
        return ()

    @property
    def routines(self) -> tuple[str, ...]:
        """The names of the functions and procedures that making the data creates, as far as pgtrial knows them in
        advance."""
        return ()

    @property
    def key(self) -> dict[str, Any]:
        """The entries of the data in the key that identifies a template (loaded data that trials get as a copy), as
        names and values."""
        return {"scale": 0, "prepared": self.digest}

    def objection(self, connection: Session) -> str | None:
        """Returns why a server cannot have the data, as a sentence without a full stop; None if no reason is known."""
        return None

    @abc.abstractmethod
    def find(self, connection: Session) -> bool:
        """True if the server already has exactly this data, and all of it. Raises StudyError if tables that pgtrial did
        not create have the names of this data's tables; for pgbench's tables, only if their contents differ."""

    def used_as_found(self, connection: Session) -> str | None:
        """Returns a name, for messages, of tables that pgtrial did not create but that the load uses in place of this
        data; None if there are no such tables.

        pgtrial runs the load on such tables and does nothing else with them. `find` must have found the data before
        this is called.
        """
        return None

    def clear(self, connection: Session) -> bool:
        """Drops the tables that pgtrial created earlier and that this data will replace. Returns true if an interrupted
        load of this data can be resumed instead.

        Tables that the engine itself replaces when it loads the data are not dropped here.
        """
        return False

    @abc.abstractmethod
    def make(
        self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False
    ) -> list[str] | None:
        """Makes the data, marks its tables as pgtrial's, and runs VACUUM (FREEZE, ANALYZE) on them. Returns sentences
        for the user.

        With `in_steps`, the data is loaded in several steps, so that a load that was interrupted can be resumed later,
        if the kind of data supports that. Raises ArmError or StudyError if the data cannot be made.
        """

    def reset(self, connection: Session) -> None:
        """Brings the data close to its initial state before a trial: removes dead rows by VACUUM. Rows that earlier
        trials inserted stay."""
        vacuum(connection, self.table_names(connection))

    def table_names(self, connection: Session) -> list[str]:
        """Returns the names of the tables of the data on a server, qualified and quoted."""
        rows = connection.execute(
            "SELECT format('%I.%I', n.nspname, c.relname) "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ('r', 'p') AND {is_reached(connection)} AND {self.relations(connection)} "
            "ORDER BY c.relname".encode()
        ).fetchall()
        return [str(row[0]) for row in rows]


class MarkedTables(Data):
    """The base class for data whose tables only the user's SQL or script knows. pgtrial finds the tables by their
    marks, comments on the tables that contain the digest of the data."""

    mark: ClassVar[str]
    """The beginning of the mark on a complete table (a comment by which pgtrial recognises its own tables); the digest
    of the data follows it. It is one of the texts in `marks`."""
    unfinished: ClassVar[str]
    """The text of the mark on tables (a comment by pgtrial) while the data is not complete."""

    def relations(self, connection: Session) -> str:
        return marked_by(self.mark, connection)

    @property
    def replaced(self) -> str:
        """The beginning of the marks (comments by pgtrial) on the complete tables that pgtrial drops before it makes
        this data, such as those of an earlier study."""
        return self.mark

    def refuse_copies(self, connection: Session) -> None:
        """Raises StudyError if somebody has restored or copied tables of this kind of data into the database. pgtrial
        recognises such tables by the comments that were copied with them. Their names would clash with those of the
        tables that it is about to make."""
        copies = copied_objects(connection, (self.replaced, self.unfinished))
        if copies:
            more = f" and {len(copies) - 1:,} more" if len(copies) > 1 else ""
            raise tables_of_others(connection, f"{copies[0]}{more}", "drop them", copied=True)

    @abc.abstractmethod
    def fill(self, server: Target, report: OnLine, maker: LoadMaker) -> None:
        """Makes the tables. Each object gets, in the transaction that creates it, a comment that marks it as created by
        pgtrial and unfinished. Raises ArmError, StudyError or TrialError if the tables cannot be made."""

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the tables by `fill`, runs VACUUM (FREEZE, ANALYZE) on all tables that `fill` has marked as pgtrial's
        (by a comment), and then changes their marks to say that the data is complete.

        Tables without a mark were created by somebody else at the same time, and are not changed. Raises the errors of
        `fill`.
        """
        owner = server.for_load  # this role owns the tables
        with owner.connect() as connection:
            clients = count_clients(connection)
        self.fill(server, report, maker)
        # a new session: sessions report the rows that they wrote to the server's statistics when they end, so those
        # above had to end first
        with owner.connect() as connection:
            made = marked_objects(connection, self.unfinished)
            freeze(connection, [relation.identity for relation in made if relation.letter in TABLES], clients)
            with connection.transaction():
                mark_objects(connection, marked_objects(connection, self.unfinished), self.mark + self.digest)

    def clear(self, connection: Session) -> bool:
        """Drops the objects that pgtrial created earlier and that this data will replace. Raises StudyError if other
        people's objects depend on them.

        Objects that an interrupted load left are dropped too.
        """
        drop_marked(connection, (self.replaced, self.unfinished))
        return False


def too_old(connection: Session, what: str, since: int, otherwise: str) -> str | None:
    """Returns why a server is too old, as a sentence without a full stop; None if it is not. `what` is the beginning of
    the sentence and ends with a verb, `since` the first sufficient major version, and `otherwise` a remedy for the
    user, which ends the sentence."""
    major = connection.info.server_version // 10000
    if major >= since:
        return None
    return (
        f"{what} PostgreSQL {since} or later, and this server is PostgreSQL {major}; use a later version, or "
        f"{otherwise}"
    )


_TAKEN = f"""SELECT c.oid::regclass::text, coalesce(obj_description(b.oid, 'pg_class'), ''),
        {address_of("b.relname", "b.oid")}
    FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
    JOIN pg_class b ON b.oid = coalesce(i.indrelid, c.oid)
    WHERE c.relname = ANY (%s) AND :is_reached OR c.oid = ANY (SELECT to_regclass(name)::oid
        FROM unnest(%s::text[]) AS name WHERE strpos(name, '.') > 0) ORDER BY c.relname"""
"""SQL that finds the objects that already have one of the names that the data need. For each object, or for the table
of an index, it returns the comment, and the text that names the database and the table (see marks.py)."""


_TAKEN_ROUTINES = f"""SELECT p.oid::regprocedure::text, coalesce(obj_description(p.oid, 'pg_proc'), ''),
        {address_of("p.proname", "p.oid")}
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace, unnest(%s::text[]) AS name
    WHERE p.proname = (parse_ident(name))[array_upper(parse_ident(name), 1)] AND CASE
        WHEN array_upper(parse_ident(name), 1) > 1 THEN n.nspname = (parse_ident(name))[1]
        ELSE n.nspname <> 'pg_catalog' AND n.oid = ANY (:path) END ORDER BY 1"""
"""SQL that finds the functions and procedures that already have one of the names that the data need, whatever their
arguments are, with the same columns as `_TAKEN`."""


def refuse_taken_names(connection: Session, data: Data) -> None:
    """Raises StudyError if an object that pgtrial did not create has a name that pgtrial needs for an object of the
    data. Functions count too, since CREATE OR REPLACE would change a function of somebody else."""
    marks = Marks(connection)
    names = [name if name.startswith('"') else name.lower() for name in data.names]
    plain = [name.strip('"').replace('""', '"') for name in names]
    rows = connection.execute(_TAKEN.replace(":is_reached", is_reached(connection)).encode(), [plain, names]).fetchall()
    if data.routines:
        of_routines = _TAKEN_ROUTINES.replace(":path", array_of(schemas_of_load(connection)))
        rows += connection.execute(of_routines.encode(), [list(data.routines)]).fetchall()
    taken = [name for name, comment, address in rows if not marks.read(comment, address).is_ours(data.marks)]
    if taken:
        raise tables_of_others(connection, ", ".join(taken), "rename or drop them")


def refuse_foreign(connection: Session, marks: Mapping[str, Mark], beginning: str) -> None:
    """Raises StudyError with the names of the tables that pgtrial did not create, if there are any. `marks` has the
    comment of each table, read as a mark, by the name of the table; a table is pgtrial's if its mark begins with
    `beginning`."""
    foreign = [name for name, mark in marks.items() if not mark.is_ours(beginning)]
    if foreign:
        tables, cure = ("a table", "rename it") if len(foreign) == 1 else ("tables", "rename them")
        copied = all(marks[name].is_copy(beginning) for name in foreign)
        raise tables_of_others(connection, f"{tables} {', '.join(foreign)}", cure, copied=copied)


def tables_of_others(connection: Session, tables: str, cure: str, *, copied: bool = False) -> StudyError:
    """Returns the error for tables that pgtrial did not create, but whose names pgtrial needs for its own. `tables` is
    a phrase for them, and `cure` the advice what to do with them.

    `copied` is true if these tables have comments of pgtrial, as tables of a restored dump do.
    """
    copies = " (a copy of what it made elsewhere)" if copied else ""
    return StudyError(
        f"the database {connection.info.dbname} already holds {tables} that pgtrial did not make and will not replace"
        f"{copies}; {cure}, or name another database in the dsn"
    )


def flush_commits(connection: Session) -> None:
    """Makes PostgreSQL flush all commits until now to the WAL files, including those of sessions with
    `synchronous_commit = off`.

    VACUUM does not mark a page as all-visible while the commit of one of its rows may still be lost, and index-only
    scans are fast only on such pages.
    """
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT pg_catalog.pg_logical_emit_message(true, 'pgtrial', '')")


def vacuum(connection: Session, tables: Iterable[str]) -> None:
    """Runs VACUUM (ANALYZE) on each of these tables in a statement of its own, since PostgreSQL 10 does not accept a
    list. `tables` has their names as they are written in SQL."""
    flush_commits(connection)
    for table in tables:
        connection.execute(f"VACUUM (ANALYZE) {table}".encode())


def freeze(connection: Session, tables: Iterable[str], clients_before: int) -> None:
    """Runs VACUUM (FREEZE, ANALYZE) on tables that other sessions have loaded. `tables` has their names as in SQL.

    Thus hint bits and frozen rows are written now, and not by the first reads of a trial. `clients_before` is the
    number of client backends that the database had before the load. The function first waits until the load's backends
    have ended: when a backend ends, PostgreSQL would add the rows that it reports to the rows that VACUUM has counted.
    """
    wait_for_clients_to_leave(connection, clients_before)
    flush_commits(connection)
    for table in tables:
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}".encode())


def prefilled_wal_mb(data: Data) -> int:
    """Returns how many megabytes of empty WAL segments a template (a loaded data directory that trials get as a copy)
    keeps ready for them: as many as its data has, but at least 64 and at most 512.

    Creating a segment costs PostgreSQL more than recycling one, and without these segments the first trials after
    initdb would bear the cost.
    """
    return min(512, max(64, data.mb)) // SEGMENT_MB * SEGMENT_MB


def needed_mb(data: Data, *, templates: int = 1, copies: int = 1) -> int:
    """Returns the disk space, in megabytes, that is needed to load the data and to run trials: for the templates
    (loaded data directories), the copies of them in which trials run, and the WAL of loading or of a trial."""
    return (templates + copies) * (CLUSTER_MB + data.mb + prefilled_wal_mb(data)) + wal_mb(data)


def volume_bytes(data: Data) -> tuple[int, int]:
    """Returns the size in bytes of a volume for one copy of the data and the WAL of a trial, and the size of a volume
    for this WAL alone."""
    wal = prefilled_wal_mb(data) + wal_mb(data)
    return (CLUSTER_MB + data.mb + wal) * 1_000_000, wal * 1_000_000


def wal_mb(data: Data) -> int:
    """Estimates, from the size of the data alone, how many megabytes of WAL files exist at one time while data is
    loaded or a trial runs."""
    return min(LOADING_WAL_MB, max(64, data.mb))


def check_free(free_bytes: int, where: str, cure: str, data: Data, *, templates: int = 1, copies: int = 1) -> None:
    """Raises StudyError if the data needs more than `free_bytes` of disk space in the directory `where`.

    `templates` is the number of templates that still have to be loaded, and `copies` the number of copies that exist at
    one time. `cure` is the last of the remedies in the message.
    """
    needed = needed_mb(data, templates=templates, copies=copies)
    free = free_bytes / 1e6
    copied = "one copy" if copies == 1 else f"{copies} copies"
    if needed > free:
        raise StudyError(
            f"{data.label} does not fit on the disk: it needs about {needed:,} MB in {where} (for "
            f"{data.mb:,} MB of loaded tables, {copied} of them for trials, and WAL) and {free:,.0f} MB are free; "
            f"lower the scale, free some space, or {cure}"
        )
