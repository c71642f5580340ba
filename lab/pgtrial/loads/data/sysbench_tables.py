"""Makes and finds the tables of a sysbench test on a server."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from pgtrial.loads.data.data import MarkedTables, tables_of_others
from pgtrial.loads.engine import server_options
from pgtrial.loads.load_makers import DataOrder, LoadMaker, OnLine, noticing
from pgtrial.loads.made_objects import marking_query
from pgtrial.loads.marks import table_marks
from pgtrial.loads.named_objects import Kind, made
from pgtrial.loads.process import lua_environment
from pgtrial.loads.target import Session, Target
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import SYSBENCH_TESTS, is_sysbench, prepares
from pgtrial.model.units import format_duration
from pgtrial.store.temporary import temporary_folder
from pgtrial.store.workloads import digest

_BYTES_PER_ROW = 275
"""The size, in bytes, of a row in the tables of sysbench's own tests: 220 for the row, and the rest for its two index
entries."""

_SEED = 1
"""The seed for the random numbers of `prepare`. It is the same for all arms, so that they get the same rows."""

_FOR_EACH_THREAD = "bulk_insert"
"""The name of the sysbench test that has one table for each thread."""

_OWN_TABLE = re.compile(r"sbtest\d+")

_CREATES = re.compile(r"\bCREATE\s[^\"']*", re.IGNORECASE)
_CREATING = re.compile(r"\bCreating table '?([^'.]+)'?")


@dataclass(frozen=True)
class SysbenchTables(MarkedTables):
    """The tables that sysbench's command `prepare` makes for a test. Two tests that use the same tables have equal
    data, and share them."""

    mark: ClassVar[str] = "prepared by pgtrial: "
    unfinished: ClassVar[str] = "being prepared by pgtrial"
    marks: ClassVar[tuple[str, ...]] = (mark, unfinished)

    test: str
    """The test whose tables the engine prepares: one of sysbench's own, or the name of a Lua script among `scripts`."""
    options: tuple[str, ...]
    """The options of the test on which its tables depend, such as the number of rows."""
    threads: int
    tables: int | None = None
    table_size: int | None = None
    scripts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The names and texts of the user's Lua script and of the modules that it requires; empty for sysbench's own
    tests."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """Returns the tables of a load point's sysbench test; None if the load point runs none. Sysbench's own tests
        all use the same tables, except bulk_insert."""
        if not is_sysbench(point.workload):
            return None
        native = point.workload in SYSBENCH_TESTS
        test = "oltp_read_write" if native and point.workload != _FOR_EACH_THREAD else point.workload
        section = spec.load.sysbench
        if native:
            chosen = {name: value for name, value in section.options.items() if prepares(name)}
            section = section.model_copy(update={"options": chosen})
        # bulk_insert makes a table for each client; the other tests use as many threads as the CPUs can run
        threads = point.clients if test == _FOR_EACH_THREAD else min(4, os.cpu_count() or 1)
        scripts = () if native else tuple(sorted(item for item in spec.scripts.items() if item[0].endswith(".lua")))
        return cls(test, tuple(section.arguments(test)), threads, *section.sizes(test), scripts)

    @property
    def has_users_rows(self) -> bool:
        return bool(self.scripts)

    @property
    def label(self) -> str:
        """The name of the data in messages, with the size of the tables if it is known. For a user's script it begins
        with the script's name."""
        sized = self.tables is not None and self.table_size is not None
        rows = f", {self.tables:,} x {self.table_size:,} rows" if sized else ""
        return f"sysbench{rows}" if not self.scripts and rows else f"{self.test}{rows}"

    @property
    def relations_made(self) -> str:
        """A phrase for the tables of a test in messages. The tables of a user's script are not known in advance."""
        if self.scripts or self.tables is None:
            return f"what prepare of {self.test} creates"
        return "sbtest1" if self.tables == 1 else f"sbtest1 to sbtest{self.tables}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables and indexes of sysbench's own tests. For a user's script, these are only the names
        that the script contains completely; it may compose others when it runs."""
        if self.scripts:
            return self._names_of("relation")
        return tuple(name for n in range(1, (self.tables or 0) + 1) for name in (f"sbtest{n}", f"k_{n}"))

    @property
    def routines(self) -> tuple[str, ...]:
        return self._names_of("routine")

    def _names_of(self, kind: Kind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, text in self.scripts for name in _named_in(text, kind)))

    @property
    def digest(self) -> str:
        return digest(json.dumps([self.test, self.options, self.threads, self.scripts]))

    @property
    def mb(self) -> int:
        """The approximate size of the tables in megabytes; 0 for a user's script, whose tables are not known."""
        return round((self.tables or 0) * (self.table_size or 0) * _BYTES_PER_ROW / 1e6)

    @property
    def short_name(self) -> str:
        return f"sysbench-{self.digest[:8]}"

    def fill(self, server: Target, report: OnLine, maker: LoadMaker) -> None:
        """Makes the tables by sysbench's command `prepare` for the test, which the engine runs."""
        with server.for_load.connect() as connection:
            mark_by = marking_query(connection, self.unfinished)
        with temporary_folder() as folder:
            maker.make(_order(server, self, folder, maker.engines, mark_by), _counted(self.tables, report))

    def find(self, connection: Session) -> bool:
        """True if the server already has the tables of exactly this data. Raises StudyError if tables that pgtrial did
        not create have their names."""
        marks = table_marks(connection)
        there = sum(mark.is_here and mark.text == self.mark + self.digest for mark in marks.values())
        if there and (self.scripts or there >= (self.tables or 1)):
            return True
        others = {name: mark for name, mark in marks.items() if not mark.is_ours(self.marks)}
        foreign = [name for name in others if _OWN_TABLE.fullmatch(name)]
        if foreign and not self.scripts:
            tables, copied = f"tables of sysbench ({', '.join(foreign)})", others[foreign[0]].is_copy(self.marks)
            raise tables_of_others(connection, tables, "drop them", copied=copied)
        self.refuse_copies(connection)
        return False


