"""Data that a trial needs on its server: what every kind of it is and does, and what it takes on disk."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pgtrial.loads.client_processes import count_clients, wait_for_clients_to_leave
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.made_objects import TABLES, copied_objects, drop_marked, mark_objects, marked_objects
from pgtrial.loads.marks import Mark, Marks, marked_by, place_in
from pgtrial.loads.names import is_reached
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec

CLUSTER_MB = 50
"""The size of a cluster without tables, rounded up, megabytes."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""The most WAL that may stand around while loading, megabytes; see `max_wal_size` of the loading settings."""


class Data(abc.ABC):
    """Data of one kind. Two that are equal are the same on a server, and share a template."""

    marks: ClassVar[tuple[str, ...]]
    """The beginnings of the marks on its tables, complete and unfinished ones: what pgtrial has made and may drop."""

    making_is_measured: ClassVar[bool] = False
    """True if reports say how long the data took to be made. Each study then makes its own."""

    @property
    def has_users_rows(self) -> bool:
        """True if SQL or a program of the user's makes the rows, which may come out otherwise each time it runs."""
        return False

    @classmethod
    @abc.abstractmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """Returns the data of this kind that a load point needs; None if it needs another kind."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The name of the data for people, such as `scale 20` or `sysbench, 250 x 450,000 rows`."""

    @property
    @abc.abstractmethod
    def relations_made(self) -> str:
        """The objects that making the data creates in a database, for people: `pgbench_accounts, ...`."""

    @property
    @abc.abstractmethod
    def short_name(self) -> str:
        """The name of the data for directories, such as `s20`, `sysbench-1a2b3c4d` or `table_a-10x100000`."""

    @property
    @abc.abstractmethod
    def mb(self) -> int:
        """The approximate size of tables and indexes, megabytes; 0 if unknown."""

    @property
    @abc.abstractmethod
    def digest(self) -> str:
        """A text that stands for everything on which the data depends.

        A text that begins with a word and a space names the kind of data by this word.
        """

    @abc.abstractmethod
    def relations(self, connection: Session) -> str:
        """Returns an SQL condition for the tables of the data on a server, of which pg_class is named `c`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables, indexes and views that making the data creates, as far as they are known before."""
        return ()

    @property
    def key(self) -> dict[str, Any]:
        """The part of the data in a template's key."""
        return {"scale": 0, "prepared": self.digest}

    def objection(self, connection: Session) -> str | None:
        """Returns why a server cannot hold the data, one sentence without a full stop; None if no reason is known."""
        return None

    @abc.abstractmethod
    def find(self, connection: Session) -> bool:
        """True if the server already has exactly this data, and all of it. Raises StudyError if tables of others have
        its names."""

    def used_as_found(self, connection: Session) -> str | None:
        """Returns the tables of others that serve in the place of this data, for people; None if the data is pgtrial's
        own.

        The load runs on such tables, and pgtrial does nothing else to them. It is called after `find` has found them.
        """
        return None

    def clear(self, connection: Session) -> bool:
        """Drops the tables that pgtrial made earlier and that this data will replace. Returns true if an interrupted
        load of this data can be resumed instead.

        Tables that the engine itself replaces when it loads the data are not dropped here.
        """
        return False

    @abc.abstractmethod
    def make(
        self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False
    ) -> list[str] | None:
        """Makes the data, marks it as pgtrial's, freezes and analyses it. Returns sentences that the user should read.

        Raises ArmError. With `in_steps` a load that was interrupted can be resumed, where the kind supports that.
        """

    def reset(self, connection: Session) -> None:
        """Brings the data near its first state: it has no dead rows afterwards. Rows that trials wrote stay."""
        vacuum(connection, self.table_names(connection))

    def table_names(self, connection: Session) -> list[str]:
        """Returns the names of its tables on a server, qualified and quoted as SQL has them."""
        rows = connection.execute(
            "SELECT format('%I.%I', n.nspname, c.relname) "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ('r', 'p') AND {is_reached(connection)} AND {self.relations(connection)} "
            "ORDER BY c.relname".encode()
        ).fetchall()
        return [str(row[0]) for row in rows]


