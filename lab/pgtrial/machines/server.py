"""A PostgreSQL server as a change of a machine: pg_ctl starts it and its undo ends it. Also finds the processes of a
server."""

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
"""The limit of a start and of a stop, in seconds."""

_STOP = resource("stop_server.sh", __package__)
"""The script that stops a server. pg_ctl waits until postmaster.pid is gone, and the postmaster ends a moment later:
until then it works in its data directory, whose file system cannot be unmounted."""

PROCESSES = resource("processes.sh", __package__)
"""Shell functions by which scripts recognise a process: its number, when it began, and its working directory."""

_END = PROCESSES + resource("end_server.sh", __package__)
"""The script that ends a server. A postmaster takes its backends with it; if it has to be killed, its backends are
killed as well. A process that does not work in the data directory is another one, even if postmaster.pid names it,
since the server's account may write that file. That account runs the script, so that the script reads and ends nothing
that the account could not."""
_END_TIMEOUT_S = 60.0
_UNKNOWN = 3
"""The status with which that script says that the machine does not tell where a process works."""


class RunningServer(Change):
    """A server that runs on a data directory."""

    bin: Path
    data: Path
    log: Path
    user: str | None = None
    """The account that the server runs as; None: the account that is logged in."""
    runner: tuple[str, ...] = ()
    """The words in front of pg_ctl, such as `env NAME=VALUE taskset -c 0-3`."""

    def make(self, machine: Machine) -> None:
        """Starts the server with pg_ctl, which waits until it is ready. Raises HostError if pg_ctl fails."""
        done = machine.run([*self.runner, *self._pg_ctl("start", "-l", self.log)], user=self.user)
        if done.status != 0:
            raise HostError(" ".join((done.stderr or done.stdout).split()) or f"pg_ctl ended with status {done.status}")

    def stop(self, machine: Machine, *, immediate: bool) -> None:
        """Stops the server, fast (its data stays clean) or immediate. Nothing is raised if it goes on: `undo` ends it
        then."""
        stop = self._pg_ctl("stop", "-m", "immediate" if immediate else "fast")
        machine.run(["sh", "-c", _STOP, "sh", self.data / "postmaster.pid", *stop], user=self.user)

    def undo(self, machine: Machine) -> None:
        """Ends the server if it runs. Raises HostError if it does not end, or if the machine does not tell whether it
        runs."""
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
        """True if the data directory is below the run, is numbered as in a room, or is on a volume of the study."""
        named = _ROOM_NUMBER.match(self.data.name) is not None or is_private(self.data.parent)
        return lies_in(self.data, run) or (self.data.is_absolute() and ".." not in self.data.parts and named)

    def _pg_ctl(self, action: str, *options: str | Path) -> list[str | Path]:
        return [self.bin / "pg_ctl", "-D", self.data, "-s", "-w", "-t", str(TIMEOUT_S), *options, action]

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"


_ROOM_NUMBER = re.compile(r"\d{3,}-")
"""The number with which the names of directories in a room begin (`Room.directory`)."""


_PROC = Path("/proc")
_UIDS = re.compile(rb"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)


def working_below(directory: Path) -> Iterator[int]:
    """Yields the processes that work in this directory or below it, if that working directory belongs to their own
    account.

    The processes of a server work in its data directory. An administrator's shell in it does not count.
    """
    wanted = os.path.join(os.path.realpath(directory), "")
    for name in filter(str.isdecimal, os.listdir(_PROC) if _PROC.exists() else ()):
        with suppress(OSError):
            where = os.readlink(f"{_PROC}/{name}/cwd").removesuffix(" (deleted)")
            if os.path.join(where, "").startswith(wanted) and _account(name) == os.stat(f"{_PROC}/{name}/cwd").st_uid:
                yield int(name)


def _account(pid: str) -> int | None:
    """Returns the effective user ID of a process. The owner of its files in /proc does not tell, since that may be root
    instead."""
    match = _UIDS.search((_PROC / pid / "status").read_bytes())
    return None if match is None else int(match[1])
