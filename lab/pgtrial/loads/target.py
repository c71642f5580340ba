"""The address of a server: for the engine as PG* variables, for the lab as a psycopg connection."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.sql import Composable
from psycopg.types.string import TextLoader

from pgtrial.model.study.frozen import SECRETS

_WITH_VARIABLE = frozenset(
    (
        *(
            "sslmode",
            "sslrootcert",
            "sslcert",
            "sslkey",
            "sslcrl",
            "sslcrldir",
            "sslcertmode",
            "sslsni",
            "sslnegotiation",
        ),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "min_protocol_version", "max_protocol_version"),
        *("requirepeer", "krbsrvname", "gssencmode", "channel_binding", "require_auth", "application_name", "options"),
        *("client_encoding", "connect_timeout", "target_session_attrs"),
    )
)
"""The connection parameters beyond the address that have an environment variable, as in libpq's documentation."""

_NAMED_OTHERWISE = {"application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT"}
"""The parameters whose variable is not `PG` and their name in capitals without underscores."""

CONNECT_TIMEOUT_S = 10

KEEPALIVES = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 4}
"""A network that is cut ends a session that waits within a minute, the lab's or one of an engine that makes data; the
system's own default is hours."""

_UNANSWERED_MS = 40_000
"""The time, in milliseconds, after which a network that is cut ends a session of the lab's with a statement under way;
the system's own default is a quarter of an hour."""

_MOMENTS = ("timestamptz", "timestamp", "date", "time", "timetz", "interval")
"""The types of dates, times and intervals. Their values are left as text: how the server writes them depends on its
settings, and the lab calculates with none of them."""

_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')

TIME_LIMITS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)
"""Settings that end what takes long. The lab's own sessions do not have them: they wait through a load, and vacuum."""

_WITHOUT_LIMIT = """SELECT pg_catalog.set_config('statement_timeout', '0', false)
    WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) :process"""

_OF_LAB = {
    "search_path": "pg_catalog, pg_temp",
    "row_security": "off",
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
"""Settings of the lab's own sessions, whatever a role, a database or a server has: their statements find nothing of a
user's schemas, no function, operator, type or table, and no policy of a table runs by the rights of the lab's role.
They are sent no messages below warnings, may write, mean what they say, and get numbers in full.

All may be set by any role. Settings of the planner are not among them: they cost the lab time, and change no answer.
"""

_PATH_OF_LAB = f"SET LOCAL search_path = {_OF_LAB['search_path']}"

CHANGED_BY_LAB = (*TIME_LIMITS, *_OF_LAB)
"""Settings in which the lab's own sessions may differ from those of the load."""

_HAS_OTHERWISE = f"""SELECT pg_catalog.set_config(name, text, false) FROM (
    SELECT name, '0'::pg_catalog.text AS text
    FROM pg_catalog.unnest('{{{", ".join(TIME_LIMITS)}}}'::pg_catalog.text[]) AS name
    :settings) AS wanted
    WHERE pg_catalog.current_setting(name, true) OPERATOR(pg_catalog.<>) text
        AND pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) :process"""
"""Sets what a session has otherwise. Behind a pooler, which answers with another number of a process, it sets nothing:
that session may later be another client's. It is the first statement of a session, under the search path of the role,
the database or the server: so all that it names is qualified, and each argument has the very type of its parameter.
"""

_FOR_LOAD = _HAS_OTHERWISE.replace(":settings", "")
_FOR_LAB = _HAS_OTHERWISE.replace(
    ":settings",
    " ".join(
        f"UNION ALL SELECT '{name}'::pg_catalog.text, '{text}'::pg_catalog.text" for name, text in _OF_LAB.items()
    ),
)

_SCHEMAS = """SELECT n.oid FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS s (name, place)
    JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) s.name ORDER BY s.place"""
"""Finds the schemas of the search path. All names in it are qualified, since it also runs under the load's own path."""

_ALONE = re.compile(rb"\s*(VACUUM|CHECKPOINT|ALTER\s+SYSTEM|COMMENT|SET|RESET|SHOW|DEALLOCATE)\b", re.IGNORECASE)
"""Statements that call nothing by name, among them those that run in no transaction block."""

_SPLITS = re.compile(r"[\\ \t\n\r\f\v]")
"""Matches characters at which the server splits the parameter `options`, and backslashes, which escape them.

See pg_split_opts in PostgreSQL.
"""

_environment = threading.Lock()

# errors of a session are raised; the driver's own warnings would appear between the lines of progress
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class _AnyText(Loader):
    """Reads text of any bytes, with U+FFFD for what is no UTF-8.

    A database in SQL_ASCII and a value of a setting may have other bytes.
    """

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="replace")


