"""The tables of a sysbench test on a server: what they are, preparing them, and their state before a trial."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import Data
from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker, DataOrder, OnLine, noticing, vacuum
from pgtrial.loads.engine import server_options
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.sysbench import SYSBENCH_TESTS, is_sysbench, prepares
from pgtrial.model.units import format_duration

_BYTES_PER_ROW = 275
"""Of sysbench's own tests: a row of 220 bytes, and its two index entries."""

_SEED = 1
"""Of the random numbers of preparing: all arms get the same rows."""

_FOR_EACH_THREAD = "bulk_insert"
"""The test that has a table for each thread."""

_MARK = "prepared by pgtrial: "
_UNFINISHED = "being prepared by pgtrial"
_CREATING = re.compile(r"\bCreating table '?([^'.]+)'?")


@dataclass(frozen=True)
class SysbenchTables(Data):
    """What `prepare` of a test makes. Two tests that make the same are equal here, and share their tables."""

    relations: ClassVar[str] = f"obj_description(c.oid, 'pg_class') LIKE '{_MARK}%'"

    test: str
    """What the engine is to prepare: one of its own tests, or the name of a script among `scripts`."""
    options: tuple[str, ...]
    """Those that concern the tables."""
    threads: int
    tables: int | None = None
    table_size: int | None = None
    scripts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Name and text of a script of the study's own and of what it requires."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """Sysbench's own tests share their tables, all but bulk_insert."""
        if not is_sysbench(point.workload):
            return None
        native = point.workload in SYSBENCH_TESTS
        test = "oltp_read_write" if native and point.workload != _FOR_EACH_THREAD else point.workload
        section = spec.load.sysbench
        if native:
            chosen = {name: value for name, value in section.options.items() if prepares(name)}
            section = section.model_copy(update={"options": chosen})
        # bulk_insert has a table for each client, the others have what the CPUs can do
        threads = point.clients if test == _FOR_EACH_THREAD else min(4, os.cpu_count() or 1)
        scripts = () if native else tuple(sorted(item for item in spec.scripts.items() if item[0].endswith(".lua")))
        return cls(test, tuple(section.arguments(test)), threads, *section.sizes(test), scripts)

    @property
    def label(self) -> str:
        """With the size of the tables where it is known; of a script its name."""
        sized = self.tables is not None and self.table_size is not None
        rows = f", {self.tables:,} x {self.table_size:,} rows" if sized else ""
        return f"sysbench{rows}" if not self.scripts and rows else f"{self.test}{rows}"

    @property
    def digest(self) -> str:
        text = json.dumps([self.test, self.options, self.threads, self.scripts])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def mb(self) -> int:
        """Of a script 0: only the script knows."""
        return round((self.tables or 0) * (self.table_size or 0) * _BYTES_PER_ROW / 1e6)

    @property
    def short_name(self) -> str:
        return f"sysbench-{self.digest[:8]}"

    def make(self, server: Target, report: OnLine, maker: DataMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Have the test make its tables, mark what is new as pgtrial's, freeze and analyse it. Raises ArmError."""
        with server.connect() as connection:
            before = {name for name, _ in _tables(connection)}
        try:
            with tempfile.TemporaryDirectory(prefix="pgtrial-") as folder:
                order = _order(server, self, Path(folder), maker.engines)
                maker.make(order, _Progress(self, report).line)
        except BaseException:
            # a server that is gone takes no mark, and why is what has been raised
            with suppress(psycopg.Error):
                _mark_new(server, before, _UNFINISHED)
            raise
        with server.connect() as connection:
            made = [name for name, _ in _tables(connection) if name not in before]
            # hint bits and frozen rows are written now, not by the first reads of a trial
            vacuum(connection, made, freeze=True)
        _mark_new(server, before, _MARK + self.digest)

    def find(self, connection: Session) -> bool:
        """Whether the tables of this very data are there. Raises StudyError for somebody else's in their place."""
        marks = dict(_tables(connection))
        there = sum(mark == _MARK + self.digest for mark in marks.values())
        if there and (self.scripts or there >= (self.tables or 1)):
            return True
        foreign = [name for name, mark in marks.items() if re.fullmatch(r"sbtest\d+", name) and not _ours(mark)]
        if foreign and not self.scripts:
            raise StudyError(
                f"the database {connection.info.dbname} already holds tables of sysbench ({foreign[0]}"
                + (f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else "")
                + ") that pgtrial did not make and will not replace; drop them, or name another database in the dsn"
            )
        return False

    def clear(self, connection: Session) -> bool:
        """Drop what pgtrial prepared for another test, or did not finish."""
        ours = [name for name, mark in _tables(connection) if _ours(mark)]
        if ours:
            listed = sql.SQL(", ").join(map(sql.Identifier, ours))
            connection.execute(sql.SQL("DROP TABLE {} CASCADE").format(listed))
        return False


