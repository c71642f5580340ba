"""Where a server is reached: for the engine as PG* variables, for the lab as a psycopg connection."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.types.string import TextLoader

_VARIABLES = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslcrl": "PGSSLCRL",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "gssencmode": "PGGSSENCMODE",
    "channel_binding": "PGCHANNELBINDING",
    "require_auth": "PGREQUIREAUTH",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
    "client_encoding": "PGCLIENTENCODING",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""Connection parameters beyond the address that have a variable, as in libpq's documentation."""

CONNECT_TIMEOUT_S = 10

_KEEPALIVES = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 40_000}
"""A network that is cut ends the lab's sessions within a minute; the system's own default is hours, and a quarter of an
hour with a statement under way."""

_MOMENTS = ("timestamptz", "timestamp", "date", "time", "timetz", "interval")
"""Kept as text: how the server writes them depends on its settings, and the lab calculates with none of them."""

_environment = threading.Lock()

# what becomes of a session is told by its errors; the driver's own warnings would stand between the lines of progress
logging.getLogger("psycopg").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Target:
    """One server, one database, one user. The password is in no representation of it."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For messages: `user@host:port/dbname`, without the password."""
        return f"{self.user}@{self.host}:{self.port}/{self.dbname}"

    @property
    def local(self) -> bool:
        """Whether the server is on this machine: a Unix socket or the loopback address."""
        return self.host.startswith(("/", "@", "127.")) or self.host in ("localhost", "::1")

    def environment(self) -> dict[str, str]:
        """The PG* variables that lead a client here; the password travels by PGPASSWORD alone."""
        variables = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user, "PGDATABASE": self.dbname}
        variables |= {_VARIABLES[name]: value for name, value in self.extra.items() if name in _VARIABLES}
        return variables if self.password is None else {**variables, "PGPASSWORD": self.password}

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect with autocommit, ignoring the lab's own PG* environment. Raises psycopg.OperationalError."""
        everything = {
            "application_name": "pgtrial lab",
            "connect_timeout": CONNECT_TIMEOUT_S,
            "client_encoding": "UTF8",
            **_KEEPALIVES,
            **self.extra,
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.dbname,
            "password": self.password,
            "autocommit": True,
            **parameters,
        }
        with without_pg_environment():
            connection = psycopg.connect(**everything)
        for kind in _MOMENTS:
            connection.adapters.register_loader(kind, TextLoader)
        return connection


@contextmanager
def without_pg_environment() -> Iterator[None]:
    """Hide PG* variables from libpq for a moment: a stray PGOPTIONS or PGSERVICE must not change what is measured."""
    with _environment:
        hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PG")}
        try:
            yield
        finally:
            os.environ.update(hidden)
