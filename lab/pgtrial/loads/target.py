"""Describes the address of a server with its database and user, as PG* variables for the engine and as a psycopg
connection for the lab. Also opens the lab's sessions with the settings that they need."""

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
"""The libpq connection parameters, apart from the address, that libpq also reads from an environment variable,
according to its documentation."""

_NAMED_OTHERWISE = {"application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT"}
"""Parameters whose environment variable does not follow the rule, which is `PG` and the name of the parameter in
capitals without underscores."""

CONNECT_TIMEOUT_S = 10

KEEPALIVES = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 4}
"""The TCP keepalive parameters of sessions. If the network is cut, they end a waiting session within a minute, where
the operating system's default is hours. They apply to the lab's sessions, and to those of an engine that makes data."""

_UNANSWERED_MS = 40_000
"""The value of tcp_user_timeout, in milliseconds: if the network is cut while a statement runs, a session of the lab
ends after this time. The operating system's default is a quarter of an hour."""

_MOMENTS = ("timestamptz", "timestamp", "date", "time", "timetz", "interval")
"""The types of dates, times and intervals. The lab reads their values as text, because the server's settings decide how
it writes them, and the lab does not calculate with them."""

_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')

TIME_LIMITS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)
"""The settings that end sessions or statements that take long. The lab switches them off in its own sessions, which
wait through a whole load and run VACUUM."""

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
"""Settings that the lab's own sessions have, whatever is set for the role, the database or the server. With them, the
lab's statements use no function, operator, type or table of a user's schema, and run no row-security policy with the
rights of the lab's role. The sessions get no messages below warnings, may write, read quoted texts by the rules of the
SQL standard, and get floating-point numbers with all digits.

Any role may change all of these settings. Settings of the planner are left as they are: they can make the lab's queries
slower, but do not change their results.
"""

_PATH_OF_LAB = f"SET LOCAL search_path = {_OF_LAB['search_path']}"

CHANGED_BY_LAB = (*TIME_LIMITS, *_OF_LAB)
"""The settings whose values may differ between the lab's own sessions and those of the load."""

_HAS_OTHERWISE = f"""SELECT pg_catalog.set_config(name, text, false) FROM (
    SELECT name, '0'::pg_catalog.text AS text
    FROM pg_catalog.unnest('{{{", ".join(TIME_LIMITS)}}}'::pg_catalog.text[]) AS name
    :settings) AS wanted
    WHERE pg_catalog.current_setting(name, true) OPERATOR(pg_catalog.<>) text
        AND pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) :process"""
"""SQL that changes the settings of a session that differ from those wanted. Behind a pooler it changes nothing, since
the server's session may later belong to another client; a pooler is recognised by the number of the server process,
which differs from the one that the client was told when it connected. This is the first statement of a session and runs
under the search path of the role, the database or the server, so all names in it are qualified, and each argument has
exactly the type of its parameter."""

_FOR_LOAD = _HAS_OTHERWISE.replace(":settings", "")
_FOR_LAB = _HAS_OTHERWISE.replace(
    ":settings",
    " ".join(
        f"UNION ALL SELECT '{name}'::pg_catalog.text, '{text}'::pg_catalog.text" for name, text in _OF_LAB.items()
    ),
)

_SCHEMAS = """SELECT n.oid FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS s (name, place)
    JOIN pg_catalog.pg_namespace n ON n.nspname OPERATOR(pg_catalog.=) s.name ORDER BY s.place"""
"""SQL that returns the OIDs of the schemas in the search path, in their order. All names in it are qualified, since it
also runs under the load's own path."""

_ALONE = re.compile(rb"\s*(VACUUM|CHECKPOINT|ALTER\s+SYSTEM|COMMENT|SET|RESET|SHOW|DEALLOCATE)\b", re.IGNORECASE)
"""Matches statements that need no search path, because they call no function or operator. All statements that cannot
run in a transaction block are among them."""

_SPLITS = re.compile(r"[\\ \t\n\r\f\v]")
"""Matches the characters that must be escaped in the connection parameter `options`: white space, at which the server
splits it, and backslashes.

See pg_split_opts in PostgreSQL.
"""

_environment = threading.Lock()

# errors of a session are raised as exceptions; warnings that psycopg logs would appear between the lines of progress
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class _AnyText(Loader):
    """Loads text that may have any bytes, and replaces bytes that are not valid UTF-8 by U+FFFD.

    Such bytes occur in databases with the encoding SQL_ASCII, and in values of settings.
    """

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="replace")


Session = psycopg.Connection[tuple[Any, ...]]


