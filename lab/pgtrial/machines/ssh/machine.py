"""Another host as a machine that takes part: any with a POSIX shell behind an sshd.

What changes something there is carried out once, also when the connection drops while it runs. Such a command is a
*job*: a directory on the host with its script, its output and, when it has ended, its status. It is begun by whoever
makes the directory; a lab that asks again after a drop waits for the job instead of beginning anew.
"""

from __future__ import annotations

import functools
import itertools
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from pgtrial.machines.machine import Done, HostError, HostLost
from pgtrial.machines.posix import PosixMachine
from pgtrial.machines.server import PROCESSES
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.machines.ssh.complaints import Dropped, Unreachable, no_posix_shell
from pgtrial.machines.ssh.connection import Connection
from pgtrial.model.resources import filled, resource

_PAUSE_S = 0.1


class _Thread(threading.local):
    """What a thread that asks a machine is about."""

    looks = False
    """Whether its scripts change nothing."""
    dropped = False
    """Whether the connection dropped under its last script."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _looking(method: _Method) -> _Method:
    """The method of a machine, which changes nothing there: its scripts may be repeated."""

    @functools.wraps(method)
    def looking(machine: RemoteMachine, *arguments: Any, **named: Any) -> Any:
        thread, before = machine.thread, machine.thread.looks
        thread.looks = True
        try:
            return method(machine, *arguments, **named)
        finally:
            thread.looks = before

    return cast(_Method, looking)


class RemoteMachine(PosixMachine):
    """A host reached by ssh. With `sudo` what root does there is done by `sudo -n`.

    What only looks is repeated after a drop of the connection. Everything else is carried out once, from the moment
    that there is a directory for `jobs`.
    """

    def __init__(self, address: str, *, sudo: bool = False, patience_s: float = PATIENCE_S) -> None:
        super().__init__(sudo=sudo)
        self.connection = Connection(address, patience_s)
        self.label = address
        self.jobs: Path | None = None
        self._numbers = itertools.count(1)
        self._finished: list[Path] = []
        self.thread = _Thread()

    @cached_property
    def system(self) -> str:
        """What `uname -s` says. Raises HostLost where no POSIX shell answers."""
        return posix_system(self.connection)

    @cached_property
    def seen(self) -> tuple[str, str]:
        """The addresses of this connection as the host sees them: the lab's, and its own. Empty where it is silent."""
        words = self._asked("echo $SSH_CONNECTION\n").stdout.split()
        return (words[0].partition("%")[0], words[2].partition("%")[0]) if len(words) == 4 else ("", "")

    def check(self) -> None:
        """Connect, and see whether there is a shell, and a sudo if it is to be used. Raises HostTrouble."""
        _ = self.system
        if self._sudo and self._login[0] == "0":
            self._sudo = False  # root needs none, and may have none
        if self._sudo:
            self._check_sudo()

    def begin_jobs(self, directory: Path) -> None:
        """Make the directory for jobs; from now on what changes something is carried out once. Raises HostTrouble."""
        home = shlex.quote(str(directory))
        # asked again after a drop, it may be there already
        done = self._asked(f"mkdir -m 700 {home} || {{ [ -d {home} ] && [ -O {home} ] && [ ! -L {home} ]; }}\n")
        if done.status != 0:
            raise HostError(f"{self.label}: {' '.join(done.stderr.split())}")
        self.connection.note_start()
        self.jobs, self._finished = directory, []

    def rejoin(self) -> str | None:
        """Look whether the host is there for the next trial, one that was lost included; what happened to it, if any.

        Raises HostLost: then it is lost.
        """
        was_lost = self.connection.lost is not None
        if self.connection.rejoin():
            return "was started anew"
        return "was out of reach" if was_lost else None

    def end_jobs(self, directory: Path) -> None:
        """End what still runs of them, and remove the directory. Raises HostTrouble."""
        self.jobs = None
        try:
            (entry,) = self.entries([directory])
        except FileNotFoundError:
            return
        if entry.kind != "d" or entry.owner not in self.trusted:
            return  # the host was started anew, and somebody else has a directory of that name
        self._as(
            None, filled(_END_JOBS, processes=PROCESSES, jobs=shlex.quote(str(directory)))
        )  # what sudo began, only root may end

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        """Have the login's shell run a script, once."""
        if self.jobs is None or self.thread.looks:
            return self._asked(script, timeout_s)
        finished, self._finished = self._finished, []
        for _ in range(2):
            home = self.jobs / str(next(self._numbers))
            done = self._asked(job(script, home, finished), timeout_s)
            # a shell of a connection that dropped may come to it yet, and has to find that it was carried out
            asked_twice = self.thread.dropped
            there = done.status != LOST or self._asked(
                f"[ -f {home}/status ] && echo ended; [ -d {self.jobs} ] || echo gone; [ -d {home} ]\n"
            )
            if there is True or "ended" in there.stdout:
                if not asked_twice:
                    self._finished.append(home)
                return done
            if "gone" in there.stdout:
                lost = HostLost(f"{self.label} was started anew, or somebody cleaned up there: {self.jobs} is gone")
                self.connection.lost = lost
                raise lost
            if there.status == 0:
                break  # begun, and nobody knows how it ended
        raise HostError(f"{self.label} lost a command: {self.jobs} cannot be written to, or the disk there is full")

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        """What a file holds from a byte on; nothing if it cannot be read. Raises HostTrouble."""
        at = shlex.quote(str(path))
        script = self.script_of(user, f"[ -f {at} ] && exec tail -c +{begin + 1} {at} 2>/dev/null")
        return self._repeated(script, None)[1]

    looked = _looking(PosixMachine.looked)
    read_text = _looking(PosixMachine.read_text)
    read_many = _looking(PosixMachine.read_many)
    exists = _looking(PosixMachine.exists)
    glob = _looking(PosixMachine.glob)
    resolve = _looking(PosixMachine.resolve)
    free_bytes = _looking(PosixMachine.free_bytes)
    entries = _looking(PosixMachine.entries)

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def _asked(self, script: str, timeout_s: float | None = None) -> Done:
        status, output, errors = self._repeated(script, timeout_s)
        return Done(status, output.decode(errors="replace"), errors.decode(errors="replace"))

    def _repeated(self, script: str, timeout_s: float | None) -> tuple[int, bytes, bytes]:
        """Status and output; on new connections for as long as they drop and patience lasts. Raises HostTrouble."""
        text = script.encode()
        self.thread.dropped = False
        dropped_since: float | None = None
        while True:
            try:
                return self.connection.run(text, timeout_s)
            except Dropped as dropped:
                self.thread.dropped = True
                dropped_since = dropped_since or time.monotonic()
                if time.monotonic() > dropped_since + self.connection.patience_s:
                    self.connection.lost = dropped
                    raise
            except TimeoutError:
                raise HostError(f"a command on {self.label} did not end within {timeout_s:g} s") from None
            time.sleep(_PAUSE_S)


