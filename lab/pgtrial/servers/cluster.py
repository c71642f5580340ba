"""A PostgreSQL cluster that pgtrial makes on any machine: its initdb, configuration, start, access and stop.

pgtrial itself sets some settings, the same in every cluster. All of them are in this module.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg

from pgtrial.loads.data.data import LOADING_WAL_MB, Data, prefilled_wal_mb
from pgtrial.loads.target import Target, has_data_in
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.quoting import quoted
from pgtrial.servers.access import HBA, Access, reserved_port, verifier
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.postmaster import DATABASE, OWNER, SUPERUSER, Child, Hosted, Postmaster
from pgtrial.servers.run_directory import RunDirectory

_INITDB = ("--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "-N")
"""The options of initdb. The locale is C, since it is the only locale that exists on every host and sorts the same on
all of them. The study's own initdb options come later and take precedence. -N is --no-sync; the short option is used
because the long one had another name before PostgreSQL 10."""


@dataclass
class Cluster:
    """A data directory and the server that runs on it. `settings` take precedence over the lab's own settings."""

    run_directory: RunDirectory
    server: ServerBinaries
    data_directory: Path
    socket_directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    access: Access | None = None
    """The addresses by which clients reach the server over TCP, with a new password at each start. With None, the
    server is reached only by its private Unix socket."""
    launcher: tuple[str, ...] = ()
    """The words that precede the server's command, such as `taskset -c 0-3`."""
    _password: str | None = field(default=None, init=False, repr=False)
    _owner_password: str | None = field(default=None, init=False, repr=False)
    _postmaster: Postmaster | None = field(default=None, init=False, repr=False)

    @property
    def port(self) -> int:
        """The server's port, which is also part of the name of its Unix socket."""
        port = None if self.access is None else self.access.port
        return port or int(self.settings.get("port", 5432))

    @property
    def target(self) -> Target:
        """The server's address, for connections as the superuser."""
        host = str(self.socket_directory) if self.access is None else self.access.address
        programs = self.server.bin if self.run_directory.machine is LOCAL else None
        return Target(host, self.port, SUPERUSER, DATABASE, self._password, {"sslmode": "disable"}, programs=programs)

    @property
    def served(self) -> Target:
        """The server's address for trials. It has both the superuser, and the role that owns the data and runs the
        load."""
        return replace(self.target, owner=OWNER, owner_password=self._owner_password)

    def start(self, log: Path) -> None:
        """Starts the server, appends its log to the file `log` on this machine, and waits until the server accepts
        connections.

        Raises ArmError with the server's own message if it does not start, or with a message that the server runs but
        clients cannot reach it. In both cases the server is not running when the method raises the error.
        """
        with ExitStack() as stack:
            if self.access is not None and not self.access.port:
                # no port is prescribed: a free port of the loopback address stays reserved until the server listens on
                # it
                port = stack.enter_context(reserved_port())
                self.access = replace(self.access, port=int(self.settings.get("port", port)))
            self._configure(self._listening())
            self._postmaster = postmaster = (Child if self.run_directory.machine is LOCAL else Hosted)(
                self.run_directory, self.server, self.data_directory, self.socket_directory, self.port, self.launcher
            )
            try:
                postmaster.start(log)
                if self.access is not None:
                    self._set_password(postmaster)
                    self._check_reached(self.access)
            except BaseException:
                postmaster.fetch_log(log)
                self.stop(immediate=True)
                raise
            postmaster.fetch_log(log)

    def stop(self, *, immediate: bool = False) -> None:
        """Stops the server. The mode is fast, which leaves a cleanly shut down cluster, or with `immediate` it is
        immediate, for data that is removed afterwards. Kills the server if it does not stop in time."""
        postmaster, self._postmaster = self._postmaster, None
        self._password = self._owner_password = None
        if postmaster is not None:
            postmaster.stop(immediate=immediate)

    def restart(self, log: Path, between: Callable[[], None]) -> None:
        """Stops the server, calls `between`, and starts the server again with the same data, address and password.

        Raises the errors of `start` and `between`; in that case the server is not running any more.
        """
        postmaster = self._postmaster
        if postmaster is None:
            return
        try:
            postmaster.stop(immediate=False)
            between()
            postmaster.start(log)
        finally:
            postmaster.fetch_log(log)

    @contextmanager
    def running(self, log: Path, *, immediate: bool = False) -> Iterator[Target]:
        """Starts the server, yields its address, and stops the server on exit from the context."""
        self.start(log)
        try:
            yield self.target
        finally:
            self.stop(immediate=immediate)

    def fetch_log(self, log: Path) -> None:
        """Appends to the file `log` on this machine what the server has logged since the last call. Does nothing if the
        server writes to that file itself."""
        if self._postmaster is not None:
            self._postmaster.fetch_log(log)

    def huge_pages_needed(self) -> int:
        """Returns how many huge pages of the configured size the server's shared memory takes. Raises ArmError."""
        if self.server.major < 15:
            raise ArmError(
                f"PostgreSQL {self.server.version} cannot tell how many huge pages it needs, as versions 15 and later "
                "do; leave huge_pages out, or choose a later version"
            )
        self._configure(self.settings)
        postgres, asking = self.server.bin / "postgres", ("-C", "shared_memory_size_in_huge_pages")
        done = self.run_directory.run([postgres, "-D", self.data_directory, *asking])
        if done.status != 0 or not done.stdout.strip().isdecimal():
            words = " ".join((done.stderr or done.stdout).split()) or "it said nothing"
            raise ArmError(f"PostgreSQL {self.server.version} did not tell how many huge pages it needs: {words}")
        return int(done.stdout)

    def _listening(self) -> Mapping[str, str]:
        """Writes the pg_hba.conf that admits the clients of `access`. Returns the cluster's settings together with the
        listen address and the port."""
        if self.access is None:
            return self.settings
        self.run_directory.write(self.data_directory / "pg_hba.conf", self.access.hba)
        return {**self.settings, "listen_addresses": self.access.listen, "port": str(self.access.port)}

    def _configure(self, settings: Mapping[str, str]) -> None:
        self.run_directory.write(
            self.data_directory / CONFIGURATION, configuration(settings, self.socket_directory, self.server.major)
        )

    def _set_password(self, postmaster: Postmaster) -> None:
        """Gives a new password to each of the two roles. pgtrial sends only the SCRAM verifier, so that neither the
        server nor its log gets the password itself."""
        passwords = {role: secrets.token_urlsafe(24) for role in (SUPERUSER, OWNER)}
        for role, password in passwords.items():
            postmaster.execute(f"ALTER ROLE {role} PASSWORD '{verifier(password)}'")
        self._password, self._owner_password = passwords[SUPERUSER], passwords[OWNER]

    def _check_reached(self, access: Access) -> None:
        """Checks that a connection from this machine to the server's address reaches the server that was started, and
        not another one. Raises ArmError."""
        machine = self.run_directory.machine
        try:
            with self.target.connect() as connection:
                ours = has_data_in(connection, self.data_directory)
        except psycopg.OperationalError as error:
            raise self._unreached(access, str(error)) from None
        if not ours:
            raise ArmError(
                f"the server that answers at {access.address}:{access.port} is not the one that pgtrial has started on "
                f"{machine.label}; set address to an address by which clients reach that host"
            )

    def _unreached(self, access: Access, words: str) -> ArmError:
        label = self.run_directory.machine.label
        reason = words.strip().splitlines()[0].rpartition("failed: ")[2]
        if "pg_hba.conf" in words:
            return ArmError(
                f"the server on {label} runs, but sees clients from another address than "
                f"{', '.join(access.clients)}: {reason}; set address to an address that clients reach without address "
                "translation (NAT)"
            )
        return ArmError(
            f"PostgreSQL runs on {label}, but {access.address}:{access.port} cannot be reached from here ({reason}): a "
            f"firewall closes the port, or clients reach that host by another address; open port {access.port} for "
            f"{' and '.join(access.clients)}, or set port or address"
        )


