"""A machine that pgtrial reaches by ssh: any host with an sshd and a POSIX shell.

A command that changes something on the host is carried out exactly once, even if the connection is lost while it runs.
Such a command is a *job*: a directory on the host with the command's script, its output and, when it has ended, its
exit status. pgtrial sends a script that makes this directory and then runs the command. If the connection was lost,
pgtrial sends the same script again: it finds the directory, and waits for the job instead of running the command a
second time.
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
    """Wraps a method that changes nothing on its machine, so that pgtrial sends its scripts again after a lost
    connection."""

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
    """A host that pgtrial reaches by ssh. With `sudo`, actions that need the rights of root are carried out by `sudo
    -n`.

    Scripts that change nothing are sent again after a lost connection. After `begin_jobs` has made the directory
    `jobs`, all other scripts run as jobs, so that each is carried out exactly once.
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
        """The name of the host's operating system, as `uname -s` prints it. Raises HostLost if no POSIX shell
        answers."""
        return posix_system(self.connection)

    @cached_property
    def seen(self) -> tuple[str, str]:
        """The two addresses of this ssh connection as the host sees them: that of the machine on which the lab runs,
        and the host's own. Both are empty if the host does not report them."""
        words = self._asked("echo $SSH_CONNECTION\n").stdout.split()
        return (words[0].partition("%")[0], words[2].partition("%")[0]) if len(words) == 4 else ("", "")

    def check(self) -> None:
        """Connects to the host, and checks that it has a POSIX shell, and that sudo works if the study asks for sudo.
        Raises HostTrouble."""
        _ = self.system
        if self._sudo and self._login[0] == "0":
            self._sudo = False  # root needs no sudo, and may have none
        if self._sudo:
            self._check_sudo()

    def begin_jobs(self, directory: Path) -> None:
        """Makes the directory for jobs. From now on each command that changes something is carried out exactly once.
        Raises HostTrouble."""
        home = shlex.quote(str(directory))
        # the script may run twice after a lost connection, so the directory may exist already
        done = self._asked(f"mkdir -m 700 {home} || {{ [ -d {home} ] && [ -O {home} ] && [ ! -L {home} ]; }}\n")
        if done.status != 0:
            raise HostError(f"{self.label}: {' '.join(done.stderr.split())}")
        self.connection.note_start()
        self.jobs, self._finished = directory, []

    def rejoin(self) -> str | None:
        """Checks that the host can be reached for the next trial, even if it was lost before. Returns a phrase on an
        event in the meantime, such as `was restarted`, or None if nothing has happened to the host. Raises HostLost if
        the host cannot be reached; it then counts as lost."""
        was_lost = self.connection.lost is not None
        if self.connection.rejoin():
            return "was restarted"
        return "was out of reach" if was_lost else None

    def end_jobs(self, directory: Path) -> None:
        """Ends the jobs that still run on the host, and removes the directory of all jobs. Raises HostTrouble."""
        self.jobs = None
        try:
            (entry,) = self.entries([directory])
        except FileNotFoundError:
            return
        if entry.kind != "d" or entry.owner not in self.trusted:
            return  # the host was restarted, and somebody else has a directory of that name
        self._as(
            None, filled(_END_JOBS, processes=PROCESSES, jobs=shlex.quote(str(directory)))
        )  # only root can end jobs that sudo has started

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        """Runs a script in a shell of the login. A script that may change something is carried out exactly once, as a
        job."""
        if self.jobs is None or self.thread.looks:
            return self._asked(script, timeout_s)
        finished, self._finished = self._finished, []
        for _ in range(2):
            home = self.jobs / str(next(self._numbers))
            done = self._asked(job(script, home, finished), timeout_s)
            # a shell of the lost connection may still start the same job: the directory must stay, so that it finds the
            # job's status
            asked_twice = self.thread.dropped
            there = done.status != LOST or self._asked(
                f"[ -f {home}/status ] && echo ended; [ -d {self.jobs} ] || echo gone; [ -d {home} ]\n"
            )
            if there is True or "ended" in there.stdout:
                if not asked_twice:
                    self._finished.append(home)
                return done
            if "gone" in there.stdout:
                lost = HostLost(
                    f"{self.label} was restarted, or somebody has removed {self.jobs} there, so the commands that ran "
                    "there are lost"
                )
                self.connection.lost = lost
                raise lost
            if there.status == 0:
                break  # the job was begun, but its status is missing
        raise HostError(
            f"a command on {self.label} has left no exit status: {self.jobs} cannot be written to, or the disk there "
            "is full"
        )

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        """Returns the content of a file from byte `begin` on; no bytes if the file cannot be read. Raises
        HostTrouble."""
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
        """Runs a script, and returns its exit status, standard output and standard error. If the connection is lost,
        sends the script again on a new connection, until the patience of the connection is used up. Raises
        HostTrouble."""
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
"""The exit status with which the script of a job (a command that runs on the host exactly once) says that it cannot
find out how the job ended."""

