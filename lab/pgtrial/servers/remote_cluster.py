"""One PostgreSQL cluster on another host: made by initdb, started by pg_ctl, reached over the network."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import shlex
import socket
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostError
from pgtrial.machines.running_server import RunningServer
from pgtrial.model.errors import ArmError
from pgtrial.servers.cluster import DATABASE, INITDB, SUPERUSER, asking_for_pages, check_initdb, last_words, pages_of
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.lab_settings import CONFIGURATION, configuration
from pgtrial.servers.rooms import Room

_HBA = "# written by pgtrial: the private socket directory is the lock\nlocal all all trust\n"


@dataclass(frozen=True)
class Way:
    """How clients reach a server: the address that they use, the one that the server listens on, and who they are."""

    address: str
    port: int
    listen: str
    clients: tuple[str, ...]
    """Addresses as the server sees them."""

    @property
    def hba(self) -> str:
        """pg_hba.conf: the private socket, and these clients with a password."""
        networks = [ipaddress.ip_network(client) for client in self.clients]
        return _HBA + "".join(f"host all all {network} scram-sha-256\n" for network in networks)


@dataclass
class RemoteCluster:
    """A data directory in a room, with the server that serves it. `settings` come after the lab's own."""

    room: Room
    server: ServerBinaries
    data_directory: Path
    way: Way
    settings: Mapping[str, str] = field(default_factory=dict)
    runner: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    _password: str | None = field(default=None, init=False, repr=False)
    _running: tuple[RunningServer, Path] | None = field(default=None, init=False, repr=False)
    _log: Path | None = field(default=None, init=False, repr=False)
    _fetched: int = field(default=0, init=False, repr=False)

    @property
    def target(self) -> Target:
        """Where its superuser connects."""
        return Target(self.way.address, self.way.port, SUPERUSER, DATABASE, self._password, {"sslmode": "disable"})

    def start(self, log: Path) -> None:
        """Start the server, its log appended to `log` here, and wait until it answers here, with a new password.

        Raises ArmError with the server's own words, or saying that it runs and cannot be reached; none is left then.
        """
        room, machine = self.room, self.room.machine
        self._log, self._fetched = room.path("server.log"), 0
        sockets = room.path("s")
        room.shell(f"umask 077; mkdir {shlex.quote(str(sockets))}; : > {shlex.quote(str(self._log))}")
        self._configure(sockets)
        running = RunningServer(
            bin=self.server.bin,
            data=self.data_directory,
            log=self._log,
            user=room.account,
            runner=tuple(self.runner),
            environment=tuple(f"{name}={value}" for name, value in self.environment.items()),
        )
        try:
            self._running = running, room.journal.make(running)
        except HostError as error:
            self.fetch_log(log)
            said = last_words(log) if log.stat().st_size else str(error)
            raise ArmError(f"PostgreSQL {self.server.version} on {machine.label} does not start: {said}") from None
        try:
            self._set_password(sockets)
            self._look_whether_reached()
        except BaseException:
            self.fetch_log(log)
            self.stop(immediate=True)
            raise
        self.fetch_log(log)

    def stop(self, *, immediate: bool = False) -> None:
        """End the server: fast (its data stays clean), or immediate (its data is thrown away next)."""
        running, self._running = self._running, None
        self._password = None
        if running is not None:
            server, entry = running
            server.stop(self.room.machine, immediate=immediate)
            self.room.journal.undo(entry)

    @contextmanager
    def running(self, log: Path, *, immediate: bool = False) -> Iterator[Target]:
        """The server between start and stop."""
        self.start(log)
        try:
            yield self.target
        finally:
            self.stop(immediate=immediate)

    def fetch_log(self, log: Path) -> None:
        """Append to `log` here what the server has written since the last time."""
        content = self.room.machine.read_from(self._log, self._fetched) if self._log is not None else b""
        self._fetched += len(content)
        with log.open("ab") as file:
            file.write(content)

    def huge_pages_needed(self) -> int:
        """How many huge pages of the size that is set the shared memory takes. Raises ArmError."""
        self._configure(self.room.root)
        asked = [self.server.bin / "postgres", *asking_for_pages(self.data_directory)]
        return pages_of(self.room.machine.run(asked, user=self.room.account), self.server.version)

    def _configure(self, sockets: Path) -> None:
        way = self.way
        settings = {**self.settings, "listen_addresses": way.listen, "port": str(way.port)}
        for name, text in ((CONFIGURATION, configuration(settings, sockets)), ("pg_hba.conf", way.hba)):
            self.room.shell(f"umask 077; cat > {shlex.quote(str(self.data_directory / name))}", given=text)

    def _set_password(self, sockets: Path) -> None:
        """A new password; the host sees no more than what SCRAM stores of it."""
        password = secrets.token_urlsafe(24)
        psql: list[str | Path] = [
            self.server.bin / "psql",
            "-XqAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            sockets,
            "-p",
            str(self.way.port),
        ]
        self.room.shell(
            shlex.join(str(word) for word in [*psql, "-U", SUPERUSER, "-d", DATABASE]),
            given=f"ALTER ROLE {SUPERUSER} PASSWORD '{verifier(password)}';\n",
        )
        self._password = password

    def _look_whether_reached(self) -> None:
        """See whether the server that runs there takes queries from here. Raises ArmError."""
        try:
            with self.target.connect() as connection:
                shown = connection.execute("SHOW data_directory").fetchone()
        except psycopg.OperationalError as error:
            raise self._unreached(str(error)) from None
        if shown is None or Path(shown[0]) != self.data_directory:
            raise ArmError(
                f"another server than the one on {self.room.machine.label} answers at {self.way.address}:"
                f"{self.way.port}; set address to where clients reach that host"
            )

    def _unreached(self, said: str) -> ArmError:
        where = f"{self.way.address}:{self.way.port}"
        told = said.strip().splitlines()[0].rpartition("failed: ")[2]
        if "pg_hba.conf" in said:
            return ArmError(
                f"the server on {self.room.machine.label} runs, but sees clients from another address than "
                f"{', '.join(self.way.clients)}: {told}; set address to one that is reached without translation"
            )
        return ArmError(
            f"PostgreSQL runs on {self.room.machine.label}, but {where} cannot be reached from here ({told}): a "
            f"firewall closes the port, or clients reach that host by another address; open port {self.way.port} for "
            f"{' and '.join(self.way.clients)}, or set port or address"
        )


