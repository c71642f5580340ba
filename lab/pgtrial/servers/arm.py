"""The interface of an arm, which is the same for every kind of server, and checks that several kinds use."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.named_objects import Named, names_of_job
from pgtrial.loads.sql_files import statements
from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.windows import AnyMachine
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import AS_IT_IS, Drawn
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Server
from pgtrial.model.units import patience_s
from pgtrial.servers.copy_statistics import CopyStatistics
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.servers.session_values import differences, unequal_values

LAB_CONNECTIONS = 4
"""The number of connections that the lab itself may open, in addition to those of the clients, in order to observe the
server."""


@dataclass(frozen=True)
class Needs:
    """The needs of a study that every arm must meet, such as the largest number of clients and the data."""

    clients: int
    data: list[Data]
    """All data that any arm has to load: first pgbench's tables in the order of their scale, then the data of other
    workloads."""
    patience_s: float = 0.0
    """The time for which the lab waits for a given server that does not answer, in seconds."""
    at_once: int = 1
    """The number of servers that run at the same time."""
    prepared: bool = False
    """True if the clients prepare their statements."""
    cold: bool = False
    """True if the study has `cache = "cold"`, for which pgtrial empties the kernel's page cache."""
    undo: tuple[str, ...] = ()
    """The statements that undo a job on a given server."""
    has_users_sql: bool = False
    """True if the load sends statements that are not pgtrial's own, or if the study sets search_path."""
    makes: tuple[Named, ...] = ()
    """The database objects that a job creates and its undo drops, as far as pgtrial can read their names from the SQL
    of both."""
    sessions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The settings of the sessions of each arm, if the arms share one server."""
    data_of_arms: Mapping[str, list[Data]] = field(default_factory=dict)
    """The data that each arm has to load, by the arm's name. It is empty if all arms have the same data."""

    @classmethod
    def of(cls, design: Design) -> Needs:
        """Returns the needs of a study that every arm must meet."""
        spec, points = design.spec, design.load_points
        of_arms = {arm: list(dict.fromkeys(data_of(spec, point, arm) for point in points)) for arm in spec.arms}
        data = dict.fromkeys(one for of_arm in of_arms.values() for one in of_arm)
        by_scale = sorted(data, key=lambda tables: tables.scale if isinstance(tables, PgbenchTables) else math.inf)
        clients = max(point.clients for point in points)
        prepared = any(point.protocol == "prepared" for point in points)
        cold = spec.load.kind.empties_caches(spec.load)
        undo = tuple(statement.text for statement in statements(spec.load.job.undo_sql, {}))
        names = spec.load.kind.scripts_run_once(spec)
        once = [statement.text for name in names for statement in statements(spec.scripts[name], {})]
        makes = names_of_job(once, undo)
        patient_s = patience_s(spec.load.on_server_loss) or 0.0
        load = spec.load
        has_values = load.values or any(keys.values for keys in spec.arms.values())
        own = spec.scripts or has_values or load.data or load.kind.is_of_the_user
        sets_path = any("search_path" in server.settings for server in design.servers.values())
        return cls(
            clients,
            by_scale,
            patient_s,
            prepared=prepared,
            cold=cold,
            undo=undo,
            makes=makes,
            has_users_sql=bool(own or sets_path),
            sessions=design.sessions,
            data_of_arms=of_arms if spec.has_arm_data else {},
        )

    def of_arm(self, arm: str) -> list[Data]:
        """Returns the data that an arm has to load."""
        return self.data_of_arms.get(arm, self.data)

    @property
    def largest(self) -> Data:
        """The data that takes the most space."""
        return max(self.data, key=lambda data: data.mb)


@dataclass(frozen=True)
class Instrument:
    """A program that runs a server and watches how it executes, such as valgrind."""

    command: tuple[str, ...]
    """The words in front of the server's command."""
    settings: Mapping[str, str]
    """The settings of the server that the program requires. They take precedence over those of the arm."""
    usual_settings: Mapping[str, str]
    """The settings that the server has unless the arm sets them."""


class Arm(Protocol):
    """One of the set-ups that a study compares. It provides a server for one trial at a time."""

    name: str
    notes: list[str]
    """Sentences on what happened to the host before the last trial began. They are stored with that trial."""

    @property
    def data_directory(self) -> Path | None:
        """The data directory of the server that runs now, as a path on its machine. It is None between trials, and for
        given servers."""

    @property
    def account(self) -> str | None:
        """The operating system account that owns the data directory, if the lab is root on that machine. It is None if
        the lab's own account owns it, and for given servers."""

    @property
    def host_seen(self) -> dict[str, dict[str, int]]:
        """The counters of huge pages on the host before and during the last trial; empty if the arm changes nothing on
        the host."""

    @property
    def tables_of_others(self) -> Sequence[str]:
        """Descriptions of the tables that the load uses without pgtrial having made them, so that pgtrial does not
        reset them."""

    @property
    def setup(self) -> Server:
        """The server as the study describes it."""

    @property
    def machine(self) -> AnyMachine | None:
        """The machine on which the server runs, if the lab can read its state. It is None until the lab has reached the
        host."""

    @property
    def targets(self) -> Sequence[Target] | None:
        """The addresses of the given servers, which exist before the first trial. It is () if pgtrial makes the server
        on another host, and None if it makes the server on this machine."""

    def check(self, needs: Needs) -> None:
        """Checks before the first trial that the arm can provide what the study needs. Raises StudyError or
        ArmError."""

    def prepare(self, tables: Data, on_progress: Callable[[str], None]) -> None:
        """Loads this data if that is not done yet, so that `serve` need not load it. Raises StudyError or ArmError."""

    def serve(
        self, tables: Data, log: Path, timings: dict[str, float], drawn: Drawn = AS_IT_IS
    ) -> AbstractContextManager[Target]:
        """Provides a server in the state in which every trial begins. On exit from the context, the server is stopped,
        or its former settings are restored.

        `log` receives the server's log, `timings` the seconds of `restore`, `start` and `stop`. `drawn` has the random
        choices that the study's plan made for the trial, such as the deployment (one of several given servers of the
        arm). Raises StartError if the server does not start, and ArmError for other faults, which stop the study.
        Raises TrialError if only this trial fails: the host cannot be put into the state that the arm asks for, or the
        host is lost.
        """

    def rehearsal(
        self, tables: Data, log: Path, instrument: Instrument | None = None
    ) -> AbstractContextManager[Target]:
        """Provides a server on a copy of this data, which is removed on exit, so that the caller may change the data.
        With an instrument, the server runs under it, provided that pgtrial starts the server.

        A given server is provided without a copy, and the caller must not change anything on it. Raises the same errors
        as `serve`.
        """

    def loaded(self, tables: Data) -> Sequence[LoadedData]:
        """Returns where this data is stored after `prepare`: in a template, or on each of the given servers of the
        arm."""

    def use_statistics(self, statistics: CopyStatistics) -> None:
        """Sets the planner statistics that each fresh copy of the data gets before a trial. Given servers keep their
        own statistics."""

    def fetch_log(self, log: Path) -> None:
        """Copies to `log` what the server has logged up to now, if the server does not write to this file itself.
        Raises TrialError."""

    def close(self) -> None:
        """Releases the resources that the arm keeps between trials, such as copies of the data and connections to
        hosts."""


