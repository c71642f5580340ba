"""Treats a running PostgreSQL server as a change of a machine: making the change starts the server by pg_ctl, and
undoing it ends the server. Also finds the processes of a server."""

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
"""The time that pgtrial allows for the start of a server, and for its stop, in seconds."""

_STOP = resource("stop_server.sh", __package__)
"""The script that stops a server and waits until its postmaster has ended. pg_ctl waits only until postmaster.pid is
removed. The postmaster ends a moment later, and until then the file system of its data directory cannot be
unmounted."""

PROCESSES = resource("processes.sh", __package__)
"""Shell functions by which scripts identify a process: by its number, its start time and its working directory."""

_END = PROCESSES + resource("end_server.sh", __package__)
"""The script that ends a server. A postmaster that is asked to quit ends its backends itself; if it has to be killed,
the script kills its backends as well.

A process whose working directory is not the data directory is left alone even if postmaster.pid names it, since the
servers' account can write to that file. The script runs as the servers' account, so that it cannot read or end more
than this account itself could.
"""
_END_TIMEOUT_S = 60.0
_UNKNOWN = 3
"""The exit status of the script `_END` if the machine does not tell the working directory of a process."""


class RunningServer(Change):
    """A PostgreSQL server that runs on the data directory `data`."""

    bin: Path
    data: Path
    log: Path
    user: str | None = None
    """The account as which the server runs; None: the account that is logged in on the machine."""
    runner: tuple[str, ...] = ()
    """The words in front of pg_ctl, such as `env NAME=VALUE taskset -c 0-3`."""

    def make(self, machine: Machine) -> None:
        """Starts the server with pg_ctl, which waits until it is ready. Raises HostError if pg_ctl fails."""
        done = machine.run([*self.runner, *self._pg_ctl("start", "-l", self.log)], user=self.user)
        if done.status != 0:
            raise HostError(" ".join((done.stderr or done.stdout).split()) or f"pg_ctl ended with status {done.status}")

    def stop(self, machine: Machine, *, immediate: bool) -> None:
        """Stops the server by pg_ctl in the mode `immediate`, or in the mode `fast`, which leaves a cleanly shut down
        cluster. Raises no error if the server continues to run; `undo` ends it then."""
        stop = self._pg_ctl("stop", "-m", "immediate" if immediate else "fast")
        machine.run(["sh", "-c", _STOP, "sh", self.data / "postmaster.pid", *stop], user=self.user)

    def undo(self, machine: Machine) -> None:
        """Ends the server if it runs. Raises HostError if the server does not end, or if the machine does not tell
        whether it runs."""
        end: list[str | Path] = ["sh", "-c", _END, "sh", self.data / "postmaster.pid", self.data]
        status = machine.run(end, user=self.user, timeout_s=_END_TIMEOUT_S).status
        if status == _UNKNOWN:
            raise HostError(
                f"{machine.label} does not tell the working directory of a process, so pgtrial cannot tell whether the "
                "process in "
                f"{self.data}/postmaster.pid is the server; end the server there yourself"
            )
        if status != 0:
            raise HostError(f"the server in {self.data} on {machine.label} does not end; end it there yourself")

    def is_of(self, run: Path) -> bool:
        """True if the data directory lies below the run's directory, has a number in its name like the directories in
        a run directory, or lies in a private directory of pgtrial on a volume."""
        named = _NUMBERED.match(self.data.name) is not None or is_private(self.data.parent)
        return lies_in(self.data, run) or (self.data.is_absolute() and ".." not in self.data.parts and named)

    def _pg_ctl(self, action: str, *options: str | Path) -> list[str | Path]:
        return [self.bin / "pg_ctl", "-D", self.data, "-s", "-w", "-t", str(TIMEOUT_S), *options, action]

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"


_NUMBERED = re.compile(r"\d{3,}-")
"""The number with which `RunDirectory.directory` begins the name of each directory that it makes."""


_PROC = Path("/proc")
_UIDS = re.compile(rb"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)


def working_below(directory: Path) -> Iterator[int]:
    """Yields the IDs of processes whose working directory is this directory or lies below it, and belongs to the
    account as which the process runs.

    This finds the processes of a server, whose working directory is the data directory. The second condition leaves out
    the shell of an administrator who has changed to that directory.
    """
    wanted = os.path.join(os.path.realpath(directory), "")
    for name in filter(str.isdecimal, os.listdir(_PROC) if _PROC.exists() else ()):
        with suppress(OSError):
            where = os.readlink(f"{_PROC}/{name}/cwd").removesuffix(" (deleted)")
            if os.path.join(where, "").startswith(wanted) and _account(name) == os.stat(f"{_PROC}/{name}/cwd").st_uid:
                yield int(name)


def _account(pid: str) -> int | None:
    """Returns the effective user ID of a process. The owner of its files in /proc is not used, since that can be root
    for a process of another account."""
    match = _UIDS.search((_PROC / pid / "status").read_bytes())
    return None if match is None else int(match[1])