Session = psycopg.Connection[tuple[Any, ...]]


class _PooledCursor(psycopg.ClientCursor[Any]):
    """Sends each statement in one message with the search path of the lab, which ends with its transaction.

    Behind a pooler a setting of the session would stay with whichever client has that session next.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Runs a statement, whose rows are those of the cursor. Raises psycopg.Error."""
        text = self.mogrify(query, params).encode() if params else sql_bytes(self.connection, query)
        if _ALONE.match(text):
            return super().execute(text, **options)
        super().execute(_PATH_OF_LAB.encode() + b"; " + text, **options)
        while self.nextset():
            pass
        return self


@dataclass(frozen=True)
class Target:
    """One server, one database, one user. Passwords are in no representation of it.

    `name` is the host's, for TLS, where `host` is an address that was given beside it (`hostaddr`).
    """

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str | None = None
    programs: Path | None = None
    """The directory of the server's own programs, if the lab runs it on this machine."""
    load_name: str | None = None
    """The application_name of the load's sessions; None if they name themselves."""
    owner: str | None = None
    """The role without superuser that owns the data and runs what the user has written; None if that is `user`."""
    owner_password: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The address for messages: `user@host:port/dbname`, without the password."""
        return f"{self.user}@{self.host}:{self.port}/{self.dbname}"

    @property
    def local(self) -> bool:
        """True if the server is on this machine: at a Unix socket or a loopback address."""
        return self.host.startswith(("/", "@", "127.")) or self.host in ("localhost", "::1")

    def without_secrets(self) -> dict[str, Any]:
        """Returns the fields of the target for a record in a file, without any secret."""
        fields = {"host": self.host, "port": self.port, "user": self.user, "dbname": self.dbname, "name": self.name}
        extra = {name: value for name, value in self.extra.items() if name not in SECRETS}
        return {**{name: value for name, value in fields.items() if value is not None}, "extra": extra}

    @classmethod
    def from_record(cls, fields: Mapping[str, Any]) -> Target:
        """Returns the target whose fields `without_secrets` has returned, with the password from PGPASSWORD.

        Raises TypeError if the record has fields that a target does not have.
        """
        return cls(**fields, password=os.environ.get("PGPASSWORD"))

    @property
    def for_load(self) -> Target:
        """Returns the same server by the role that owns the data: for loads, restores and whatever evaluates data.

        A function, a trigger or an index of the data that runs in such a session has no superuser's rights.
        """
        if self.owner is None:
            return self
        return replace(self, user=self.owner, password=self.owner_password, owner=None, owner_password=None)

    def environment(self) -> dict[str, str]:
        """Returns the PG* variables that lead a client here, as the load's role; PGPASSWORD alone has the password."""
        if self.owner is not None:
            return self.for_load.environment()
        variables = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user, "PGDATABASE": self.dbname}
        if self.name is not None:
            variables |= {"PGHOST": self.name, "PGHOSTADDR": self.host}
        for name in _WITH_VARIABLE & self.extra.keys():
            variables[_NAMED_OTHERWISE.get(name, f"PG{name.replace('_', '').upper()}")] = self.extra[name]
        if self.load_name is not None:
            variables["PGAPPNAME"] = self.load_name
        return variables if self.password is None else {**variables, "PGPASSWORD": self.password}

    def with_settings(self, settings: Mapping[str, str]) -> Target:
        """Returns the same server, for sessions that have these settings from their beginning."""
        if not settings:
            return self
        escaped = {name: _SPLITS.sub(r"\\\g<0>", value) for name, value in settings.items()}
        options = [self.extra.get("options", ""), *(f"-c {name}={value}" for name, value in escaped.items())]
        return replace(self, extra={**self.extra, "options": " ".join(filter(None, options))})

    def connect(self, **parameters: Any) -> Session:
        """Opens a session of the lab's own, with autocommit. Raises psycopg.OperationalError.

        It ignores the lab's PG* environment. Time limits that are set for the role or the server are not in force in
        it, and its statements find nothing of a user's schemas: names of tables come from `names.py`, qualified.
        Statements of the study run in sessions of `connect_as_load`.
        """
        return self._connect(parameters, as_load=False)

    def connect_as_load(self, **parameters: Any) -> Session:
        """Opens a session, by the role of the load, for statements that the study or its data have written.

        Names mean there what they mean in the load's sessions: the lab's own statements within it need `lab_path`.
        Raises psycopg.OperationalError.
        """
        return self.for_load.connect_as_user(**parameters)

    def connect_as_user(self, **parameters: Any) -> Session:
        """Opens a session like `connect_as_load`, but by the target's own role `user`: for statements that need a
        superuser, such as CREATE EXTENSION.

        Raises psycopg.OperationalError.
        """
        return self._connect(parameters, as_load=True)

    def _connect(self, parameters: dict[str, Any], *, as_load: bool) -> Session:
        everything = {
            "application_name": "pgtrial lab",
            "connect_timeout": CONNECT_TIMEOUT_S,
            **KEEPALIVES,
            "tcp_user_timeout": _UNANSWERED_MS,
            **self.extra,
            "client_encoding": "UTF8",
            **({"host": self.host} if self.name is None else {"host": self.name, "hostaddr": self.host}),
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "password": self.password,
            "autocommit": True,
            **parameters,
        }
        with without_pg_environment():
            connection = open_session(as_load=as_load, **everything)
        for kind in _MOMENTS:
            connection.adapters.register_loader(kind, TextLoader)
        for kind in _TEXTS:
            connection.adapters.register_loader(kind, _AnyText)
        return connection