@contextmanager
def timed(timings: dict[str, float], phase: str) -> Iterator[None]:
    """Adds the duration of the context, in seconds, to the entry of a phase in `timings`, also if an error ends the
    context."""
    start = time.monotonic()
    try:
        yield
    finally:
        timings[phase] = timings.get(phase, 0.0) + time.monotonic() - start


def check_data(arm: str, needs: Needs, session: Session) -> None:
    """Raises StudyError if the server does not support the data of the study."""
    for data in needs.data:
        if (objection := data.objection(session)) is not None:
            raise StudyError(f"arms.{arm}: {objection}")


def check_clients(arm: str, needs: Needs, session: Session) -> None:
    """Raises StudyError if the clients, the lab and the reserved connections together need more than
    max_connections."""
    max_connections = int(value(session, "SHOW max_connections"))
    reserved = int(value(session, "SELECT sum(setting::int) FROM pg_settings WHERE name LIKE '%reserved_connections'"))
    wanted = needs.clients + LAB_CONNECTIONS + reserved
    if wanted > max_connections:
        raise StudyError(
            f"arms.{arm}: {needs.clients} clients need max_connections of at least {wanted} "
            f"({LAB_CONNECTIONS} for pgtrial, {reserved} reserved), and the server has {max_connections}; "
            f"set max_connections = {wanted} in the settings, or ask for fewer clients (of tasks: for smaller pools)"
        )


_FOREIGN = "SELECT name FROM pg_settings WHERE lower(name) = ANY (%s) AND context NOT IN ('user', 'superuser')"


_OF_SUPERUSERS = "SELECT name FROM pg_catalog.pg_settings WHERE lower(name) = ANY (%s) AND context = 'superuser'"


def allow_settings(target: Target, names: Iterable[str]) -> None:
    """Permits the load's role to change, in its sessions, those settings of an arm that otherwise only superusers may
    change (GRANT SET ON PARAMETER).

    Does nothing before PostgreSQL 15, which cannot grant such a right. Raises psycopg.Error.
    """
    if target.owner is None:
        return
    with target.connect() as session:
        if session.info.server_version >= 150000:
            for (name,) in session.execute(_OF_SUPERUSERS, ([name.lower() for name in names],)).fetchall():
                session.execute(
                    sql.SQL("GRANT SET ON PARAMETER {} TO {}").format(
                        sql.Identifier(name), sql.Identifier(target.owner)
                    )
                )


_WRONG_VALUE = ("invalid value for parameter", "outside the valid range", "unrecognized configuration parameter")
"""Parts of PostgreSQL's error messages about a setting whose name or value is wrong on every server. If such a message
comes, giving each arm its own server would not help."""


def check_sessions(needs: Needs, target: Target, otherwise: str) -> None:
    """Opens a session with the settings of each arm, and checks that the settings are in force there. Raises
    StudyError.

    `otherwise` is a phrase for the message: what pgtrial does if the arms do not share a server.
    """
    own_server = f"{marks.set_key('load', 'share_server', False)}, which {otherwise}"
    for arm, settings in needs.sessions.items():
        try:
            allow_settings(target, settings)
            with target.with_settings(settings).for_load.connect() as connection:
                rows = connection.execute(_FOREIGN, ([name.lower() for name in settings],)).fetchall()
                unequal = differences(connection, settings)
        except psycopg.OperationalError as error:
            words = str(error).strip().splitlines()[-1].rpartition("FATAL:")[2].strip() or str(error)
            if any(phrase in words for phrase in _WRONG_VALUE):
                cure = "correct the settings"
            elif "startup parameter" in words:
                cure = f"name the server and no pooler in the dsn, or {own_server}"
            else:
                cure = own_server
            raise StudyError(f"arms.{arm}: a session cannot have these settings: {words}; {cure}") from None
        if rows:
            names = " and ".join(name for (name,) in rows)
            raise StudyError(f"arms.{arm}: {names} cannot be set by a session of this server; {own_server}")
        if unequal:
            raise StudyError(
                f"arms.{arm}: {unequal_values(unequal, settings)} in sessions that ask for it; name the server and no "
                f"pooler in the dsn, or {own_server}"
            )
