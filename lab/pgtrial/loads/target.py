"""Where a server is reached: for the engine as PG* variables, for the lab as a psycopg connection."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
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
"""Connection parameters beyond the address that have a variable, as in libpq's documentation."""

_NAMED_OTHERWISE = {"application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT"}
"""The others' variables are their names without underscores."""

CONNECT_TIMEOUT_S = 10

KEEPALIVES = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 4}
"""A network that is cut ends a session that waits within a minute, the lab's or one of an engine that makes data; the
system's own default is hours."""

_UNANSWERED_MS = 40_000
"""The same for a session of the lab's with a statement under way; the system's own default is a quarter of an hour."""

_MOMENTS = ("timestamptz", "timestamp", "date", "time", "timetz", "interval")
"""Kept as text: how the server writes them depends on its settings, and the lab calculates with none of them."""

_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')

TIME_LIMITS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)
"""Settings that end what takes long. They are for those who use a server: the lab's own sessions wait through a load,
and vacuum."""

_WITHOUT_LIMIT = """SELECT pg_catalog.set_config('statement_timeout', '0', false)
    WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) :process"""

CHANGED_BY_LAB = (*TIME_LIMITS, "search_path")
"""Settings that the lab's own sessions may have otherwise than those of the load."""

_AS_LAB_NEEDS = f"""SELECT pg_catalog.set_config(name, text, false) FROM (
    SELECT name, '0' AS text FROM pg_catalog.unnest('{{{", ".join(TIME_LIMITS)}}}'::pg_catalog.text[]) AS name
        WHERE pg_catalog.current_setting(name, true) OPERATOR(pg_catalog.<>) '0'
    UNION ALL SELECT 'search_path', pg_catalog.array_to_string(ARRAY(
            SELECT pg_catalog.quote_ident(s) FROM pg_catalog.unnest(schemas) AS s
            WHERE s OPERATOR(pg_catalog.<>) 'pg_catalog'), ', ')
        FROM pg_catalog.current_schemas(false) AS schemas
        WHERE 'pg_catalog' OPERATOR(pg_catalog.=) ANY (schemas[2:])) AS changed
    WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) :process"""
"""Lifts limits of time, and has pg_catalog searched first, where schemas before it could have tables and functions of
the same names. Behind a pooler, which answers with another number of a process, it sets nothing: that session may later
be another client's.
"""


_SPLITS = re.compile(r"[\\ \t\n\r\f\v]")
"""Where the server splits the parameter `options`, and what escapes that (pg_split_opts)."""

_environment = threading.Lock()

# a session's errors are raised; the driver's own warnings would stand between the lines of progress
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class _AnyText(Loader):
    """Reads text of any bytes, U+FFFD for what is no UTF-8: a database in SQL_ASCII and a value of a setting may have
    others.
    """

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="replace")


Session = psycopg.Connection[tuple[Any, ...]]


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
    """The application_name of the load's sessions; None: their own."""
    owner: str | None = None
    """The role without superuser that owns the data and runs what the user has written; None: `user` does."""
    owner_password: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """For messages: `user@host:port/dbname`, without the password."""
        return f"{self.user}@{self.host}:{self.port}/{self.dbname}"

    @property
    def local(self) -> bool:
        """Whether the server is on this machine: a Unix socket or the loopback address."""
        return self.host.startswith(("/", "@", "127.")) or self.host in ("localhost", "::1")

    def without_secrets(self) -> dict[str, Any]:
        """Its fields for a record in a file, without any secret."""
        fields = {"host": self.host, "port": self.port, "user": self.user, "dbname": self.dbname, "name": self.name}
        extra = {name: value for name, value in self.extra.items() if name not in SECRETS}
        return {**{name: value for name, value in fields.items() if value is not None}, "extra": extra}

    @classmethod
    def from_record(cls, fields: Mapping[str, Any]) -> Target:
        """The target of such a record, with the password of PGPASSWORD. Raises TypeError for fields that are none."""
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
        """The PG* variables that lead a client here, as the load's role; the password travels by PGPASSWORD alone."""
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
        """The same server, for sessions that have these settings from their beginning."""
        if not settings:
            return self
        escaped = {name: _SPLITS.sub(r"\\\g<0>", value) for name, value in settings.items()}
        options = [self.extra.get("options", ""), *(f"-c {name}={value}" for name, value in escaped.items())]
        return replace(self, extra={**self.extra, "options": " ".join(filter(None, options))})

    def connect_as_load(self, **parameters: Any) -> Session:
        """Open a session for statements that the study or its data have written. Raises psycopg.OperationalError."""
        return self.for_load.connect(**parameters)

    def connect(self, **parameters: Any) -> Session:
        """Connect with autocommit, ignoring the lab's own PG* environment. Raises psycopg.OperationalError.

        No limit of time that is set for the role or the server is in force in the session, and pg_catalog is searched
        first.
        """
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
            connection = open_session(**everything)
        for kind in _MOMENTS:
            connection.adapters.register_loader(kind, TextLoader)
        for kind in _TEXTS:
            connection.adapters.register_loader(kind, _AnyText)
        return connection


