"""Collect what an arm is, while its server runs; collectors are one file each and register themselves here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.arm.connect import Target
from pgtrial.discover import load_modules
from pgtrial.facts.fetched import FetchedFiles
from pgtrial.facts.files import Files, LocalFiles
from pgtrial.facts.place import backend_process, is_this_machine, runs_here
from pgtrial.facts.windows_files import WindowsFiles
from pgtrial.host.machine import LOCAL
from pgtrial.host.windows import AnyMachine, WindowsHost
from pgtrial.observe.directory import shown_directory
from pgtrial.store.records import Facts

GROUPS = (
    "hardware",
    "cpu",
    "memory",
    "limits",
    "os",
    "storage",
    "network",
    "server",
    "settings",
    "defaults",
    "sources",
    "client",
    "probes",
)
"""In this order people read them. `settings` holds what is not at its default in this arm, `defaults` all the rest,
`sources` where the former come from; `probes` are measured, and never twice the same."""


@dataclass(frozen=True)
class Subject:
    """What a collector looks at. `connection` is None for a machine without a server, `data_directory` if unknown."""

    connection: psycopg.Connection[tuple[Any, ...]] | None
    data_directory: Path | None
    machine: AnyMachine | None
    """The server's; None if it cannot be looked into."""

    ours: bool = False
    """Whether the data directory is the lab's own, so that a probe may write there."""

    measure: bool = False
    """Whether to measure, which takes seconds and must not disturb a load."""

    @cached_property
    def files(self) -> Files | None:
        """What is to be read on the machine; of another host what all collectors announced is fetched at once."""
        if self.machine is None:
            return None
        if self.machine is LOCAL:
            return LocalFiles()
        if isinstance(self.machine, WindowsHost):
            return WindowsFiles(self.machine)
        own = [] if self.data_directory is None else [self.data_directory, self.data_directory / "pg_wal"]
        return FetchedFiles(self.machine, [*_announced_files, *(escape(str(path)) for path in own)], _announced_tools)

    @cached_property
    def here(self) -> bool:
        """Whether the server is on the machine that the lab runs on."""
        return self.files is not None and is_this_machine(self.files)

    @cached_property
    def server_process(self) -> int | None:
        """The process that serves the connection, if it is one of the machine's that we may see."""
        if self.files is None or self.connection is None:
            return None
        return backend_process(self.connection.info.backend_pid, self.files)

    def value(self, query: str, *parameters: object) -> Any:
        """First column of the first row, or None if the server does not know or the role may not ask."""
        rows = self.rows(query, *parameters)
        return rows[0][0] if rows else None

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]] | None:
        """All rows, or None if the server does not know or the role may not ask."""
        if self.connection is None:
            return None
        try:
            return self.connection.execute(query.encode(), parameters or None).fetchall()
        except psycopg.Error:
            return None


Collector = Callable[[Subject], dict[str, Any]]
_collectors: list[tuple[str, Collector]] = []
_announced_files: list[str] = []
_announced_tools: list[tuple[str, ...]] = []


def collector(
    group: str, *, files: Sequence[str] = (), tools: Sequence[tuple[str, ...]] = ()
) -> Callable[[Collector], Collector]:
    """Register a function that finds the facts of one group; an unknown value is None, never guessed.

    `files` are patterns of what it reads and `tools` are commands whose words it asks for: of another host they come
    with one look for all collectors, and anything else with a round trip of its own.
    """

    def register(function: Collector) -> Collector:
        _collectors.append((group, function))
        _announced_files.extend(files)
        _announced_tools.extend(tools)
        return function

    return register


def collect(
    arm: str,
    target: Target,
    data_directory: Path | None = None,
    *,
    machine: AnyMachine | None = None,
    measure: bool = False,
) -> Facts:
    """The facts of an arm whose server runs at `target`. Raises psycopg.OperationalError if it is not there.

    `data_directory` is one of the lab's own; of other servers it is asked for. `machine` is where the server runs:
    without one, and without a directory of the lab's own, it is this one if the server is found here. Facts of the
    machine are collected where it can be looked into; otherwise their groups are empty. With `measure`, probes take
    some seconds; without it there are none. Raises HostTrouble where the machine is gone or refuses.
    """
    with target.connect() as connection:
        # settings as those have them who use the server
        connection.execute("RESET ALL")
        if machine is None and (data_directory is not None or runs_here(connection, target)):
            machine = LOCAL
        shown = data_directory or _shown_directory(connection, machine)
        subject = Subject(connection, shown, machine, ours=data_directory is not None, measure=measure)
        return Facts(arm=arm, collected=_now(), facts=_facts(subject))


def collect_machine(directory: Path, *, measure: bool = False) -> Facts:
    """The facts of this machine, without a server; storage is that of `directory`, where probes write if they may."""
    subject = Subject(None, directory, LOCAL, ours=True, measure=measure)
    return Facts(arm="this machine", collected=_now(), facts=_facts(subject))


def _shown_directory(connection: psycopg.Connection[tuple[Any, ...]], machine: AnyMachine | None) -> Path | None:
    """The data directory as the server names it, if the machine has it; Windows says that with all the rest."""
    shown = None if machine is None else shown_directory(connection)
    there = shown is not None and (machine is None or isinstance(machine, WindowsHost) or machine.exists(shown))
    return shown if there else None


def _facts(subject: Subject) -> dict[str, dict[str, Any]]:
    load_modules("pgtrial.facts")
    found: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for group, function in _collectors:
        for name, value in function(subject).items():
            # what one collector knows another's ignorance does not undo
            if value is not None or name not in found[group]:
                found[group][name] = value
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
