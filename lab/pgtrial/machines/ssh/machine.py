"""A host that is reached by ssh as a machine that takes part: any host with a POSIX shell behind an sshd.

A command that changes something there is carried out once, even if the connection is lost while it runs. Such a command
is a *job*: a directory on the host with its script, its output and, when it has ended, its status. The script that
makes the directory begins the job; a lab that asks again after a lost connection waits for the job instead of beginning
it a second time.
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
    """The state of a thread that sends scripts to a machine."""

    looks = False
    """True while the thread's scripts change nothing on the host."""
    dropped = False
    """True if the connection was lost while the thread's last script ran."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _looking(method: _Method) -> _Method:
    """Wraps a method that changes nothing on its machine, so that its scripts are repeated after a lost connection."""

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
    """A host reached by ssh. With `sudo`, what root does there is done by `sudo -n`.

    Scripts that change nothing are repeated after a lost connection. All others are carried out once, as soon as there
    is a directory for `jobs`.
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
        """The name of the host's system, as `uname -s` prints it. Raises HostLost if no POSIX shell answers."""
        return posix_system(self.connection)

    @cached_property
    def seen(self) -> tuple[str, str]:
        """The addresses of this connection as the host sees them: the lab's, and its own. Both are empty if the host
        does not tell them."""
        words = self._asked("echo $SSH_CONNECTION\n").stdout.split()
        return (words[0].partition("%")[0], words[2].partition("%")[0]) if len(words) == 4 else ("", "")

    def check(self) -> None:
        """Connects, and checks that there is a shell, and sudo if it is to be used. Raises HostTrouble."""
        _ = self.system
        if self._sudo and self._login[0] == "0":
            self._sudo = False  # root needs no sudo, and may have none
        if self._sudo:
            self._check_sudo()

    def begin_jobs(self, directory: Path) -> None:
        """Makes the directory for jobs. From now on a command that changes something is carried out once. Raises
        HostTrouble."""
        home = shlex.quote(str(directory))
        # the script may run twice after a lost connection, so the directory may exist already
        done = self._asked(f"mkdir -m 700 {home} || {{ [ -d {home} ] && [ -O {home} ] && [ ! -L {home} ]; }}\n")
        if done.status != 0:
            raise HostError(f"{self.label}: {' '.join(done.stderr.split())}")
        self.connection.note_start()
        self.jobs, self._finished = directory, []

    def rejoin(self) -> str | None:
        """Checks that the host can be reached for the next trial, even if it was lost before. Returns what happened to
        it, or None. Raises HostLost if it cannot be reached; the host then counts as lost."""
        was_lost = self.connection.lost is not None
        if self.connection.rejoin():
            return "was restarted"
        return "was out of reach" if was_lost else None

    def end_jobs(self, directory: Path) -> None:
        """Ends the jobs that still run, and removes their directory. Raises HostTrouble."""
        self.jobs = None
        try:
            (entry,) = self.entries([directory])
        except FileNotFoundError:
            return
        if entry.kind != "d" or entry.owner not in self.trusted:
            return  # the host was restarted, and somebody else has a directory of that name
        self._as(
            None, filled(_END_JOBS, processes=PROCESSES, jobs=shlex.quote(str(directory)))
        )  # what sudo began, only root may end

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        """Runs a script in the login's shell; if it may change something, exactly once."""
        if self.jobs is None or self.thread.looks:
            return self._asked(script, timeout_s)
        finished, self._finished = self._finished, []
        for _ in range(2):
            home = self.jobs / str(next(self._numbers))
            done = self._asked(job(script, home, finished), timeout_s)
            # a shell of a lost connection may still reach the job, and has to find that it was carried out
            asked_twice = self.thread.dropped
            there = done.status != LOST or self._asked(
                f"[ -f {home}/status ] && echo ended; [ -d {self.jobs} ] || echo gone; [ -d {home} ]\n"
            )
            if there is True or "ended" in there.stdout:
                if not asked_twice:
                    self._finished.append(home)
                return done
            if "gone" in there.stdout:
                lost = HostLost(f"{self.label} was restarted, or somebody cleaned up there: {self.jobs} is gone")
                self.connection.lost = lost
                raise lost
            if there.status == 0:
                break  # the job was begun, and nobody knows how it ended
        raise HostError(f"{self.label} lost a command: {self.jobs} cannot be written to, or the disk there is full")

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        """Returns the content of a file from byte `begin` on; empty if it cannot be read. Raises HostTrouble."""
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
        """Ends the connection to the host."""
        self.connection.close()

    def _asked(self, script: str, timeout_s: float | None = None) -> Done:
        status, output, errors = self._repeated(script, timeout_s)
        return Done(status, output.decode(errors="replace"), errors.decode(errors="replace"))

    def _repeated(self, script: str, timeout_s: float | None) -> tuple[int, bytes, bytes]:
        """Returns the status, output and errors of a script. After a lost connection it is sent again on a new one, for
        as long as the patience lasts. Raises HostTrouble."""
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
"""The status of a job whose end is not known."""

_POLL_S = 0.1
_POLLS_WITHOUT_PROCESS = 100
"""The number of checks after which a job that has no process yet will not get one: the connection was lost just
then."""

_JOB = resource("job.sh", __package__)
_END_JOBS = resource("end_jobs.sh", __package__)
"""The script that ends the jobs below a directory and removes that directory. A process is stopped before its children
are looked for: it would go on with its next command when a child is killed."""


def job(script: str, home: Path, done_with: Sequence[Path] = ()) -> str:
    """Returns the script that carries out another script once with `home` as its directory, or waits for its end.

    It prints what the other script printed and ends with that script's status, or with LOST. The directories of the
    jobs in `done_with` are removed.
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
"""The limit of a command that changes nothing, in seconds: enough for the first PowerShell after a start of Windows."""

_POSIX_ON_WINDOWS = ("CYGWIN", "MINGW", "MSYS", "UWIN")
"""The beginnings of the names by which uname knows the shells of Git and Cygwin, whose processes and files are not
those of Windows."""


def posix_system(connection: Connection) -> str:
    """Returns what `uname -s` prints. Raises HostLost if no POSIX system answers.

    The login's own shell is asked, and its input is at an end, since PowerShell would wait for more.
    """
    system, words = uname(connection)
    if system is None:
        raise Unreachable(no_posix_shell(connection.login, words))
    return system


def uname(connection: Connection) -> tuple[str | None, str]:
    """Returns the system's name, or None if it is no POSIX system, and the end of what the host said."""
    status, output, errors = asked(connection, "uname -s")
    lines = output.split()
    # start-up files may have printed something before
    system = lines[-1] if status == 0 and lines else ""
    known = system and not system.upper().startswith(_POSIX_ON_WINDOWS)
    return system if known else None, short(errors + output)


def asked(connection: Connection, command: str) -> tuple[int, str, str]:
    """Returns the status, output and errors of a command line that changes nothing. It is sent once more after a lost
    connection. Raises HostLost."""
    try:
        try:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
        except Dropped:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"a command on {connection.login} did not end within {_LOOK_TIMEOUT_S:g} s") from None
    return status, output.decode("utf-8-sig", errors="replace"), errors.decode(errors="replace")


def short(words: str) -> str:
    """Returns the last 200 characters of what a host said: start-up files may have printed something before."""
    return " ".join(words.split())[-200:]
