"""Starts and stops the process of a server. On this machine it is a child process of the lab. On another host pg_ctl
starts it, and the start is recorded in the journal of undo there.

Servers that a killed lab has left are found by their data directories, never by the name of the process alone, and
ended.
"""

from __future__ import annotations

import abc
import re
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
import psycopg

from pgtrial.loads.target import Session, Target, has_data_in
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import LOCAL, HostError, read_of_others, wait_or_kill
from pgtrial.machines.server import RunningServer, working_below
from pgtrial.model.errors import ArmError, StartError
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.run_directory import RunDirectory, is_full

SUPERUSER = "postgres"
DATABASE = "postgres"
OWNER = "pgtrial"
"""The name of the role, without superuser, that owns the database, restores data into it and runs the load."""
_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 120.0
_HEIR_TIMEOUT_S = 60.0
_POLL_S = 0.02
_NOISE = re.compile(
    r"starting PostgreSQL|listening on|database system (is|was) shut|configuration file .* contains errors"
)
_SPOKEN = re.compile(r"\b(?:LOG|FATAL|PANIC|ERROR|HINT|DETAIL|WARNING):\s+(.*)")


@dataclass
class Postmaster(abc.ABC):
    """The process of a server on a configured data directory, for one start and stop. `launcher` has the words in front
    of the server's command."""

    run_directory: RunDirectory
    server: ServerBinaries
    data: Path
    sockets: Path
    port: int
    launcher: tuple[str, ...]

    @abc.abstractmethod
    def start(self, log: Path) -> None:
        """Starts the server, and waits until it answers queries on its private socket. Raises StartError with the
        server's own message."""

    @abc.abstractmethod
    def stop(self, *, immediate: bool) -> None:
        """Stops the server in the mode fast or immediate. Does nothing if it was not started."""

    @abc.abstractmethod
    def execute(self, statement: str) -> None:
        """Executes a statement as the superuser, through the server's private socket."""

    @abc.abstractmethod
    def fetch_log(self, log: Path) -> None:
        """Appends to the file `log` on this machine what the server has logged since the last call. Does nothing if the
        server writes to this file itself."""

    def _not_started(self, words: str, why: str = "does not start") -> ArmError:
        """Returns the error for a server that has not started: a StartError, or an ArmError if the disk is full, which
        is no fault of the server's settings and would make a second attempt fail too."""
        kind = ArmError if is_full(words) else StartError
        return kind(f"{self.run_directory.name_of(self.server)} {why}: {words}")