LOST = 255
"""Status of a job of which the end is not known."""

_POLL_S = 0.1
_POLLS_WITHOUT_PROCESS = 100
"""After these a job that has no process yet will not get one: the connection dropped just then."""

_JOB = resource("job.sh", __package__)
_END_JOBS = resource("end_jobs.sh", __package__)
"""Ends the jobs below a directory that still run, and removes it. What runs is stopped before its children are looked
for: it would go on with its next command when one is killed."""


def job(script: str, home: Path, done_with: Sequence[Path] = ()) -> str:
    """The script that carries another one out once with `home` as its directory, or waits for its end.

    It prints what that one printed and ends with its status, or with LOST. Jobs that are `done_with` are removed.
    """
    return filled(
        _JOB,
        processes=PROCESSES,
        remove=f"rm -rf {shlex.join(str(path) for path in done_with)}" if done_with else ":",
        home=shlex.quote(str(home)),
        end=f"end-{secrets.token_hex(8)}",
        lost=LOST,
        poll=_POLL_S,
        patience=_POLLS_WITHOUT_PROCESS,
        script=script.removesuffix("\n"),
    )


_LOOK_TIMEOUT_S = 60.0
"""Enough for the first PowerShell after a start of Windows, too."""

_POSIX_ON_WINDOWS = ("CYGWIN", "MINGW", "MSYS", "UWIN")
"""How uname names what Git and Cygwin bring: a shell whose processes and files are not those of Windows."""


def posix_system(connection: Connection) -> str:
    """What `uname -s` says. Raises HostLost where no POSIX system answers.

    The login's own shell is asked, and its input is at an end: PowerShell would wait for more.
    """
    system, words = uname(connection)
    if system is None:
        raise Unreachable(no_posix_shell(connection.login, words))
    return system


def uname(connection: Connection) -> tuple[str | None, str]:
    """The system, or None, and what was said."""
    status, output, errors = asked(connection, "uname -s")
    lines = output.split()
    # start-up files may have had their say before
    system = lines[-1] if status == 0 and lines else ""
    known = system and not system.upper().startswith(_POSIX_ON_WINDOWS)
    return system if known else None, short(errors + output)


def asked(connection: Connection, command: str) -> tuple[int, str, str]:
    """Status, output and errors of a command line that only looks, once more after a drop. Raises HostLost."""
    try:
        try:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
        except Dropped:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"a command on {connection.login} did not end within {_LOOK_TIMEOUT_S:g} s") from None
    return status, output.decode("utf-8-sig", errors="replace"), errors.decode(errors="replace")


def short(words: str) -> str:
    """The end: start-up files may have had their say before."""
    return " ".join(words.split())[-200:]