def value(session: Session, query: str, *parameters: object) -> Any:
    """Returns the first column of the first row; None without a row. Raises psycopg.Error."""
    row = session.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None


def has_data_in(session: Session, directory: Path) -> bool:
    """True if the server is the one of this data directory: at an address in use it is another that answers."""
    return Path(str(value(session, "SHOW data_directory"))) == directory


def backend_type(connection: Session) -> str:
    """Returns the SQL expression for a session's backend type in pg_stat_activity. Before PostgreSQL 10 the view has no
    such column and lists only client backends."""
    return "backend_type" if connection.info.server_version >= 100000 else "'client backend'"


def open_session(conninfo: str = "", *, as_load: bool = False, **parameters: Any) -> Session:
    """Opens a session as the lab needs it, also where a limit of milliseconds ends most of them at once.

    With `as_load` names mean what they mean in the load's sessions. Raises psycopg.OperationalError.
    """
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        connection = psycopg.connect(conninfo, **parameters)
        connection.prepare_threshold = None  # behind a pooler the next statement may be another session's
        try:
            _set_up(connection, _FOR_LOAD if as_load else _FOR_LAB)
            if not as_load and is_pooled(connection):
                connection.cursor_factory = _PooledCursor
        except psycopg.Error as error:
            is_ended = connection.broken  # by such a limit, whose message may not have arrived, or else for good
            connection.close()
            if not is_ended or time.monotonic() > deadline:
                raise psycopg.OperationalError(str(error)) from None
        else:
            return connection