def create_cluster(
    run_directory: RunDirectory, server: ServerBinaries, data: Path, options: Sequence[str] = ()
) -> None:
    """Makes a cluster by initdb in a new directory, and makes the role that owns its database. Raises ArmError with the
    message of the program that failed."""
    create_bare_cluster(run_directory, server, data, options)
    _make_owner(run_directory, server, data)
    make_startable(run_directory, data)


def create_bare_cluster(
    run_directory: RunDirectory, server: ServerBinaries, data: Path, options: Sequence[str] = ()
) -> None:
    """Makes a cluster by initdb in a new directory. Its only role is the superuser, as pg_upgrade demands of the
    cluster that it fills, and `Cluster` cannot start a server on it before `make_startable`. Raises ArmError with the
    message of initdb."""
    run_directory.private_directory(data)
    done = run_directory.run([server.bin / "initdb", "--pgdata", data, *_INITDB, *options])
    if done.status != 0:
        spoken = [line for line in done.stderr.splitlines() if "error" in line.lower() or "option" in line.lower()]
        reason = (spoken or done.stderr.splitlines() or ["it said nothing"])[0].removeprefix("initdb: ")
        with_options = f" with the options {' '.join(options)}" if options else ""
        raise ArmError(f"initdb of {run_directory.name_of(server)}{with_options} failed: {reason}")


def make_startable(run_directory: RunDirectory, data: Path) -> None:
    """Changes the configuration of a cluster so that `Cluster` can start a server on it: admits connections by the
    private socket, and includes the file with the settings of the lab and of the arm."""
    run_directory.write(data / "pg_hba.conf", HBA)
    run_directory.shell('echo "include $2" >> "$1"', data / "postgresql.conf", f"'{CONFIGURATION}'")


