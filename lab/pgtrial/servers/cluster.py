"""One embedded PostgreSQL cluster: made by initdb, started on a private socket, stopped without fail."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

from pgtrial.loads.target import Target
from pgtrial.machines.cpus import running_on
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import Done
from pgtrial.model.errors import ArmError
from pgtrial.servers.account import Account
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.lab_settings import CONFIGURATION, write_configuration
from pgtrial.servers.processes import LOOPBACK, reserved_port, stop_servers_below

SUPERUSER = "postgres"
DATABASE = "postgres"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 120.0

INITDB = ("--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
"""C is the one locale that every host has, the same on all; the study's own initdb options come later and win."""

_HBA = (
    "# written by pgtrial: the private socket directory is the lock\nlocal all all trust\nlocal replication all trust\n"
)
_HBA_TCP = f"{_HBA}host all all {LOOPBACK}/32 scram-sha-256\n"
_HEIR_TIMEOUT_S = 60.0
_POLL_S = 0.02
_NOISE = re.compile(
    r"starting PostgreSQL|listening on|database system (is|was) shut|configuration file .* contains errors"
)
_SPOKEN = re.compile(r"\b(?:LOG|FATAL|PANIC|ERROR|HINT|DETAIL|WARNING):\s+(.*)")


@dataclass
class Cluster:
    """A data directory with the server that serves it. `settings` come after the lab's own."""

    server: ServerBinaries
    account: Account
    data_directory: Path
    socket_directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    cpus: str | None = None
    """The CPUs that the server may run on; None: all."""
    environment: Mapping[str, str] = field(default_factory=dict)
    tcp: bool = False
    """Whether clients reach it by the loopback address, with a password that is new at each start."""
    _password: str | None = field(default=None, init=False, repr=False)
    _free_port: int = field(default=5432, init=False, repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    @property
    def port(self) -> int:
        """The port in the socket's name."""
        return int(self.settings.get("port", self._free_port))

    @property
    def target(self) -> Target:
        """Where its superuser connects."""
        if self._password is None:
            return self._private_target
        return Target(LOOPBACK, self.port, SUPERUSER, DATABASE, self._password, {"sslmode": "disable"})

    @property
    def _private_target(self) -> Target:
        """By the private socket, where no password is asked."""
        return Target(str(self.socket_directory), self.port, SUPERUSER, DATABASE, extra={"sslmode": "disable"})

    def start(self, log: Path, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the server, its log appended to `log`, and wait until it accepts connections.

        Raises ArmError with the server's own words when it ends or is not ready in time; no server is left then.
        """
        with self._port_reserved():
            path = write_configuration(self.data_directory, self._listening(), self.socket_directory)
            self.account.own(path)
            begin = log.stat().st_size if log.exists() else 0
            with log.open("ab") as output:
                try:
                    with held_off():
                        self._process = self._spawn(output)
                except OSError as error:
                    raise ArmError(
                        f"PostgreSQL {self.server.version} in {self.server.bin} cannot be started: {error.strerror}; "
                        f"check that the user {self.account.name} may run it"
                    ) from None
            try:
                self._wait_until_ready(log, begin, timeout_s)
                if self.tcp:
                    self._set_password()
            except BaseException:
                self.stop(immediate=True)
                raise

    def stop(self, *, immediate: bool = False) -> None:
        """End the server: fast (its data stays clean), or immediate (its data is thrown away next). Never hangs."""
        process, self._process = self._process, None
        self._password = None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # backends may outlive a postmaster that was killed, and would write into the directory while it is removed
        stop_servers_below(self.data_directory)
        if process.returncode < 0 and (self.data_directory / "postmaster.pid").exists():
            self._release_shared_memory()

    @contextmanager
    def running(self, log: Path, *, immediate: bool = False) -> Iterator[Target]:
        """The server between start and stop."""
        self.start(log)
        try:
            yield self.target
        finally:
            self.stop(immediate=immediate)

    def fetch_log(self, log: Path) -> None:
        """The server writes it there itself."""

    @contextmanager
    def _port_reserved(self) -> Iterator[None]:
        """With TCP a free port of the loopback address is ours meanwhile."""
        if not self.tcp:
            yield
            return
        with reserved_port() as self._free_port:
            yield

    def _listening(self) -> dict[str, str]:
        """The settings, and with TCP the port of the loopback address, which pg_hba.conf then opens."""
        if not self.tcp:
            return dict(self.settings)
        hba = self.data_directory / "pg_hba.conf"
        hba.write_text(_HBA_TCP)
        self.account.own(hba)
        return {**self.settings, "listen_addresses": LOOPBACK, "port": str(self.port)}

    def _set_password(self) -> None:
        """A new password; the server, and so its log, sees no more than what SCRAM stores of it."""
        password = secrets.token_urlsafe(24)
        with self._private_target.connect() as connection:
            stored = connection.pgconn.encrypt_password(password.encode(), SUPERUSER.encode(), b"scram-sha-256")
            query = sql.SQL("ALTER ROLE {} PASSWORD {}")
            connection.execute(query.format(sql.Identifier(SUPERUSER), sql.Literal(stored.decode())))
        self._password = password

    def _release_shared_memory(self) -> None:
        """Free what a killed postmaster could not: the next one on the same directory does so before all else."""
        heir = self._spawn(subprocess.DEVNULL)
        deadline = time.monotonic() + _HEIR_TIMEOUT_S
        while heir.poll() is None and time.monotonic() < deadline and not self._has_shared_memory(heir.pid):
            time.sleep(_POLL_S)
        heir.send_signal(signal.SIGQUIT)
        try:
            heir.wait(_HEIR_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            heir.kill()
            heir.wait()

    def _has_shared_memory(self, pid: int) -> bool:
        """Whether postmaster.pid is of that process and has the line that follows the one on shared memory."""
        try:
            lines = (self.data_directory / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid)

    def _spawn(self, output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        options = self.account.popen_options()
        options["env"] = {**options["env"], **self.environment}
        with running_on(self.cpus):
            return subprocess.Popen(
                [self.server.bin / "postgres", "-D", self.data_directory],
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C in the terminal is for the lab
                **options,
            )

    def huge_pages_needed(self) -> int:
        """How many huge pages of the size that is set the shared memory takes. Raises ArmError."""
        path = write_configuration(self.data_directory, self.settings, self.socket_directory)
        self.account.own(path)
        done = self.account.run([self.server.bin / "postgres", *asking_for_pages(self.data_directory)])
        return pages_of(Done(done.returncode, done.stdout, done.stderr), self.server.version)

    def _wait_until_ready(self, log: Path, begin: int, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        process = self._process
        listening = self.socket_directory / f".s.PGSQL.{self.port}"
        while process is not None:
            if process.poll() is not None:
                raise ArmError(f"PostgreSQL {self.server.version} does not start: {last_words(log, begin)}")
            if listening.exists() and self._answers():
                return
            if time.monotonic() > deadline:
                raise ArmError(
                    f"PostgreSQL {self.server.version} was not ready after {timeout_s:.0f} s: {last_words(log, begin)}"
                )
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        """Whether this very server takes queries: on a socket in use it is another that answers."""
        try:
            with self._private_target.connect() as connection:
                shown = connection.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError:
            return False  # starting up, or recovering
        return shown is not None and Path(shown[0]) == self.data_directory


def create_cluster(server: ServerBinaries, account: Account, data_directory: Path, options: Sequence[str] = ()) -> None:
    """Run initdb as the account in a new directory. Raises ArmError with initdb's own words."""
    data_directory.mkdir(mode=0o700)
    account.own(data_directory)
    try:
        done = account.run([server.bin / "initdb", "--pgdata", data_directory, *INITDB, *options])
    except OSError as error:
        raise ArmError(f"{server.bin / 'initdb'} cannot be run as the user {account.name}: {error.strerror}") from None
    check_initdb(Done(done.returncode, done.stdout, done.stderr), f"PostgreSQL {server.version}", options)
    (data_directory / "pg_hba.conf").write_text(_HBA)
    with (data_directory / "postgresql.conf").open("a") as file:
        file.write(f"\ninclude '{CONFIGURATION}'\n")


def check_initdb(done: Done, server: str, options: Sequence[str]) -> None:
    """Raise ArmError with initdb's own words if it failed."""
    if done.status != 0:
        spoken = [line for line in done.stderr.splitlines() if "error" in line.lower() or "option" in line.lower()]
        reason = (spoken or done.stderr.splitlines() or ["it said nothing"])[0].removeprefix("initdb: ")
        with_options = f" with the options {' '.join(options)}" if options else ""
        raise ArmError(f"initdb of {server}{with_options} failed: {reason}")


def asking_for_pages(data: Path) -> list[str | Path]:
    """The words after `postgres` by which it says how many huge pages it needs."""
    return ["-D", data, "-C", "shared_memory_size_in_huge_pages"]


def pages_of(done: Done, version: str) -> int:
    """The number that it said. Raises ArmError."""
    if done.status != 0 or not done.stdout.strip().isdecimal():
        said = " ".join((done.stderr or done.stdout).split()) or "it said nothing"
        raise ArmError(f"PostgreSQL {version} does not tell how many huge pages it needs: {said}")
    return int(done.stdout)


def last_words(log: Path, begin: int = 0) -> str:
    """What the server said last in its log from byte `begin` on, in one line."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - 65536))
        lines = file.read().decode(errors="replace").splitlines()
    said = [found[1].strip() if (found := _SPOKEN.search(line)) else line.strip() for line in lines]
    telling = [words for words in said if words and not _NOISE.search(words)]
    return "; ".join(words.removesuffix(".") for words in telling[-5:]) or "it said nothing"