class _PooledCursor(psycopg.ClientCursor[Any]):
    """A cursor for sessions behind a pooler. It sends each statement together with the lab's search path in one
    message, so that the search path is valid only for the statement's transaction.

    A setting of the whole session would stay in the server's session, which the pooler may give to another client next.
    """

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Runs a statement under the lab's search path. The cursor then has the rows of the statement. Raises
        psycopg.Error if the statement fails."""
        text = self.mogrify(query, params).encode() if params else sql_bytes(self.connection, query)
        if _ALONE.match(text):
            return super().execute(text, **options)
        super().execute(_PATH_OF_LAB.encode() + b"; " + text, **options)
        while self.nextset():
            pass
        return self


@dataclass(frozen=True)
class Target:
    """The address of a server, with a database and a user. Passwords do not appear in its representation as text.

    If the user gave both a host name and an IP address (`hostaddr`), `host` is the address, and `name` the host name,
    which TLS checks.
    """

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str | None = None
    programs: Path | None = None
    """The directory with the programs of the server's installation, if the lab runs the server on this machine; else
    None."""
    load_name: str | None = None
    """The application_name of the load's sessions; None if the program that makes the load sets the name itself."""
    owner: str | None = None
    """The role without superuser rights that owns the data, and that runs scripts and SQL of the user; None if `user`
    does so."""
    owner_password: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The address for messages: `user@host:port/dbname`, without the password."""
        return f"{self.user}@{self.host}:{self.port}/{self.dbname}"

    @property
    def local(self) -> bool:
        """True if the address leads to this machine: it is a Unix socket or a loopback address."""
        return self.host.startswith(("/", "@", "127.")) or self.host in ("localhost", "::1")

    def without_secrets(self) -> dict[str, Any]:
        """Returns the fields of the target, without passwords and other secrets, to be stored in a file."""
        fields = {"host": self.host, "port": self.port, "user": self.user, "dbname": self.dbname, "name": self.name}
        extra = {name: value for name, value in self.extra.items() if name not in SECRETS}
        return {**{name: value for name, value in fields.items() if value is not None}, "extra": extra}

    @classmethod
    def from_record(cls, fields: Mapping[str, Any]) -> Target:
        """Returns the target with the fields that `without_secrets` returned earlier, and with the password from the
        environment variable PGPASSWORD.

        Raises TypeError if the record has fields that a target does not have.
        """
        return cls(**fields, password=os.environ.get("PGPASSWORD"))

    @property
    def for_load(self) -> Target:
        """The same server, with the role that owns the data as its user. Loads and restores use it, and all queries
        that evaluate data.

        If the data have a function, a trigger or an index expression that runs code, the code has no superuser rights
        in such a session.
        """
        if self.owner is None:
            return self
        return replace(self, user=self.owner, password=self.owner_password, owner=None, owner_password=None)

    def environment(self) -> dict[str, str]:
        """Returns the PG* variables with which a client connects to this server as the load's role. Only PGPASSWORD
        contains the password."""
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
        """Returns a target for the same server, whose sessions begin with these settings of PostgreSQL."""
        if not settings:
            return self
        escaped = {name: _SPLITS.sub(r"\\\g<0>", value) for name, value in settings.items()}
        options = [self.extra.get("options", ""), *(f"-c {name}={value}" for name, value in escaped.items())]
        return replace(self, extra={**self.extra, "options": " ".join(filter(None, options))})

    def connect(self, **parameters: Any) -> Session:
        """Opens a session for the lab's own statements, with autocommit. Raises psycopg.OperationalError if the server
        does not accept it.

        The PG* variables of the lab's environment have no effect. Time limits that are set for the role or the server
        are switched off in the session. Unqualified names refer to nothing in a user's schemas: `names.py` returns the
        qualified names of tables. For statements of the study, use `connect_as_load`.
        """
        return self._connect(parameters, as_load=False)

    def connect_as_load(self, **parameters: Any) -> Session:
        """Opens a session of the load's role, for statements that the user's study or data contain.

        Names in its statements refer to the same objects as in the load's sessions. The lab's own statements in such a
        session must run within the context `lab_path`. Raises psycopg.OperationalError if the server does not accept
        the session.
        """
        return self.for_load.connect_as_user(**parameters)

    def connect_as_user(self, **parameters: Any) -> Session:
        """Opens a session like `connect_as_load`, but of the role `user` of this target: for statements that need a
        superuser, such as CREATE EXTENSION.

        Raises psycopg.OperationalError if the server does not accept the session.
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
    """Runs a query, and returns the first column of its first row; None if there is no row. Raises psycopg.Error if the
    query fails."""
    row = session.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None


def has_data_in(session: Session, directory: Path) -> bool:
    """True if the server uses this data directory. pgtrial checks this after it has started a server: if the address
    was already in use, another server answers."""
    return Path(str(value(session, "SHOW data_directory"))) == directory


def backend_type(connection: Session) -> str:
    """Returns the SQL expression for a session's backend type in pg_stat_activity. Before PostgreSQL 10 the view has no
    such column and lists only client backends."""
    return "backend_type" if connection.info.server_version >= 100000 else "'client backend'"


