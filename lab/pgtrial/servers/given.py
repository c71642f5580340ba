"""A given server: a server that somebody else runs, and that pgtrial reaches by a connection string."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgtrial.loads.data.data import Data, refuse_taken_names
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.loads.target import CONNECT_TIMEOUT_S, TIME_LIMITS, Session, Target, is_pooled, open_session
from pgtrial.machines.machine import HostTrouble
from pgtrial.machines.ssh import PATIENCE_S
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.frozen import SECRETS
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Needs, check_data, check_sessions, timed
from pgtrial.servers.cluster import check_settings
from pgtrial.servers.connection_errors import cure_of, is_final, reason_of, what_to_check, where_tried
from pgtrial.servers.given_data import note_made
from pgtrial.servers.given_limits import check_connections, check_may_create, check_prepared, check_room, check_writable
from pgtrial.servers.given_settings import GivenSettings
from pgtrial.servers.job_undo import JobRecord, refuse_taken, undone_on_exit
from pgtrial.servers.load_rights import obstacle
from pgtrial.servers.lock_waits import short_lock_waits
from pgtrial.servers.workspace import Workspace

if TYPE_CHECKING:
    from pgtrial.machines.ssh.machine import RemoteMachine
    from pgtrial.machines.ssh.windows import RemoteWindows

_RETRY_S = 0.2
_OLDEST = 90600
"""The oldest server version that pgtrial accepts, since it is the first that has current_setting(name, missing_ok)."""

_T = TypeVar("_T")


class GivenServer:
    """A given server. pgtrial changes its settings only if the study says so, and only during a trial; afterwards it
    restores the former settings."""

    def __init__(
        self, name: str, setup: Given, needs: Needs, workspace: Workspace, maker: LoadMaker, *, notes: list[str]
    ) -> None:
        """`maker` starts the engine that loads the data. `notes` receives sentences for the user, such as those on
        settings that somebody else has changed during a trial."""
        check_settings(name, setup.settings)
        self.name = name
        self.setup = setup
        self._needs = needs
        self._workspace = workspace
        self._maker = maker
        self.machine: RemoteMachine | RemoteWindows | None = None
        """The server's host, if the study names it and pgtrial has reached it. pgtrial changes nothing on that host."""
        self._notes = notes
        self.tables_of_others: list[str] = []
        """Descriptions of the tables that the load uses and pgtrial has not made. `check` finds them out."""

    def check(self, needs: Needs) -> None:
        """Connects to the server, and checks its limits of connections, tables, settings, rights and free space, and
        its host. Raises StudyError."""
        self._reach_host()
        with self._connect() as connection:
            if (against := obstacle(connection, needs)) is not None:
                raise StudyError(f"arms.{self.name}: {against}")
            check_connections(self.name, self.setup, needs, connection)
            check_data(self.name, needs, connection)
            refuse_taken(self.target, f"arms.{self.name}: {self.target.label}", needs.makes)
            if self.setup.settings:
                self._settings.check()
            missing = [data for data in needs.data if not self._is_there(connection, data)]
            there = [data for data in needs.data if data not in missing]
            of_others = [tables for data in there if (tables := data.used_as_found(connection)) is not None]
            self.tables_of_others = of_others
            resets = self.setup.reset != "none" and len(of_others) < len([data for data in there if data != NO_TABLES])
            if missing or resets:
                check_writable(self.name, connection)
            self._notes += [f"{self.target.label}: {_as_found(tables)}" for tables in of_others]
            self._notes += [self._will_make(data) for data in missing]
            if needs.undo:
                done = "; ".join(needs.undo)
                self._notes.append(f"{self.name}: after each trial pgtrial runs on {self.target.label}: {done}")
            if missing:
                check_may_create(self.name, connection)
            check_room(self.name, self.setup, (self.target, connection), missing, needs)
        check_sessions(needs, self.target, "sets them by ALTER SYSTEM for each trial in turn")
        check_prepared(self.name, needs, self.target)

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Loads the data unless the server already has it. Raises StudyError if it would have to replace tables that
        somebody else has made.

        pgbench's tables are loaded in phases. If loading was interrupted, it continues with the unfinished phase.
        Tables of an unfinished sysbench test are dropped and loaded again.
        """
        with self._connect() as connection:
            if self._is_there(connection, tables):
                return
            with short_lock_waits(connection, self._session):
                goes_on = tables.clear(connection)
            note_made(self._workspace.state, self.target, tables)
        again = "going on with loading" if goes_on else "loading"
        on_progress(f"{self.target.label}: {again} {tables.label}")
        with self._as_arm_error(f"{self.target.label} failed while pgtrial loaded data"):
            tables.make(self._unhurried, on_progress, self._maker, in_steps=True)

    @contextmanager
    def serve(self, tables: Data, log: Path, timings: dict[str, float]) -> Iterator[Target]:
        """Resets the tables, sets the arm's settings, and yields the server's address. On exit from the context,
        restores the former settings."""
        if self.machine is not None:
            # pgtrial only observes this host, so a host that cannot be reached must not fail the trial
            self.machine.connection.forget_loss()
        log.write_text(f"The log of the given server {self.target.label} is on that server.\n")
        if tables != NO_TABLES:
            with timed(timings, "restore"):
                self.prepare(tables, lambda line: None)
                if self.setup.reset != "none":
                    with self._connect() as connection:
                        if (of_others := tables.used_as_found(connection)) is None:
                            with short_lock_waits(connection, self._session):
                                tables.reset(connection)
                        else:
                            self._notes.append(_as_found(of_others))
        with self._connect() as connection:
            if (against := obstacle(connection, self._needs)) is not None:
                raise ArmError(f"arms.{self.name}: {against}")
        with ExitStack() as undo:
            if self.setup.settings:
                with timed(timings, "start"):
                    undo.enter_context(self._settings.in_force(self._workspace.root))
            target = self.target
            if self._needs.undo:
                name = f"pgtrial job {self._workspace.root.name}"
                record = JobRecord(self.name, target, self._needs.undo, name, self._needs.makes, self._workspace.study)
                undo.enter_context(undone_on_exit(record, self._workspace.root, self._session))
                target = replace(target, load_name=name)
            leave = undo.pop_all()
            try:
                yield target
            except BaseException as error:
                with (
                    timed(timings, "stop"),
                    leave,
                ):  # the error is raised within `leave`, since the undo of a job depends on it
                    raise error
            else:
                with timed(timings, "stop"):
                    leave.close()

    def close(self) -> None:
        """Closes the ssh connection to the host."""
        machine, self.machine = self.machine, None
        if machine is not None:
            machine.close()

    def _will_make(self, data: Data) -> str:
        size = f", about {data.mb:,} MB" if data.mb else ""
        return (
            f"{self.target.label}: pgtrial will make {data.relations_made} ({data.label}{size}) in the database "
            f"{self.target.dbname}"
        )

    @cached_property
    def target(self) -> Target:
        """The address of the server to which the connection string has led, with the password that libpq found. Raises
        StudyError."""
        with self._open() as connection:
            return target_of(connection)

    def _reach_host(self) -> None:
        if self.machine is None and self.setup.ssh is not None:
            # importing ssh takes a fifth of a second, and most studies use no other host
            from pgtrial.machines.ssh.windows import machine_to_look_at  # noqa: PLC0415

            patience_s = self._needs.patience_s or PATIENCE_S
            try:
                self.machine = machine_to_look_at(self.setup.ssh, sudo=self.setup.sudo, patience_s=patience_s)
            except HostTrouble as error:
                raise StudyError(f"arms.{self.name}: {error}") from None

    @cached_property
    def _settings(self) -> GivenSettings:
        return GivenSettings(self.name, self.target, self.setup.settings, self._session, self._notes)

    @property
    def _unhurried(self) -> Target:
        """The server's address for sessions that load data. Time limits of the role or the server, such as
        statement_timeout, are off in these sessions, since loading can take longer than ordinary statements."""
        with self._connect() as connection:
            if is_pooled(connection):  # a pooler does not accept settings in the connection's options
                return self.target
            limits = connection.execute(
                "SELECT name FROM pg_settings WHERE name = ANY (%s) AND reset_val <> '0'", (list(TIME_LIMITS),)
            ).fetchall()
        settings = {name: "0" for (name,) in limits}
        if "transaction_timeout" in settings:
            # a parallel worker begins with the limit of the role, and a worker that exceeds it while starting ends the
            # statement
            settings["max_parallel_maintenance_workers"] = "0"
        return self.target.with_settings(settings)

    def _is_there(self, connection: Session, tables: Data) -> bool:
        try:
            is_there = tables.find(connection)
            if not is_there:
                refuse_taken_names(connection, tables)
            return is_there
        except StudyError as error:
            raise StudyError(f"arms.{self.name}: {error}") from None

    @contextmanager
    def _connect(self) -> Iterator[Session]:
        with (
            self._session() as connection,
            self._as_arm_error(f"{self.target.label} refused a statement that pgtrial needs"),
        ):
            yield connection

    def _session(self) -> Session:
        try:
            return self._patiently(self.target.connect)
        except psycopg.OperationalError as error:
            raise ArmError(self._unreachable(error)) from None

    @contextmanager
    def _as_arm_error(self, what: str) -> Iterator[None]:
        """Turns an error of the server or of libpq within the context into an ArmError. Its message begins with `what`,
        a clause that says what went wrong."""
        try:
            yield
        except psycopg.Error as error:
            raise ArmError(f"arms.{self.name}: {what}: {reason_of(error)}") from None

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """Calls `act` and returns its result. If the server does not answer but may come back, calls `act` again, for
        as long as the study permits. Raises psycopg.Error."""
        deadline = time.monotonic() + self._needs.patience_s
        while True:
            try:
                return act()
            except psycopg.OperationalError as error:
                if time.monotonic() >= deadline or is_final(error):
                    raise
            time.sleep(_RETRY_S)

    def _open(self) -> Session:
        if _ambiguous(self.setup.conninfo):
            raise StudyError(
                f"arms.{self.name}: the dsn has more than one @ before its path; "
                "write an @ in a user name as %40, and leave the password to PGPASSWORD or ~/.pgpass"
            )
        try:
            conninfo_to_dict(self.setup.conninfo)
        except psycopg.ProgrammingError:
            # libpq's own message may repeat a part of the dsn, and that part may be a password
            raise StudyError(
                f"arms.{self.name}: the dsn is not a connection string; "
                'write for example "postgresql://user@host:5432/database"'
            ) from None
        try:
            # the user's own PG* variables, service file and .pgpass may complete the connection string
            connection = open_session(self.setup.conninfo, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True)
            if connection.info.server_version < _OLDEST:
                version = connection.info.parameter_status("server_version")
                connection.close()
                raise StudyError(
                    f"arms.{self.name}: the server is PostgreSQL {version}, but pgtrial needs 9.6 or later; name "
                    "another server"
                )
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            raise StudyError(self._unreachable(error)) from None
        return connection

    def _unreachable(self, error: psycopg.Error) -> str:
        reason = reason_of(error)
        parts = conninfo_to_dict(self.setup.conninfo)
        cure = cure_of(reason, parts) or what_to_check(parts)
        to = f"{without_password(self.setup.conninfo)}{where_tried(error, parts)}"
        return f"arms.{self.name}: cannot connect to {to}: {reason}; {cure}"


def _as_found(tables: str) -> str:
    return (
        f"pgtrial has not made {tables}: the load runs on these tables as they are, and pgtrial never empties or "
        'vacuums them, as with reset = "none"'
    )


def without_password(dsn: str) -> str:
    """Returns the connection string in the form key=value without its secrets. A connection string that cannot be
    parsed is replaced by a remark, since it could contain a password anywhere."""
    try:
        parameters = {} if _ambiguous(dsn) else conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        parameters = {}
    if dsn and not parameters:
        return "(an unreadable connection string)"
    shown = {name: value for name, value in parameters.items() if name not in SECRETS}
    return make_conninfo("", **shown) or "the server of the environment (PGHOST, PGSERVICE)"


def _ambiguous(dsn: str) -> bool:
    """True if libpq could take an @ in the password for the end of the password. It would then take the rest of the
    password for the host name, which messages show."""
    _, scheme, rest = dsn.partition("://")
    return bool(scheme) and rest.partition("/")[0].count("@") > 1


def target_of(connection: Session) -> Target:
    """Returns the address of the server that a connection has reached, with the password that libpq found."""
    info = connection.info
    named = {"host", "port", "user", "dbname", "hostaddr", "passfile", "service", "servicefile", "application_name"}
    extra = {name: given for name, given in info.get_parameters().items() if name not in named and given}
    has_address = "hostaddr" in info.get_parameters()
    host = info.hostaddr if has_address else info.host
    name = info.host if has_address and info.host != host else None
    return Target(host, info.port, info.user, info.dbname, info.password or None, extra, name)
