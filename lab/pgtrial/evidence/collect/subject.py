"""What a collector of facts looks at, and what a collector is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from pgtrial.evidence.collect.files import Files, MachineFiles, WindowsFiles
from pgtrial.evidence.collect.place import backend_process, is_this_machine
from pgtrial.loads.target import Session
from pgtrial.machines.windows import AnyMachine, WindowsHost

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Subject:
    """What a collector looks at. `connection` is None for a machine without a server, `data_directory` if unknown."""

    connection: Session | None
    data_directory: Path | None
    machine: AnyMachine | None
    """The server's; None if it cannot be looked into."""

    ours: bool = False
    """Whether the data directory is the lab's own, so that a probe may write there."""

    measure: bool = False
    """Whether to measure, which takes seconds and must not disturb a load."""

    announced_files: tuple[str, ...] = ()
    announced_tools: tuple[tuple[str, ...], ...] = ()
    """What the collectors read, and the commands whose output they ask for."""

    @cached_property
    def host(self) -> Files:
        """What is to be read on the machine; of another host what all collectors announced is fetched at once."""
        if self.machine is None:
            return Files()
        if isinstance(self.machine, WindowsHost):
            return WindowsFiles(self.machine)
        own = [] if self.data_directory is None else [self.data_directory, self.data_directory / "pg_wal"]
        return MachineFiles(
            self.machine, [*self.announced_files, *(escape(str(path)) for path in own)], self.announced_tools
        )

    @property
    def session(self) -> Session:
        """`connection`, for collectors that need the server."""
        if self.connection is None:
            raise RuntimeError("this subject has no server")
        return self.connection

    @cached_property
    def here(self) -> bool:
        """Whether the server is on the machine that the lab runs on."""
        return is_this_machine(self.host)

    @cached_property
    def server_process(self) -> int | None:
        """The process that serves the connection, if it is one of the machine's that we may see."""
        if self.connection is None:
            return None
        return backend_process(self.connection.info.backend_pid, self.host)

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

    def measured(self, probe: Callable[[Session], Measured]) -> Measured | None:
        """What a probe finds by the connection, or None if the server refuses or is gone."""
        try:
            return probe(self.session)
        except psycopg.Error:
            return None


@dataclass(frozen=True)
class Collector:
    """Finds facts of one group; an unknown value is None, never guessed."""

    find: Callable[[Subject], dict[str, Any]]
    group: str
    files: Sequence[str] = ()
    """Patterns of what it reads. Of another host they come with one look for all collectors, and anything else with a
    round trip of its own."""
    tools: Sequence[tuple[str, ...]] = ()
    """Commands whose output it asks for."""
    host: bool = False
    """Whether it needs a host that can be looked into."""
    systems: Sequence[str] = ()
    """The systems of such a host, by uname(1), that it knows; empty: all."""
    server: bool = False
    """Whether it needs a server."""
    measures: bool = False
    """Whether it measures something, for some time."""

    def __call__(self, subject: Subject) -> dict[str, Any]:
        """The facts, by their names; none where it lacks what it needs."""
        host_lacks = (self.host or self.systems) and subject.machine is None
        if host_lacks or (self.server and subject.connection is None) or (self.measures and not subject.measure):
            return {}
        if self.systems and subject.host.uname.system not in self.systems:
            return {}
        return self.find(subject)


def collector(group: str, **needs: Any) -> Callable[[Callable[[Subject], dict[str, Any]]], Collector]:
    """Make a collector of a function; `needs` are fields of Collector."""
    return lambda find: Collector(find, group, **needs)
