"""What a collector of facts looks at, and what a collector is; on which machine a server is, and as which process."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from pgtrial.evidence.collect.files import POWERSHELL, Files, MachineFiles, WindowsFiles
from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.posix import BOOT_ID
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

    account: str | None = None
    """The account that owns such a directory, and can exchange all that is in it; None: the lab's own."""

    measure: bool = False
    """Whether to measure, which takes seconds and must not disturb a load."""

    load_connection: Session | None = None
    """A session of the load's role, where that is not the role of `connection`."""

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
        folders = [] if self.data_directory is None else [self.data_directory, self.data_directory / "pg_wal"]
        return MachineFiles(self.machine, self.announced_files, self.announced_tools, folders)

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
        return self.measured(lambda session: session.execute(query.encode(), parameters or None).fetchall())

    def measured(self, probe: Callable[[Session], Measured]) -> Measured | None:
        """What a probe finds by the connection, or None if there is no server, or it refuses or is gone."""
        with suppress(psycopg.Error):
            return None if self.connection is None else probe(self.connection)
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


def runs_here(connection: Session, target: Target) -> bool:
    """Whether the server runs on the machine that the lab runs on, as far as that is certain.

    A Unix socket ends here. An address of this machine may be the near end of a tunnel or of a container's port: the
    server is here if the process that serves the connection is.
    """
    if target.host.startswith(("/", "@")):
        return True
    here = peer_address(connection) in own_addresses()
    return here and backend_process(connection.info.backend_pid, MachineFiles(LOCAL)) is not None


def is_this_machine(files: Files) -> bool:
    """Whether they are those of the machine that the lab runs on, reached by whichever way: by the kernel's boot."""
    if files.local:
        return True
    boot = MachineFiles(LOCAL).read(BOOT_ID)
    return boot is not None and boot == files.read(BOOT_ID)


def backend_process(number: int, files: Files) -> int | None:
    """The process that serves a connection, if the machine has it; None if it is elsewhere or hidden from us."""
    if files.uname.system == "Windows":
        name = files.output(*POWERSHELL, f"[Console]::Out.Write((Get-Process -Id {number}).ProcessName)")
    else:
        name = files.read(f"/proc/{number}/comm") or files.output("ps", "-o", "comm=", "-p", str(number))
    return number if Path(name or "").name.startswith(("postgres", "postmaster")) else None


def peer_address(connection: Session) -> str | None:
    """The IP address that the connection leads to; None for a Unix socket."""
    try:
        return str(ipaddress.ip_address(connection.info.hostaddr))
    except ValueError:
        return None


def own_addresses() -> dict[str, str]:
    """This machine's IP addresses, each with the name of its interface."""
    return {
        entry.address.partition("%")[0]: name
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }


_SHOWN = "SELECT current_setting('data_directory', true)"


def shown_directory(connection: Session) -> Path | None:
    """The data directory as the server names it; None where the role may not know (pg_read_all_settings).

    Raises psycopg.OperationalError when the server is gone.
    """
    try:
        shown = value(connection, _SHOWN)
    except psycopg.errors.InsufficientPrivilege:
        return None
    return Path(shown) if shown else None