def value(session: Session, query: str, *parameters: object) -> Any:
    """First column of the first row; None without a row. Raises psycopg.Error."""
    row = session.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None


def has_data_in(session: Session, directory: Path) -> bool:
    """Whether the server is the one of this data directory: at an address in use it is another that answers."""
    return Path(str(value(session, "SHOW data_directory"))) == directory


def backend_type(connection: Session) -> str:
    """SQL of the kind of a session in pg_stat_activity; before PostgreSQL 10 that lists clients alone."""
    return "backend_type" if connection.info.server_version >= 100000 else "'client backend'"


def open_session(conninfo: str = "", **parameters: Any) -> Session:
    """A session as the lab needs it, also where a limit of milliseconds ends most of them at once.

    Raises psycopg.OperationalError.
    """
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        connection = psycopg.connect(conninfo, **parameters)
        connection.prepare_threshold = None  # behind a pooler the next statement may be another session's
        try:
            as_lab_needs(connection)
        except psycopg.Error as error:
            is_ended = connection.broken  # by such a limit, whose message may not have arrived, or else for good
            connection.close()
            if not is_ended or time.monotonic() > deadline:
                raise psycopg.OperationalError(str(error)) from None
        else:
            return connection


def as_lab_needs(connection: Session) -> None:
    """Let a session of the lab's take its time, and search pg_catalog first. Raises psycopg.OperationalError."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    was_changed = False
    while True:
        try:
            changes = connection.execute(_with_process(_AS_LAB_NEEDS, connection)).fetchall()
        except psycopg.errors.QueryCanceled:
            if time.monotonic() > deadline:
                raise
            # within a limit of milliseconds there is time for no more than this, and now and then not even for that
            with suppress(psycopg.errors.QueryCanceled):
                connection.execute(_with_process(_WITHOUT_LIMIT, connection))
        else:
            # once more after a change: a limit that passes as it is lifted cancels the statement after that
            if was_changed or not changes:
                return
            was_changed = True


def _with_process(query: str, connection: Session) -> bytes:
    return query.replace(":process", str(connection.info.backend_pid)).encode()


def is_pooled(session: Session) -> bool:
    """Whether a pooler is between: the next statement may be in another session. Raises psycopg.OperationalError."""
    return bool(session.info.backend_pid != value(session, "SELECT pg_backend_pid()"))


def rows_for_users(session: Session, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query in a session with the values that all others have. Raises psycopg.Error.

    It is one message to the server and one transaction: a limit of milliseconds leaves no time for another.
    """
    cursor = session.execute(b"; ".join((b"RESET ALL", query.encode(), _with_process(_AS_LAB_NEEDS, session))))
    cursor.nextset()
    return cursor.fetchall()


@contextmanager
def without_pg_environment() -> Iterator[None]:
    """Hide PG* variables from libpq for a moment: a stray PGOPTIONS or PGSERVICE must not change what is measured.

    PGTRIAL_* stay: another thread may need them just then.
    """
    with _environment:
        libpqs = [name for name in os.environ if name.startswith("PG") and not name.startswith("PGTRIAL_")]
        hidden = {name: os.environ.pop(name) for name in libpqs}
        try:
            yield
        finally:
            os.environ.update(hidden)
