"""Explains why a given server cannot be reached, and what to do about it."""

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
"""The advice for a user whose connection failed, by a pattern of the error message. The first pattern that matches
counts."""


def cure_of(refusal: str, parameters: Mapping[str, object]) -> str | None:
    """Returns what a user can do about a refused connection with these parameters, judged by the error message; None if
    the message is not a known one."""
    cure = next((cure for words, cure in _CURES.items() if re.search(words, refusal)), None)
    return cure and cure.format(password=_where_password_is(parameters))


def _where_password_is(parameters: Mapping[str, object]) -> str:
    """Returns a phrase for the place where libpq found the password that a server rejects."""
    if parameters.get("password"):
        return "the password in the dsn"
    if os.environ.get("PGPASSWORD"):
        return "PGPASSWORD"
    return "the password in PGPASSWORD or ~/.pgpass"


_DEFAULTS = (b"host", b"hostaddr", b"port", b"dbname", b"user", b"service")
"""The parameters that determine which server and database a connection reaches, and as which user."""


def with_defaults(parts: Mapping[str, str]) -> dict[str, str]:
    """Returns the parameters of a connection string with those that libpq adds: from PGHOST, PGPORT and the like, and
    the name of the account.
    """
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val and option.keyword in _DEFAULTS
    }
    known = {**defaults, **parts}
    return {**({"dbname": known["user"]} if "user" in known else {}), **known}


def address_of(parts: Mapping[str, str]) -> str:
    """Returns the host and port for people; for a Unix socket, its directory and port."""
    host = parts.get("host") or parts.get("hostaddr") or "the default socket directory"
    return f"{host}:{parts.get('port') or 5432}"


_TRIED = re.compile(r'connection to server (on socket "[^"]+"|at "[^"]+"(?: \([^)]+\))?, port \d+) failed')


def where_tried(error: psycopg.Error, parts: Mapping[str, object]) -> str:
    """Returns the socket or host and port that libpq tried, where the connection string does not name both; or ""."""
    match = _TRIED.search(str(error))
    has_all = "port" in parts and ("host" in parts or "hostaddr" in parts)
    return "" if match is None or has_all else f" {match[1]}"


def what_to_check(parts: Mapping[str, object]) -> str:
    """Returns what to check after a failure for which there is no particular cure."""
    missing = [name for name, key in (("PGHOST", "host"), ("PGPORT", "port")) if key not in parts]
    if not missing or "hostaddr" in parts or "service" in parts:
        return "check that the server runs, and the host and port of the dsn"
    return f"check that the server runs, and set {' and '.join(missing)}, or name host and port in the dsn"


def is_final(error: psycopg.Error) -> bool:
    """True if waiting is of no use: the server has answered, and did not say that it is starting, stopping or full."""
    message = str(error)
    return any(
        words in message for words in ("password", "authentication", "does not exist", "pg_hba.conf", "permission")
    )


def reason_of(error: psycopg.Error) -> str:
    """Returns the message of the server or of libpq, without the hints and the repeated address."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    telling = next((line for line in lines if "FATAL:" in line or "failed: " in line), lines[0])
    reason = telling.rpartition("FATAL:")[2].rpartition("failed: ")[2]
    return reason.removeprefix("connection is bad: ").strip().removesuffix(".")