def open_session(conninfo: str = "", *, as_load: bool = False, **parameters: Any) -> Session:
    """Opens a session with the settings that the lab needs. If a time limit of a few milliseconds ends most new
    sessions at once, it tries again.

    With `as_load`, names in the session's statements refer to the same objects as in the load's sessions. Raises
    psycopg.OperationalError if the server does not accept the session.
    """
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        connection = psycopg.connect(conninfo, **parameters)
        connection.prepare_threshold = None  # behind a pooler the next statement may run in another session
        try:
            _set_up(connection, _FOR_LOAD if as_load else _FOR_LAB)
            if not as_load and is_pooled(connection):
                connection.cursor_factory = _PooledCursor
        except psycopg.Error as error:
            # a session may have been ended by a time limit (even if the error does not say so), or for a lasting reason
            is_ended = connection.broken
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
            # a time limit of a few milliseconds leaves time only for the short statement that switches the limit off,
            # and sometimes not even for that one
            with suppress(psycopg.errors.QueryCanceled):
                connection.execute(_with_process(_WITHOUT_LIMIT, connection))
        else:
            # after a change the query runs once more: if a time limit expires while it is being switched off,
            # PostgreSQL cancels the next statement
            if was_changed or not changes:
                return
            was_changed = True


@contextmanager
def lab_path(session: Session) -> Iterator[None]:
    """A context manager for the lab's own statements in a session of `connect_as_load`: within it, a transaction has
    the lab's search path.

    Afterwards the session has the search path again that the study's statements had set.
    """
    with session.transaction():
        path = str(value(session, "SELECT pg_catalog.current_setting('search_path')"))
        session.execute(_PATH_OF_LAB)
        yield
        session.execute("SELECT pg_catalog.set_config('search_path', %s::pg_catalog.text, true)", (path,))


def schemas_of_load(session: Session) -> list[int]:
    """Returns the OIDs of the schemas in which PostgreSQL looks up unqualified names of the load, in the order of the
    load's search path. Raises psycopg.Error if the query fails."""
    cursor = psycopg.Cursor(session)
    # the last statement gives an open transaction the lab's search path again
    cursor.execute(f"SET LOCAL search_path TO DEFAULT; {_SCHEMAS}; {_PATH_OF_LAB}".encode())
    cursor.nextset()
    return [oid for (oid,) in cursor.fetchall()]


def _with_process(query: str, connection: Session) -> bytes:
    return query.replace(":process", str(connection.info.backend_pid)).encode()


def is_pooled(session: Session) -> bool:
    """True if a pooler is between the lab and the server, so that the next statement may run in another session of the
    server. Raises psycopg.OperationalError if the session is lost."""
    return bool(session.info.backend_pid != value(session, "SELECT pg_catalog.pg_backend_pid()"))


def rows_for_users(session: Session, query: str) -> list[tuple[Any, ...]]:
    """Runs a query with the settings that ordinary sessions have, in place of those that the lab gives its own
    sessions, and returns its rows. Raises psycopg.Error if the query fails.

    The change of the settings and the query are sent in one message, which is one transaction, since a time limit of
    milliseconds leaves no time for a second message. The query runs under the search path of ordinary sessions, so all
    names in it must be qualified.
    """
    cursor = psycopg.Cursor(session)
    cursor.execute(b"; ".join((b"RESET ALL", query.encode(), _with_process(_FOR_LAB, session))))
    cursor.nextset()
    return cursor.fetchall()


def values_for_users(session: Session, query: str, names: Iterable[str], *parameters: object) -> list[tuple[Any, ...]]:
    """Runs a query that reads the values of these settings as ordinary sessions have them, in place of the lab's
    values, and returns its rows. Raises psycopg.Error if the query fails.

    All names in the query must be qualified.
    """
    cursor = psycopg.ClientCursor(session)
    defaults = "".join(f"SET LOCAL {name} TO DEFAULT; " for name in names)
    cursor.execute(defaults.encode() + query.encode(), parameters)
    while cursor.nextset():
        pass
    return cursor.fetchall()


def sql_bytes(session: Session, query: Any) -> bytes:
    """Returns the text of a statement that has no parameters, as bytes."""
    if isinstance(query, Composable):
        return query.as_bytes(session)
    return query if isinstance(query, bytes) else str(query).encode()


@contextmanager
def without_pg_environment() -> Iterator[None]:
    """Removes PG* variables from this process's environment within the context: a PGOPTIONS or PGSERVICE that the user
    has set for other purposes must not change what is measured.

    Variables that begin with PGTRIAL_ stay, since another thread may read them at the same time.
    """
    with _environment:
        libpqs = [name for name in os.environ if name.startswith("PG") and not name.startswith("PGTRIAL_")]
        hidden = {name: os.environ.pop(name) for name in libpqs}
        try:
            yield
        finally:
            os.environ.update(hidden)
