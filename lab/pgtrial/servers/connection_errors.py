"""Explains to the user why a connection to a given server failed, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import psycopg

_CURES = {
    "definition of service|service file": "add it to ~/.pg_service.conf, or name its file in PGSERVICEFILE",
    "^invalid ": "correct the dsn",
    "password authentication failed": "correct {password}; if it has expired, ALTER ROLE ... VALID UNTIL",
    "password": "set PGPASSWORD or put the password into ~/.pgpass",
    "too many connections for ": "wait until other sessions have ended, or raise that CONNECTION LIMIT",
    "too many c|remaining connection slots": "wait until other sessions have ended, or raise max_connections",
    "due to .* timeout": "raise that limit (ALTER ROLE, ALTER DATABASE), or name another role in the dsn",
    "does not exist": "correct the dsn",
}
"""The advice for a user whose connection failed, by a pattern of the error message. The first matching pattern
decides."""


def cure_of(refusal: str, parameters: Mapping[str, object]) -> str | None:
    """Returns the advice for a user whose connection was refused with the error message `refusal`; None if the message
    is not a known one. `parameters` are those of the connection."""
    cure = next((cure for words, cure in _CURES.items() if re.search(words, refusal)), None)
    return cure and cure.format(password=_where_password_is(parameters))


def _where_password_is(parameters: Mapping[str, object]) -> str:
    """Returns a phrase that says where libpq found the password that the server has rejected."""
    if parameters.get("password"):
        return "the password in the dsn"
    if os.environ.get("PGPASSWORD"):
        return "PGPASSWORD"
    return "the password in PGPASSWORD or ~/.pgpass"


_DEFAULTS = (b"host", b"hostaddr", b"port", b"dbname", b"user", b"service")
"""The connection parameters that determine the server, the database and the user of a connection."""


def with_defaults(parts: Mapping[str, str]) -> dict[str, str]:
    """Returns the parameters of a connection string together with the defaults that libpq adds: the values of PGHOST,
    PGPORT and similar variables, and the name of the operating system account."""
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val and option.keyword in _DEFAULTS
    }
    known = {**defaults, **parts}
    return {**({"dbname": known["user"]} if "user" in known else {}), **known}


def address_of(parts: Mapping[str, str]) -> str:
    """Returns host and port of a connection as a text for messages; for a Unix socket, its directory and port."""
    host = parts.get("host") or parts.get("hostaddr") or "the default socket directory"
    return f"{host}:{parts.get('port') or 5432}"


_TRIED = re.compile(r'connection to server (on socket "[^"]+"|at "[^"]+"(?: \([^)]+\))?, port \d+) failed')


def where_tried(error: psycopg.Error, parts: Mapping[str, object]) -> str:
    """Returns a phrase with the socket, or the host and port, to which libpq tried to connect. Returns "" if the
    connection string names both host and port, so that the user knows them."""
    match = _TRIED.search(str(error))
    has_all = "port" in parts and ("host" in parts or "hostaddr" in parts)
    return "" if match is None or has_all else f" {match[1]}"


def what_to_check(parts: Mapping[str, object]) -> str:
    """Returns the advice what to check, for a failed connection whose error message has no advice of its own."""
    missing = [name for name, key in (("PGHOST", "host"), ("PGPORT", "port")) if key not in parts]
    if not missing or "hostaddr" in parts or "service" in parts:
        return "check that the server runs, and the host and port of the dsn"
    return f"check that the server runs, and set {' and '.join(missing)}, or name host and port in the dsn"


def is_final(error: psycopg.Error) -> bool:
    """True if the connection would fail again after a wait, since the server has refused it for a lasting reason, such
    as a wrong password. False for a server that is starting, stopping or full."""
    message = str(error)
    return any(
        words in message for words in ("password", "authentication", "does not exist", "pg_hba.conf", "permission")
    )


def reason_of(error: psycopg.Error) -> str:
    """Returns the reason in the error message of the server or of libpq, without hints and without the address, which
    pgtrial's own message names already."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    telling = next((line for line in lines if "FATAL:" in line or "failed: " in line), lines[0])
    reason = telling.rpartition("FATAL:")[2].rpartition("failed: ")[2]
    return reason.removeprefix("connection is bad: ").strip().removesuffix(".")
