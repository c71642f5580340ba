"""The types of the collectors of facts (`Subject`, `Collector`), and functions that find a server's machine and
process."""

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
    """The server and the machine of which a collector finds facts.

    `connection` is None for a machine without a server, and `data_directory` if it is not known.
    """

    connection: Session | None
    data_directory: Path | None
    machine: AnyMachine | None
    """The server's machine; None if the lab cannot access it."""

    ours: bool = False
    """True if the data directory is the lab's own, so that a probe may write there."""

    account: str | None = None
    """The account that owns the lab's data directory, and can exchange all files in it; None if it is the lab's
    account."""

    measure: bool = False
    """True if collectors may measure, which takes seconds and must not disturb a load."""

    load_connection: Session | None = None
    """A session of the load's role, if that is not the role of `connection`."""

    announced_files: tuple[str, ...] = ()
    announced_tools: tuple[tuple[str, ...], ...] = ()
    """The files that all collectors read, and the commands whose output they ask for."""

    @cached_property
    def host(self) -> Files:
        """Returns the files and tools of the machine. On a remote one, all that collectors announced are fetched at
        once."""
        if self.machine is None:
            return Files()
        if isinstance(self.machine, WindowsHost):
            return WindowsFiles(self.machine)
        folders = [] if self.data_directory is None else [self.data_directory, self.data_directory / "pg_wal"]
        return MachineFiles(self.machine, self.announced_files, self.announced_tools, folders)

    @property
    def session(self) -> Session:
        """Returns `connection`, for collectors that need the server. Raises RuntimeError if there is none."""
        if self.connection is None:
            raise RuntimeError("this subject has no server")
        return self.connection

    @cached_property
    def here(self) -> bool:
        """True if the server is on the machine that the lab runs on."""
        return is_this_machine(self.host)

    @cached_property
    def server_process(self) -> int | None:
        """Returns the process that serves the connection, if the machine has it and the lab may see it."""
        if self.connection is None:
            return None
        return backend_process(self.connection.info.backend_pid, self.host)

    def value(self, query: str, *parameters: object) -> Any:
        """Returns the first column of the first row, or None if the server does not know or the role may not ask."""
        rows = self.rows(query, *parameters)
        return rows[0][0] if rows else None

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]] | None:
        """Returns all rows, or None if the server does not know or the role may not ask."""
        return self.measured(lambda session: session.execute(query.encode(), parameters or None).fetchall())

    def measured(self, probe: Callable[[Session], Measured]) -> Measured | None:
        """Returns the result of a probe on the connection, or None if there is no server, or it refuses or is gone."""
        with suppress(psycopg.Error):
            return None if self.connection is None else probe(self.connection)
        return None


@dataclass(frozen=True)
class Collector:
    """A collector, which finds facts of one group. An unknown value is None, and never guessed."""

    find: Callable[[Subject], dict[str, Any]]
    group: str
    files: Sequence[str] = ()
    """Patterns of the files that it reads. On a remote host, one request fetches them for all collectors; any other
    file costs a round trip of its own."""
    tools: Sequence[tuple[str, ...]] = ()
    """The commands whose output it asks for."""
    host: bool = False
    """True if it needs a host that the lab can access."""
    systems: Sequence[str] = ()
    """The operating systems of hosts that it knows, by uname(1); empty: all."""
    server: bool = False
    """True if it needs a server."""
    measures: bool = False
    """True if it measures something, which takes some time."""

    def __call__(self, subject: Subject) -> dict[str, Any]:
        """Returns the facts, by their names; none if the subject lacks something that the collector needs."""
        host_lacks = (self.host or self.systems) and subject.machine is None
        if host_lacks or (self.server and subject.connection is None) or (self.measures and not subject.measure):
            return {}
        if self.systems and subject.host.uname.system not in self.systems:
            return {}
        return self.find(subject)


def collector(group: str, **needs: Any) -> Callable[[Callable[[Subject], dict[str, Any]]], Collector]:
    """Makes a function a collector; `needs` are fields of Collector."""
    return lambda find: Collector(find, group, **needs)


def runs_here(connection: Session, target: Target) -> bool:
    """True if the server certainly runs on the machine that the lab runs on.

    A Unix socket always ends on this machine. An address of this machine may be the near end of a tunnel or of a
    container's port; then the server is here if the process that serves the connection is.
    """
    if target.host.startswith(("/", "@")):
        return True
    here = peer_address(connection) in own_addresses()
    return here and backend_process(connection.info.backend_pid, MachineFiles(LOCAL)) is not None


def is_this_machine(files: Files) -> bool:
    """True if the files are those of the machine that the lab runs on, however it is reached. The kernel's boot id
    tells."""
    if files.local:
        return True
    boot = MachineFiles(LOCAL).read(BOOT_ID)
    return boot is not None and boot == files.read(BOOT_ID)


def backend_process(number: int, files: Files) -> int | None:
    """Returns the process that serves a connection, if the machine has it; None if it is elsewhere or hidden."""
    if files.uname.system == "Windows":
        name = files.output(*POWERSHELL, f"[Console]::Out.Write((Get-Process -Id {number}).ProcessName)")
    else:
        name = files.read(f"/proc/{number}/comm") or files.output("ps", "-o", "comm=", "-p", str(number))
    return number if Path(name or "").name.startswith(("postgres", "postmaster")) else None


def peer_address(connection: Session) -> str | None:
    """Returns the IP address that the connection leads to; None for a Unix socket."""
    try:
        return str(ipaddress.ip_address(connection.info.hostaddr))
    except ValueError:
        return None


def own_addresses() -> dict[str, str]:
    """Returns this machine's IP addresses, each with the name of its interface."""
    return {
        entry.address.partition("%")[0]: name
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }


_SHOWN = "SELECT current_setting('data_directory', true)"


def shown_directory(connection: Session) -> Path | None:
    """Returns the data directory as the server names it; None if the role may not know it (pg_read_all_settings).

    Raises psycopg.OperationalError if the server is gone.
    """
    try:
        shown = value(connection, _SHOWN)
    except psycopg.errors.InsufficientPrivilege:
        return None
    return Path(shown) if shown else None