def _set_up(connection: Session, query: str) -> None:
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    was_changed = False
    while True:
        try:
            changes = connection.execute(_with_process(query, connection)).fetchall()
        except psycopg.errors.QueryCanceled:
            if time.monotonic() > deadline:
                raise
            # a limit of milliseconds leaves time for no more than this statement, and sometimes not even for that
            with suppress(psycopg.errors.QueryCanceled):
                connection.execute(_with_process(_WITHOUT_LIMIT, connection))
        else:
            # after a change it runs once more: a limit that expires while it is lifted cancels the next statement
            if was_changed or not changes:
                return
            was_changed = True


@contextmanager
def lab_path(session: Session) -> Iterator[None]:
    """Makes statements in a session of `connect_as_load` the lab's own within the context, in a transaction.

    The search path that the study's statements have set is there again afterwards.
    """
    with session.transaction():
        path = str(value(session, "SELECT pg_catalog.current_setting('search_path')"))
        session.execute(_PATH_OF_LAB)
        yield
        session.execute("SELECT pg_catalog.set_config('search_path', %s::pg_catalog.text, true)", (path,))


def schemas_of_load(session: Session) -> list[int]:
    """Returns the schemas in which unqualified names of the load are looked up, in the order of its search path. Raises
    psycopg.Error."""
    cursor = psycopg.Cursor(session)
    # an open transaction has the lab's search path again afterwards
    cursor.execute(f"SET LOCAL search_path TO DEFAULT; {_SCHEMAS}; {_PATH_OF_LAB}".encode())
    cursor.nextset()
    return [oid for (oid,) in cursor.fetchall()]


def _with_process(query: str, connection: Session) -> bytes:
    return query.replace(":process", str(connection.info.backend_pid)).encode()


def is_pooled(session: Session) -> bool:
    """True if there is a pooler between the lab and the server, so that the next statement may run in another session
    of the server. Raises psycopg.OperationalError."""
    return bool(session.info.backend_pid != value(session, "SELECT pg_catalog.pg_backend_pid()"))


def rows_for_users(session: Session, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query that runs with the settings of ordinary sessions, and not with those that the lab
    gives its own. Raises psycopg.Error.

    Everything is sent in one message, which is one transaction, since a time limit of milliseconds leaves no time for
    another. The query runs under the search path of ordinary sessions, so all names in it must be qualified.
    """
    cursor = psycopg.Cursor(session)
    cursor.execute(b"; ".join((b"RESET ALL", query.encode(), _with_process(_FOR_LAB, session))))
    cursor.nextset()
    return cursor.fetchall()


def values_for_users(session: Session, query: str, names: Iterable[str], *parameters: object) -> list[tuple[Any, ...]]:
    """Returns the rows of a query that sees the values of these settings as in ordinary sessions, and not those of the
    lab's own. Raises psycopg.Error.

    All names in the query must be qualified.
    """
    cursor = psycopg.ClientCursor(session)
    defaults = "".join(f"SET LOCAL {name} TO DEFAULT; " for name in names)
    cursor.execute(defaults.encode() + query.encode(), parameters)
    while cursor.nextset():
        pass
    return cursor.fetchall()


def sql_bytes(session: Session, query: Any) -> bytes:
    """Returns the text of a statement without parameters."""
    if isinstance(query, Composable):
        return query.as_bytes(session)
    return query if isinstance(query, bytes) else str(query).encode()


@contextmanager
def without_pg_environment() -> Iterator[None]:
    """Hides PG* variables from libpq within the context: a stray PGOPTIONS or PGSERVICE must not change what is
    measured.

    PGTRIAL_* stay, since another thread may need them just then.
    """
    with _environment:
        libpqs = [name for name in os.environ if name.startswith("PG") and not name.startswith("PGTRIAL_")]
        hidden = {name: os.environ.pop(name) for name in libpqs}
        try:
            yield
        finally:
            os.environ.update(hidden)