_POLL_S = 0.1
_POLLS_WITHOUT_PROCESS = 100
"""The number of checks after which pgtrial no longer expects a job's process to appear. A job has a directory and no
process if the connection was lost just between the two steps."""

_JOB = resource("job.sh", __package__)
_END_JOBS = resource("end_jobs.sh", __package__)
"""The script that ends the jobs below a directory and removes that directory. It stops each process (SIGSTOP) before it
kills the children: otherwise a shell would go on with its next command when a child is killed."""


def job(script: str, home: Path, done_with: Sequence[Path] = ()) -> str:
    """Returns the shell script that runs `script` as a job in the directory `home`. If this directory exists already,
    the shell script waits for the end of the job instead.

    The shell script prints what the job printed and exits with the job's status, or with LOST. It also removes the
    directories of finished jobs in `done_with`.
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
"""The time limit for a command that changes nothing, in seconds. The first PowerShell after a start of Windows can take
tens of seconds."""

_POSIX_ON_WINDOWS = ("CYGWIN", "MINGW", "MSYS", "UWIN")
"""The beginnings of the system names that uname prints in the shells of Git and Cygwin on Windows. These do not count
as POSIX systems, since they show other processes and files than Windows itself."""


def posix_system(connection: Connection) -> str:
    """Returns the output of `uname -s` on the host. Raises HostLost if the host has no POSIX system.

    The command runs in the login's own shell with an empty input, since PowerShell as the login's shell would wait for
    more input.
    """
    system, words = uname(connection)
    if system is None:
        raise Unreachable(no_posix_shell(connection.login, words))
    return system


def uname(connection: Connection) -> tuple[str | None, str]:
    """Returns the name of the host's operating system, or None if it is not a POSIX system, and the last words that the
    host printed."""
    status, output, errors = asked(connection, "uname -s")
    lines = output.split()
    # start-up files may have printed something before
    system = lines[-1] if status == 0 and lines else ""
    known = system and not system.upper().startswith(_POSIX_ON_WINDOWS)
    return system if known else None, short(errors + output)


def asked(connection: Connection, command: str) -> tuple[int, str, str]:
    """Runs a command line that changes nothing, and returns its exit status, standard output and standard error. If the
    connection is lost, sends the command once more. Raises HostLost."""
    try:
        try:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
        except Dropped:
            status, output, errors = connection.execute(command, _LOOK_TIMEOUT_S)
    except TimeoutError:
        raise Unreachable(f"a command on {connection.login} did not end within {_LOOK_TIMEOUT_S:g} s") from None
    return status, output.decode("utf-8-sig", errors="replace"), errors.decode(errors="replace")


def short(words: str) -> str:
    """Returns the last 200 characters of what a host printed, since the output of start-up files may precede the
    relevant words."""
    return " ".join(words.split())[-200:]