class MarkedTables(Data):
    """Data whose tables only a script knows. The mark on a new table says that pgtrial made it, and has its digest."""

    mark: ClassVar[str]
    """The beginning of the mark on a complete table, before the digest; one of `marks`."""
    unfinished: ClassVar[str]
    """The mark on a table of data that is not complete."""

    def relations(self, connection: Session) -> str:
        return marked_by(self.mark, connection)

    @property
    def replaced(self) -> str:
        """The beginning of the marks on those complete tables that this data replaces."""
        return self.mark

    def refuse_copies(self, connection: Session) -> None:
        """Raises StudyError if somebody has restored or copied such data into the database: names would clash."""
        copies = copied_objects(connection, (self.replaced, self.unfinished))
        if copies:
            more = f" and {len(copies) - 1:,} more" if len(copies) > 1 else ""
            raise tables_of_others(connection, f"{copies[0]}{more}", "drop them", copied=True)

    @abc.abstractmethod
    def fill(self, server: Target, report: OnLine, maker: LoadMaker) -> None:
        """Makes the tables, and marks each object as unfinished in the transaction that makes it. Raises ArmError."""

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the tables, freezes and analyses those that `fill` has marked, and marks them as complete.

        Tables without a mark were made by somebody else at the same time. Raises what `fill` raises.
        """
        owner = server.for_load  # the tables belong to this role
        with owner.connect() as connection:
            clients = count_clients(connection)
        self.fill(server, report, maker)
        # a new session: the rows that the former ones wrote reach the server's statistics when those end
        with owner.connect() as connection:
            made = marked_objects(connection, self.unfinished)
            freeze(connection, [relation.identity for relation in made if relation.letter in TABLES], clients)
            with connection.transaction():
                mark_objects(connection, marked_objects(connection, self.unfinished), self.mark + self.digest)

    def clear(self, connection: Session) -> bool:
        """Drops the objects that pgtrial made earlier and that this data will replace. Raises StudyError if objects of
        others depend on them.

        Objects of a load that was interrupted are among them.
        """
        drop_marked(connection, (self.replaced, self.unfinished))
        return False


def too_old(connection: Session, what: str, since: int, otherwise: str) -> str | None:
    """Returns why a server is too old for `what`, one sentence without a full stop; None if it is not."""
    major = connection.info.server_version // 10000
    if major >= since:
        return None
    return f"{what} PostgreSQL {since} or later, and this server is {major}; take a later one, or {otherwise}"


_TAKEN = f"""SELECT c.oid::regclass::text, coalesce(obj_description(b.oid, 'pg_class'), ''),
        {place_in("b.relname", "b.oid")}
    FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
    JOIN pg_class b ON b.oid = coalesce(i.indrelid, c.oid)
    WHERE c.relname = ANY (%s) AND :is_reached OR c.oid = ANY (SELECT to_regclass(name)::oid
        FROM unnest(%s::text[]) AS name WHERE strpos(name, '.') > 0) ORDER BY c.relname"""
"""Finds the objects that have a name which the data need, with the comment and the place of the table of each."""


def refuse_taken_names(connection: Session, data: Data) -> None:
    """Raises StudyError if an object that pgtrial did not make has the name of one that pgtrial would create for the
    data."""
    marks = Marks(connection)
    names = [name if name.startswith('"') else name.lower() for name in data.names]
    plain = [name.strip('"').replace('""', '"') for name in names]
    rows = connection.execute(_TAKEN.replace(":is_reached", is_reached(connection)).encode(), [plain, names]).fetchall()
    taken = [name for name, comment, place in rows if not marks.read(comment, place).is_ours(data.marks)]
    if taken:
        raise tables_of_others(connection, ", ".join(taken), "rename or drop them")


def refuse_foreign(connection: Session, marks: Mapping[str, Mark], beginning: str) -> None:
    """Raises StudyError, with their names, if some of these tables were not made by pgtrial; `marks` has the mark of
    each."""
    foreign = [name for name, mark in marks.items() if not mark.is_ours(beginning)]
    if foreign:
        tables, cure = ("a table", "rename it") if len(foreign) == 1 else ("tables", "rename them")
        copied = all(marks[name].is_copy(beginning) for name in foreign)
        raise tables_of_others(connection, f"{tables} {', '.join(foreign)}", cure, copied=copied)


def tables_of_others(connection: Session, tables: str, cure: str, *, copied: bool = False) -> StudyError:
    """Returns the error for `tables` that pgtrial did not make, and whose names pgtrial needs for its own.

    `copied` is true if these tables have pgtrial's comments, as tables of a restored dump do.
    """
    copies = " (a copy of what it made elsewhere)" if copied else ""
    return StudyError(
        f"the database {connection.info.dbname} already holds {tables} that pgtrial did not make and will not replace"
        f"{copies}; {cure}, or name another database in the dsn"
    )


def flush_commits(connection: Session) -> None:
    """Writes all commits so far to the WAL's files, also those that nobody waited for (`synchronous_commit = off`).

    VACUUM does not mark a page as all-visible while the commit of one of its rows may still be lost, and without such
    pages no plan has an index-only scan.
    """
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT pg_catalog.pg_logical_emit_message(true, 'pgtrial', '')")


def vacuum(connection: Session, tables: Iterable[str]) -> None:
    """Vacuums and analyses tables, by their names as SQL has them, one at a time: PostgreSQL 10 takes no list."""
    flush_commits(connection)
    for table in tables:
        connection.execute(f"VACUUM (ANALYZE) {table}".encode())


def freeze(connection: Session, tables: Iterable[str], clients_before: int) -> None:
    """Freezes and analyses tables that other sessions have loaded, by their names as SQL has them.

    Hint bits and frozen rows are written now, not by the first reads of a trial. `clients_before` is the number of
    client processes that the database had before the load. Those of the load have to end first, since the rows that a
    session reports at its end would be added to those that VACUUM counts.
    """
    wait_for_clients_to_leave(connection, clients_before)
    flush_commits(connection)
    for table in tables:
        connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}".encode())


def prefilled_wal_mb(data: Data) -> int:
    """Returns the megabytes of WAL segments to keep ready in a template: as many as its data, within 64 to 512.

    New segments cost more than recycled ones. Ready-made segments spare the first trials after initdb that cost.
    """
    return min(512, max(64, data.mb)) // SEGMENT_MB * SEGMENT_MB


def needed_mb(data: Data, *, templates: int = 1, copies: int = 1) -> int:
    """Returns the megabytes to load and to run: the templates, their copies, and the WAL of loading or of a trial."""
    return (templates + copies) * (CLUSTER_MB + data.mb + prefilled_wal_mb(data)) + wal_mb(data)


def volume_bytes(data: Data) -> tuple[int, int]:
    """Returns the bytes of a volume for one copy of the data and the WAL of a trial, and of one for such WAL alone."""
    wal = prefilled_wal_mb(data) + wal_mb(data)
    return (CLUSTER_MB + data.mb + wal) * 1_000_000, wal * 1_000_000


def wal_mb(data: Data) -> int:
    """Estimates how many megabytes of WAL files exist at one time while data is loaded or a trial runs, from the size
    of the data alone."""
    return min(LOADING_WAL_MB, max(64, data.mb))


def check_free(free_bytes: int, where: str, cure: str, data: Data, *, templates: int = 1, copies: int = 1) -> None:
    """Raises StudyError with the figures if the data does not fit so many bytes.

    `templates` is the number of templates that still have to be loaded, and `copies` that of the copies which are there
    at once. `cure` is what to do besides a lower scale and a tidier disk.
    """
    needed = needed_mb(data, templates=templates, copies=copies)
    free = free_bytes / 1e6
    copied = "one copy" if copies == 1 else f"{copies} copies"
    if needed > free:
        raise StudyError(
            f"{data.label} does not fit the disk: it needs about {needed:,} MB in {where} "
            f"({data.mb:,} MB of tables, for the template, {copied} and WAL) and {free:,.0f} MB are "
            f"free; lower the scale, free some space, or {cure}"
        )
