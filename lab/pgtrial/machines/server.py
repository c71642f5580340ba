"""A PostgreSQL server as a change of a machine: run by pg_ctl; and the processes of a server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pgtrial.machines.machine import Change, HostError, Machine, lies_in
from pgtrial.machines.volumes import is_private
from pgtrial.model.resources import resource

TIMEOUT_S = 120
"""Limit of a start and of a stop."""

_STOP = resource("stop_server.sh", __package__)
"""pg_ctl waits until postmaster.pid is gone, and the postmaster ends a moment later: until then it works in its data
directory, whose file system cannot be unmounted."""

PROCESSES = resource("processes.sh", __package__)
"""Functions of a shell by which scripts know a process: its number, when it began, and where it works."""

_END = PROCESSES + resource("end_server.sh", __package__)
"""A postmaster takes its backends with it: those of one that has to be killed are killed as well. A process that does
not work in the data directory is another one, whatever the file says that the server's account may write. That account
runs the script, so that it reads and ends nothing that the account could not."""
_END_TIMEOUT_S = 60.0
_UNKNOWN = 3
"""Status of that script."""


class RunningServer(Change):
    """The server of a data directory."""

    bin: Path
    data: Path
    log: Path
    user: str | None = None
    """The account that it runs as; None: the login's own."""
    runner: tuple[str, ...] = ()
    """What pg_ctl is run by, such as `env NAME=VALUE taskset -c 0-3`."""

    def make(self, machine: Machine) -> None:
        """Start it and wait until it answers, or waits for nothing but its start to end."""
        done = machine.run([*self.runner, *self._pg_ctl("start", "-l", self.log)], user=self.user)
        if done.status != 0:
            raise HostError(" ".join((done.stderr or done.stdout).split()) or f"pg_ctl ended with status {done.status}")

    def stop(self, machine: Machine, *, immediate: bool) -> None:
        """Stop it, fast (its data stays clean) or immediate; whatever becomes of that, `undo` ends it."""
        stop = self._pg_ctl("stop", "-m", "immediate" if immediate else "fast")
        machine.run(["sh", "-c", _STOP, "sh", self.data / "postmaster.pid", *stop], user=self.user)

    def undo(self, machine: Machine) -> None:
        """End it, if it runs. Raises HostError if it does not end, or where nobody can tell whether it runs."""
        end: list[str | Path] = ["sh", "-c", _END, "sh", self.data / "postmaster.pid", self.data]
        status = machine.run(end, user=self.user, timeout_s=_END_TIMEOUT_S).status
        if status == _UNKNOWN:
            raise HostError(
                f"{machine.label} does not tell where a process works, so whether that of {self.data}/postmaster.pid "
                "is its server is unknown; end the server there"
            )
        if status != 0:
            raise HostError(f"the server in {self.data} on {machine.label} does not end; end it there")

    def is_of(self, run: Path) -> bool:
        """A server whose data is in a room, or on a volume in a directory of the study's."""
        named = _ROOM_NUMBER.match(self.data.name) is not None or is_private(self.data.parent)
        return lies_in(self.data, run) or (self.data.is_absolute() and ".." not in self.data.parts and named)

    def _pg_ctl(self, action: str, *options: str | Path) -> list[str | Path]:
        return [self.bin / "pg_ctl", "-D", self.data, "-s", "-w", "-t", str(TIMEOUT_S), *options, action]

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"


_ROOM_NUMBER = re.compile(r"\d{3,}-")
"""In front of the names of directories of rooms."""


_PROC = Path("/proc")
_UIDS = re.compile(rb"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)


def working_below(directory: Path) -> Iterator[int]:
    """Processes whose working directory is this one or lies in it, and is their own account's.

    That of a server's processes is its data directory; an administrator's shell in it is none of them.
    """
    wanted = os.path.join(os.path.realpath(directory), "")
    for name in filter(str.isdecimal, os.listdir(_PROC) if _PROC.exists() else ()):
        with suppress(OSError):
            where = os.readlink(f"{_PROC}/{name}/cwd").removesuffix(" (deleted)")
            if os.path.join(where, "").startswith(wanted) and _account(name) == os.stat(f"{_PROC}/{name}/cwd").st_uid:
                yield int(name)


def _account(pid: str) -> int | None:
    """The number of the account as which a process acts; the owner of its files in /proc may be root instead."""
    match = _UIDS.search((_PROC / pid / "status").read_bytes())
    return None if match is None else int(match[1])