class Child(Postmaster):
    """A server on this machine, which is a child process of the lab."""

    _process: subprocess.Popen[bytes] | None = None

    def start(self, log: Path) -> None:
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output, held_off():
            self._process = self._spawn(output)
        deadline = time.monotonic() + _START_TIMEOUT_S
        listening = self.sockets / f".s.PGSQL.{self.port}"
        while not (listening.exists() and self._answers()):
            if self._process.poll() is not None:
                raise self._not_started(last_words(log, begin))
            if time.monotonic() > deadline:
                raise self._not_started(last_words(log, begin), f"was not ready after {_START_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)

    def stop(self, *, immediate: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        wait_or_kill(process, _STOP_TIMEOUT_S)
        # backends can outlive a postmaster that was killed, and would write to the data directory while it is being
        # removed
        stop_servers_below(self.data)
        if process.returncode < 0 and (self.data / "postmaster.pid").exists():
            self._release_shared_memory()

    def execute(self, statement: str) -> None:
        with self._connect() as connection:
            connection.execute(statement.encode())

    def fetch_log(self, log: Path) -> None:
        """Does nothing, since the server writes its log to this file itself."""

    def _connect(self) -> Session:
        return Target(str(self.sockets), self.port, SUPERUSER, DATABASE, extra={"sslmode": "disable"}).connect()

    def _answers(self) -> bool:
        """True if the server that answers on the socket is the server that was started, and not another server that
        uses the same socket."""
        with suppress(psycopg.OperationalError), self._connect() as connection:
            return has_data_in(connection, self.data)
        return False  # the server is starting up, or recovering

    def _spawn(self, output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        postgres = (self.server.bin / "postgres", "-D", self.data)
        return LOCAL.begin([*self.launcher, *map(str, postgres)], output, user=self.run_directory.account)

    def _release_shared_memory(self) -> None:
        """Frees the System V shared memory that a killed postmaster has left. Starts a server on the same data
        directory for a moment, since the first thing that a postmaster does is to free such memory of its
        predecessor."""
        heir = self._spawn(subprocess.DEVNULL)
        deadline = time.monotonic() + _HEIR_TIMEOUT_S
        while heir.poll() is None and time.monotonic() < deadline and not self._has_shared_memory(heir.pid):
            time.sleep(_POLL_S)
        heir.send_signal(signal.SIGQUIT)
        wait_or_kill(heir, _HEIR_TIMEOUT_S)

    def _has_shared_memory(self, pid: int) -> bool:
        """True if postmaster.pid has the number of this process and the status line, which PostgreSQL writes after the
        line on shared memory. The process has freed its predecessor's shared memory by then."""
        with suppress(OSError):
            lines = read_of_others(self.data / "postmaster.pid").splitlines()
            return len(lines) > 7 and lines[0] == str(pid)
        return False


@dataclass
class Hosted(Postmaster):
    """A server on another host. Its start is recorded in the journal of undo in the run directory there."""

    def __post_init__(self) -> None:
        self._running: tuple[RunningServer, Path] | None = None
        self._log = self.run_directory.private_directory(self.run_directory.directory("log")) / "server.log"
        self._fetched = 0

    def start(self, log: Path) -> None:
        self.run_directory.write(self._log, "")
        self._fetched = 0
        running = RunningServer(
            bin=self.server.bin, data=self.data, log=self._log, user=self.run_directory.account, runner=self.launcher
        )
        try:
            self._running = running, self.run_directory.changes.make(running)
        except HostError as error:
            self.fetch_log(log)
            raise self._not_started(last_words(log) if log.stat().st_size else str(error)) from None

    def stop(self, *, immediate: bool) -> None:
        running, self._running = self._running, None
        if running is not None:
            server, entry = running
            server.stop(self.run_directory.machine, immediate=immediate)
            self.run_directory.changes.undo(entry)

    def execute(self, statement: str) -> None:
        way = ("-h", self.sockets, "-p", str(self.port), "-U", SUPERUSER, "-d", DATABASE)
        self.run_directory.shell(
            'exec "$@"', self.server.bin / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *way, text_in=f"{statement};\n"
        )

    def fetch_log(self, log: Path) -> None:
        content = self.run_directory.machine.read_from(self._log, self._fetched, self.run_directory.account)
        self._fetched += len(content)
        with log.open("ab") as file:
            file.write(content)


def last_words(log: Path, begin: int = 0) -> str:
    """Returns the last messages in the server's log, from byte `begin` of the file on, as one line. Messages of a
    normal start are left out."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - 65536))
        lines = file.read().decode(errors="replace").splitlines()
    spoken = [match[1].strip() if (match := _SPOKEN.search(line)) else line.strip() for line in lines]
    telling = [words for words in spoken if words and not _NOISE.search(words)]
    return "; ".join(words.removesuffix(".") for words in telling[-5:]) or "it said nothing"


_PATIENCE_S = 15.0
_NAMES = ("postgres", "postmaster", "pgtrial-engine")
_OF_VALGRIND = "callgrind-"
"""The beginning of the names of a server's processes if the server runs under valgrind's tool callgrind."""


def stop_servers_below(directory: Path) -> int:
    """Stops every server whose data directory lies below `directory`. Returns the number of the servers' processes.

    Suspended processes are resumed first, since a postmaster would wait for them. Then each postmaster gets SIGQUIT
    (immediate shutdown), so that it frees its shared memory. Processes that still run after that are killed.
    """
    processes = server_processes(directory)
    if not processes:
        return 0
    for process in processes:
        _signal(process, signal.SIGCONT)
        if _is_postmaster(process):
            _signal(process, signal.SIGQUIT)
    psutil.wait_procs(processes, timeout=_PATIENCE_S if any(map(_is_postmaster, processes)) else 0)
    remaining = server_processes(directory)
    for process in remaining:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(remaining, timeout=_PATIENCE_S)
    return len(processes)


def server_processes(directory: Path) -> list[psutil.Process]:
    """Returns the processes of servers whose working directory is `directory` or lies below it: PostgreSQL's,
    also if valgrind runs them, and those of the null server, which answers without doing anything and serves to measure
    the engine. The working directory of a PostgreSQL process is the data directory."""
    processes = []
    for pid in working_below(directory):
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.name() in _NAMES or process.name().startswith(_OF_VALGRIND):
                processes.append(process)
    return processes


def _is_postmaster(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        recorded = read_of_others(Path(process.cwd()) / "postmaster.pid").split("\n", 1)[0]
        return recorded.strip() == str(process.pid)
    return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
