"""Where a server is: on this machine or another, which of the machine's processes it is, and its data directory."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

import psutil
import psycopg

from pgtrial.evidence.collect.files import POWERSHELL, Files, MachineFiles
from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.posix import BOOT_ID


def runs_here(connection: Session, target: Target) -> bool:
    """Whether the server runs on the machine that the lab runs on, as far as that is certain.

    A Unix socket ends here. An address of this machine may be the near end of a tunnel or of a container's port: the
    server is here if the process that serves the connection is.
    """
    if target.host.startswith(("/", "@")):
        return True
    address = peer_address(connection)
    return (
        address is not None
        and address in own_addresses()
        and backend_process(connection.info.backend_pid, MachineFiles(LOCAL)) is not None
    )


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