def _named_in(script: str, kind: Kind) -> Iterator[str]:
    """Yields the names of the objects of one kind that a script creates. A name at the end of a quoted text is skipped,
    since the script appends the rest of the name, such as a number, when it runs."""
    for statement in _CREATES.findall(script):
        for named in made(statement):
            end = statement.find(named.name) + len(named.name)
            if named.kind == kind and not statement.startswith("%", end) and statement[end:]:
                yield named.name


def _order(server: Target, data: SysbenchTables, folder: Path, engines: int, mark_by: str) -> DataOrder:
    """Returns the command of the engine that makes the tables of a test, as a DataOrder.

    A thread of a test has one connection. For sysbench's own tests, each engine gets as many threads as a single engine
    would. In bulk_insert each thread has a table, and the tables of a user's script may depend on the number of
    threads: in these two cases all engines together have as many threads as a single engine would have.
    """
    test, env = data.test, server.environment()
    for name, text in data.scripts:
        (folder / name).write_bytes(text.encode())
    if data.scripts:
        test, env = str(folder / test), {**env, **lua_environment(folder)}
    depends = bool(data.scripts) or data.test == _FOR_EACH_THREAD
    threads = data.threads if depends else data.threads * engines
    options = [f"--threads={threads}", f"--rand-seed={_SEED}", f"--mark-by={mark_by}", *data.options]
    return sysbench_order(env, test, options, most_parts=data.threads if depends else engines, folder=folder)


def sysbench_order(
    env: Mapping[str, str], test: str, options: Sequence[str], *, most_parts: int = 1, folder: Path | None = None
) -> DataOrder:
    """Returns the command of the engine that makes the tables of a test, as a DataOrder. `test` is its name, or the
    path of a script in `folder`."""
    env = noticing(env)
    command = ["sysbench", test, *server_options(env), *options, "prepare"]
    return DataOrder(f"preparing the tables of {os.path.basename(test)}", command, env, most_parts, folder)


def _counted(tables: int | None, report: OnLine) -> OnLine:
    """Returns a function that gets the lines of the engine's output one by one. It reports each table that the engine
    has created, with an estimate of the remaining time."""
    begun, created = time.monotonic(), itertools.count()

    def on_line(line: str) -> None:
        if not _CREATING.search(line):
            return
        done = next(created)
        of = f" of {tables:,}" if tables else ""
        left = ""
        if tables and done:
            elapsed = time.monotonic() - begun
            remaining = elapsed / done * max(0, tables - done)
            left = f" (elapsed {format_duration(elapsed)}, remaining {format_duration(remaining)})"
        report(f"table {done + 1:,}{of}{left}")

    return on_line