def _make_owner(run_directory: RunDirectory, server: ServerBinaries, data: Path) -> None:
    """Makes the role that owns the database. Uses the server's single-user mode, since no server runs on the cluster
    yet."""
    statements = [
        f"CREATE ROLE {OWNER} LOGIN CREATEDB",
        f"ALTER DATABASE {DATABASE} OWNER TO {OWNER}",
    ]
    if server.major >= 10:  # PostgreSQL 9.6 has no role pg_monitor
        statements.append(f"GRANT pg_monitor TO {OWNER}")
    if server.major >= 15:
        statements += [f"GRANT pg_checkpoint TO {OWNER}", f"GRANT SET ON PARAMETER session_replication_role TO {OWNER}"]
    else:  # since PostgreSQL 15 the owner of the database owns this schema
        statements.append(f"ALTER SCHEMA public OWNER TO {OWNER}")
    single = ("--single", "-D", data, "-c", "exit_on_error=true", DATABASE)
    done = run_directory.run([server.bin / "postgres", *single], "".join(f"{statement}\n" for statement in statements))
    if done.status != 0:
        words = " ".join((done.stderr or done.stdout).split()) or "it said nothing"
        raise ArmError(f"{run_directory.name_of(server)} cannot make the role {OWNER} in a new cluster: {words}")


LAB_SETTINGS = {
    "listen_addresses": "",  # only accounts that can enter the private socket directory can connect
    "log_checkpoints": "on",  # pgtrial has to see a checkpoint within the measured part
    "log_autovacuum_min_duration": "0",  # pgtrial has to see an autovacuum too
    "log_line_prefix": "%m [%p] ",
    "log_timezone": "UTC",
    "lc_messages": "C",
}
"""The settings that the lab gives to every server. All other settings of an arm have PostgreSQL's defaults or the
values of the study. A value of the study takes precedence over a value here."""

_LAB_SETTINGS_SINCE_19 = {"log_autoanalyze_min_duration": "0"}
"""The settings that the lab gives, in addition to LAB_SETTINGS, to servers of PostgreSQL 19 and later. In earlier
versions, `log_autovacuum_min_duration` applies to both VACUUM and ANALYZE."""

_RESERVED = {
    "data_directory": "every trial has a data directory of its own",
    "config_file": "every trial has a configuration of its own",
    "hba_file": "access is by the private socket alone",
    "ident_file": "access is by the private socket alone",
    "hosts_file": "access is by the private socket alone",
    "unix_socket_directories": "every server has a private socket directory",
    "unix_socket_permissions": "every server has a private socket directory",
    "external_pid_file": "pgtrial finds its servers by their data directory",
    "logging_collector": "the server's log belongs to the trial",
    "log_destination": "the server's log belongs to the trial",
    "include": "it is a directive and not a setting",
    "include_dir": "it is a directive and not a setting",
    "include_if_exists": "it is a directive and not a setting",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")

CONFIGURATION = "pgtrial.conf"
"""The name of the file in the data directory that has the settings of the lab and of the arm. postgresql.conf includes
this file at its end."""


def loading_settings(data: Data) -> dict[str, str]:
    """Returns the settings of the server that loads a template. They make loading fast and not durable, since pgtrial
    flushes the whole template to disk afterwards."""
    return {
        "fsync": "off",
        "synchronous_commit": "off",
        "autovacuum": "off",
        "shared_buffers": "256MB",
        "maintenance_work_mem": "256MB",
        "max_wal_size": f"{LOADING_WAL_MB}MB",
        "min_wal_size": f"{prefilled_wal_mb(data)}MB",
    }


def check_settings(arm: str, settings: Mapping[str, str]) -> None:
    """Raises StudyError if a name cannot be the name of a setting, occurs twice, or is a setting that only pgtrial may
    set."""
    lowered = [name.lower() for name in settings]
    for name in settings:
        if lowered.count(name.lower()) > 1:
            raise StudyError(
                f"arms.{arm}: {name} is set twice, since upper and lower case do not matter in names of settings; "
                "remove one of them"
            )
        if not _NAME.fullmatch(name):
            raise StudyError(f"arms.{arm}: {quoted(name)} is not the name of a PostgreSQL setting; correct it")
        if name.lower() in _RESERVED:
            raise StudyError(f"arms.{arm}: {name} cannot be set, because {_RESERVED[name.lower()]}; remove it")


def configuration(settings: Mapping[str, str], socket_directory: Path, major: int) -> str:
    """Returns the content of the file that postgresql.conf includes: the settings of the lab and those of the arm."""
    chosen = {name.lower(): value for name, value in settings.items()}
    newer = _LAB_SETTINGS_SINCE_19 if major >= 19 else {}
    everything = {**LAB_SETTINGS, **newer, **chosen, "unix_socket_directories": str(socket_directory)}
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in everything.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"
