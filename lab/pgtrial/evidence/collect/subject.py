"""Defines collectors of facts (`Collector`) and the server and machine that they examine (`Subject`), with functions
that find a server's machine and process."""

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
    """The server and the machine that collectors examine.

    `connection` is None for a machine without a server. `data_directory` is None if it is not known.
    """

    connection: Session | None
    data_directory: Path | None
    machine: AnyMachine | None
    """The machine of the server; None if the lab has no access to it."""

    ours: bool = False
    """True if pgtrial created the data directory, so that measurements may write in it."""

    account: str | None = None
    """The account that owns the data directory, if pgtrial created it for a server that runs as another account. This
    account can replace all files in the directory, so tools that write there run as this account. None if the directory
    belongs to the account that the lab runs as."""

    measure: bool = False
    """True if collectors may measure. This takes seconds, and must not happen during a load."""

    load_connection: Session | None = None
    """A session of the load's role, with which collectors read the settings that the load has; None if `connection` has
    the same role."""

    announced_files: tuple[str, ...] = ()
    announced_tools: tuple[tuple[str, ...], ...] = ()
    """The patterns of the files that all collectors read, and the commands whose output they need, so that one request
    can fetch them."""

    @cached_property
    def host(self) -> Files:
        """An object that reads the files and runs the tools of the machine. On a remote machine, its first request
        fetches all files, and the output of all tools, that the collectors have declared to need."""
        if self.machine is None:
            return Files()
        if isinstance(self.machine, WindowsHost):
            return WindowsFiles(self.machine)
        folders = [] if self.data_directory is None else [self.data_directory, self.data_directory / "pg_wal"]
        return MachineFiles(self.machine, self.announced_files, self.announced_tools, folders)

    @property
    def session(self) -> Session:
        """The session in `connection`, for collectors that need a server. Raises RuntimeError if there is no server."""
        if self.connection is None:
            raise RuntimeError("a collector asked for a server, but the subject is a machine without a server")
        return self.connection

    @cached_property
    def here(self) -> bool:
        """True if the server is on the machine that the lab runs on."""
        return is_this_machine(self.host)

    @cached_property
    def server_process(self) -> int | None:
        """The number of the server process that serves the connection; None if it is not found on the machine."""
        if self.connection is None:
            return None
        return backend_process(self.connection.info.backend_pid, self.host)

    def value(self, query: str, *parameters: object) -> Any:
        """Runs a query, and returns the first column of its first row; None if there is no row, if there is no server,
        or if the server rejects the query."""
        rows = self.rows(query, *parameters)
        return rows[0][0] if rows else None

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]] | None:
        """Runs a query, and returns its rows; None if there is no server, or if the server rejects the query."""
        return self.measured(lambda session: session.execute(query.encode(), parameters or None).fetchall())

    def measured(self, probe: Callable[[Session], Measured]) -> Measured | None:
        """Calls `probe` with the connection, and returns its result; None if there is no server, or if `probe` raises
        psycopg.Error."""
        with suppress(psycopg.Error):
            return None if self.connection is None else probe(self.connection)
        return None


@dataclass(frozen=True)
class Collector:
    """A function that finds facts of one group, together with the requirements of this function. A fact that cannot be
    found is None, and never guessed."""

    find: Callable[[Subject], dict[str, Any]]
    group: str
    files: Sequence[str] = ()
    """The patterns of the files that the collector reads. One request fetches the files of all collectors from a remote
    host; any other file costs a round trip."""
    tools: Sequence[tuple[str, ...]] = ()
    """The commands whose output the collector needs."""
    host: bool = False
    """True if the collector needs access to the host."""
    systems: Sequence[str] = ()
    """The operating systems for which the collector works, as uname(1) names them; empty for all."""
    server: bool = False
    """True if the collector needs a server."""
    measures: bool = False
    """True if the collector measures something, which takes some time."""

    def __call__(self, subject: Subject) -> dict[str, Any]:
        """Returns the facts by their names; no facts if the subject lacks something that the collector needs, such as a
        server or access to its host."""
        host_lacks = (self.host or self.systems) and subject.machine is None
        if host_lacks or (self.server and subject.connection is None) or (self.measures and not subject.measure):
            return {}
        if self.systems and subject.host.uname.system not in self.systems:
            return {}
        return self.find(subject)


def collector(group: str, **needs: Any) -> Callable[[Callable[[Subject], dict[str, Any]]], Collector]:
    """A decorator that turns a function into a Collector; `needs` are further fields of Collector."""
    return lambda find: Collector(find, group, **needs)


def runs_here(connection: Session, target: Target) -> bool:
    """True if the server certainly runs on the machine of the lab.

    A Unix socket always leads to this machine. An IP address of this machine may belong to a tunnel or to a container's
    port; then the server counts as local only if its process is found here.
    """
    if target.host.startswith(("/", "@")):
        return True
    here = peer_address(connection) in own_addresses()
    return here and backend_process(connection.info.backend_pid, MachineFiles(LOCAL)) is not None


def is_this_machine(files: Files) -> bool:
    """True if the files are those of the lab's own machine, even if they are read over ssh. The kernel's boot id shows
    this."""
    if files.local:
        return True
    boot = MachineFiles(LOCAL).read(BOOT_ID)
    return boot is not None and boot == files.read(BOOT_ID)


def backend_process(number: int, files: Files) -> int | None:
    """Returns `number` if a process of PostgreSQL with this number exists on the machine; None if it runs elsewhere or
    is hidden."""
    if files.uname.system == "Windows":
        name = files.output(*POWERSHELL, f"[Console]::Out.Write((Get-Process -Id {number}).ProcessName)")
    else:
        name = files.read(f"/proc/{number}/comm") or files.output("ps", "-o", "comm=", "-p", str(number))
    return number if Path(name or "").name.startswith(("postgres", "postmaster")) else None


def peer_address(connection: Session) -> str | None:
    """Returns the IP address of the server that the connection uses; None for a Unix socket."""
    try:
        return str(ipaddress.ip_address(connection.info.hostaddr))
    except ValueError:
        return None


def own_addresses() -> dict[str, str]:
    """Returns the IP addresses of this machine, each with the name of its network interface."""
    return {
        entry.address.partition("%")[0]: name
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }


_SHOWN = "SELECT current_setting('data_directory', true)"


def shown_directory(connection: Session) -> Path | None:
    """Returns the data directory that the server reports; None if the role has no right to see it
    (pg_read_all_settings).

    Raises psycopg.OperationalError if the connection to the server is lost.
    """
    try:
        shown = value(connection, _SHOWN)
    except psycopg.errors.InsufficientPrivilege:
        return None
    return Path(shown) if shown else None