def create_cluster(room: Room, server: ServerBinaries, data: Path, options: Sequence[str] = ()) -> None:
    """Run initdb there in a new directory. Raises ArmError with initdb's own words."""
    machine = room.machine
    done = machine.run([server.bin / "initdb", "--pgdata", data, *INITDB, *options], user=room.account)
    check_initdb(done, f"PostgreSQL {server.version} on {machine.label}", options)
    room.shell(f"echo \"include '{CONFIGURATION}'\" >> {shlex.quote(str(data / 'postgresql.conf'))}")


def way_to(room: Room, address: str | None, port: int) -> Way:
    """How clients reach a server of this room; of clients the lab, as it is seen from there. Raises ArmError.

    Without an address of its own it is where ssh goes, and the server listens where that connection arrives.
    """
    lab, arrives_at = room.machine.seen
    used = address or room.machine.connection.where.host
    source, numeric = _from_here(used, port)
    listen = arrives_at if address is None and arrives_at else numeric if _has(room, numeric) else "*"
    clients = dict.fromkeys(client for client in (source, lab) if client)
    return Way(used, port, listen, tuple(clients))


def _from_here(host: str, port: int) -> tuple[str, str]:
    """This machine's address towards a host, and that host's. Nothing is sent. Raises ArmError."""
    try:
        family, _, _, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0]).partition("%")[0], str(there[0]).partition("%")[0]
    except socket.gaierror:
        raise ArmError(f"no address is known for {host}, where clients are to reach the server; set address") from None
    except OSError as error:
        raise ArmError(f"there is no way from here to {host} ({error.strerror}); set address") from None


def _has(room: Room, address: str) -> bool:
    """Whether the host itself has an address, and no translation in front of it."""
    shown = room.machine.looked(["sh", "-c", "ip -o addr 2>/dev/null || ifconfig -a"]).stdout
    return address in shown.replace("/", " ").split()


_ITERATIONS = 4096


def verifier(password: str, salt: bytes | None = None) -> str:
    """The SCRAM-SHA-256 verifier of an ASCII password (RFC 5803, as in pg_authid), with a random salt of 16 bytes."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${_ITERATIONS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
