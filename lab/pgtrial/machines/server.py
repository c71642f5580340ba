"""A PostgreSQL server as a change of a machine: run by pg_ctl, or with its background processes stopped for a while.

They are stopped by SIGSTOP. A control group would freeze the sessions as well, or each new process would have to be
moved into it. A process in a frozen group of version 1 cannot even be killed, and a group outlives the lab.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgtrial.machines.machine import LOCAL, Change, HostError, Machine, lies_in, read_of_others
from pgtrial.machines.volumes import is_private
from pgtrial.model.resources import resource

TIMEOUT_S = 120
"""Of a start and of a stop."""

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
        return _is_data(self.data, run)

    def _pg_ctl(self, action: str, *options: str | Path) -> list[str | Path]:
        return [self.bin / "pg_ctl", "-D", self.data, "-s", "-w", "-t", str(TIMEOUT_S), *options, action]

    def __str__(self) -> str:
        return f"PostgreSQL server in {self.data}"


_ROOM_NUMBER = re.compile(r"\d{3,}-")
"""In front of the names of directories of rooms."""


def _is_data(data: Path, run: Path) -> bool:
    named = _ROOM_NUMBER.match(data.name) is not None or is_private(data.parent)
    return lies_in(data, run) or (data.is_absolute() and ".." not in data.parts and named)


_PROC = Path("/proc")
_UIDS = re.compile(rb"^Uid:\s+\d+\s+(\d+)", re.MULTILINE)
_TITLE = b"postgres: "
_SESSION = re.compile(rb"(?:\[local\]|\(\d+\)) *(.*)")
_NEEDED = re.compile(rb"walsender|parallel worker|io worker|stats collector|logger")
"""Processes that work for sessions or standbys, or that take what all others write."""


@dataclass(frozen=True)
class Processes:
    """The processes of a running server that has this postmaster."""

    postmaster: int
    began: bytes | None
    """When the postmaster began; None where that is not known."""

    def freeze(self) -> bool:
        """Stop the background processes: checkpointer, background writer, WAL writer, autovacuum, extensions'.

        Returns False and stops none while a session executes a statement or is in a transaction: it may wait for what
        a stopped process holds. Processes that are new since the last call are stopped by the next one.
        """
        background = []
        for pid in reversed(self._children()):  # sessions first: one that is busy settles it
            title = _title(pid)
            if not title.startswith(_TITLE) or _NEEDED.search(title):
                continue  # a process that has just begun shows the postmaster's command
            session = _SESSION.search(title)
            if session is None:
                background.append(pid)
            elif session[1] not in (b"", b"idle"):
                return False
        for pid in background:
            _signal(pid, signal.SIGSTOP)
        return True

    def thaw(self) -> None:
        """Let all processes go on."""
        for pid in self._children():
            _signal(pid, signal.SIGCONT)

    @property
    def listed(self) -> Path:
        """The file in which the kernel lists the children of the postmaster."""
        return _PROC / f"{self.postmaster}/task/{self.postmaster}/children"

    def _children(self) -> list[int]:
        with suppress(OSError):
            children = [*map(int, self.listed.read_bytes().split())]
            if _began(self.postmaster) == self.began:
                return children
        return []  # it has ended, and its number may be another process's


class FrozenServer(Change):
    """The server of a data directory on this machine: while the change is in force its processes may be stopped."""

    data: Path

    def make(self, machine: Machine) -> None:
        """Find out whether they may be; nothing is stopped yet. Raises HostError."""
        if machine is not LOCAL:
            raise HostError(f"processes on {machine.label} cannot be stopped and continued in time")
        if not self.processes().listed.exists():
            raise HostError("this kernel does not list the children of a process (CONFIG_PROC_CHILDREN)")

    def is_of(self, run: Path) -> bool:
        """A server whose data is in a room, or on a volume in a directory of the study's."""
        return _is_data(self.data, run)

    def processes(self) -> Processes:
        """The processes of the server, as long as it runs. Raises HostError if it does not run here."""
        try:
            postmaster = int(read_of_others(self.data / "postmaster.pid").split("\n", 1)[0])
        except (OSError, ValueError):
            postmaster = 0
        if postmaster not in working_below(self.data):
            raise HostError(f"no server whose processes we may stop runs in {self.data}")
        return Processes(postmaster, _began(postmaster))

    def undo(self, machine: Machine) -> None:
        """Let every process that works in the data directory go on, also where the postmaster is gone."""
        for pid in working_below(self.data):
            _signal(pid, signal.SIGCONT)  # one that is another by now goes on as it does

    def __str__(self) -> str:
        return f"frozen PostgreSQL server in {self.data}"


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
    found = _UIDS.search((_PROC / pid / "status").read_bytes())
    return None if found is None else int(found[1])


def _began(pid: int) -> bytes | None:
    """When a process began, in ticks since the machine was booted; None of one that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
    return None


def _title(pid: int) -> bytes:
    """What the process shows in a list of processes; empty of one that has ended."""
    with suppress(OSError):
        # many are read in each slice: a file object would take twice as long
        descriptor = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY)
        try:
            return os.read(descriptor, 4096).rstrip(b"\0 ")
        finally:
            os.close(descriptor)
    return b""


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