def _order(server: Target, data: SysbenchTables, folder: Path, engines: int) -> DataOrder:
    """Threads of a native test are connections: each engine has as many as one has alone. Those of bulk_insert have a
    table each, and what a script makes may depend on their number: it is that of all engines."""
    test, environment = _written(data, folder)
    depends = bool(data.scripts) or data.test == _FOR_EACH_THREAD
    threads = data.threads if depends else data.threads * engines
    options = [f"--threads={threads}", f"--rand-seed={_SEED}", *data.options]
    most_parts = data.threads if depends else engines
    return sysbench_order({**server.environment(), **environment}, test, options, most_parts=most_parts, folder=folder)


def sysbench_order(
    env: Mapping[str, str], test: str, options: Sequence[str], *, most_parts: int = 1, folder: Path | None = None
) -> DataOrder:
    """What a test of sysbench prepares; `test` is a script's path if it is one, in `folder`."""
    env = noticing(env)
    command = ["sysbench", test, *server_options(env), *options, "prepare"]
    return DataOrder(f"preparing the tables of {os.path.basename(test)}", command, env, most_parts, folder)


class _Progress:
    """The engine reports each table; the progress has the time that is left for all of them."""

    def __init__(self, data: SysbenchTables, report: OnLine) -> None:
        self._data = data
        self._report = report
        self._begun = time.monotonic()
        self._count = 0

    def line(self, text: str) -> None:
        if not _CREATING.search(text):
            return
        done, self._count = self._count, self._count + 1
        elapsed = time.monotonic() - self._begun
        of = f" of {self._data.tables:,}" if self._data.tables else ""
        left = ""
        if self._data.tables and done:
            remaining = elapsed / done * max(0, self._data.tables - done)
            left = f" (elapsed {format_duration(elapsed)}, remaining {format_duration(remaining)})"
        self._report(f"table {self._count:,}{of}{left}")


def _written(data: SysbenchTables, folder: Path) -> tuple[str, dict[str, str]]:
    """What names the test to the engine, its scripts written to the folder, and variables by which they are found."""
    if not data.scripts:
        return data.test, {}
    for name, text in data.scripts:
        (folder / name).write_bytes(text.encode())
    return str(folder / data.test), lua_environment(folder)


def lua_environment(folder: Path) -> dict[str, str]:
    """Variables with which the engine finds Lua modules beside a script, then where sysbench looks."""
    return {"LUA_PATH": f"{folder}/?.lua;;"}


def _mark_new(server: Target, before: set[str], mark: str) -> None:
    with server.connect() as connection:
        for name in [name for name, _ in _tables(connection) if name not in before]:
            comment = sql.SQL("COMMENT ON TABLE {} IS {}")
            connection.execute(comment.format(sql.Identifier(name), sql.Literal(mark)))


def _tables(connection: Session) -> list[tuple[str, str]]:
    """Name and comment of the tables that unqualified names reach, pgbench's apart."""
    rows = connection.execute(
        "SELECT relname, coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class "
        "WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid) AND relnamespace NOT IN "
        "('pg_catalog'::regnamespace, 'information_schema'::regnamespace) AND relname NOT LIKE 'pgbench\\_%' "
        "ORDER BY relname"
    ).fetchall()
    return [(str(name), str(mark)) for name, mark in rows]


def _ours(mark: str) -> bool:
    return mark.startswith((_MARK, _UNFINISHED))
