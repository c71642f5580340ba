"""Determines which server a session is on, however its address is written."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import dataclass

import psycopg
from psycopg.pq import TransactionStatus

from pgtrial.loads.target import Session, value

_START = "SELECT extract(epoch FROM pg_postmaster_start_time())::text"
_SYSTEM = "SELECT system_identifier::text FROM pg_control_system()"
_ADDRESS = "SELECT host(inet_server_addr()) || ':' || inet_server_port()"
_TAKE = "SELECT pg_try_advisory_xact_lock(%s, %s)"
_SEEN = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2
    AND granted"""
_KEYS = 2**31


@dataclass(frozen=True)
class ServerIdentity:
    """The identity of a server as the server reports it; a field is None if the role may not query it."""

    system: str | None
    """The identifier that initdb gave the server; copies of a data directory share it."""
    start: str | None
    """The time when the postmaster started, in seconds since 1970 to the microsecond, as text."""
    address: str | None
    """The address by which the session has reached the server; None: a Unix socket."""
    database: str


def identity_of(session: Session) -> ServerIdentity:
    """Returns the identity of the server that a session is on. Raises psycopg.OperationalError."""
    return ServerIdentity(
        _if_allowed(session, _SYSTEM),
        _if_allowed(session, _START),
        _if_allowed(session, _ADDRESS),
        str(value(session, "SELECT current_database()")),
    )


def same_server(first: Session, second: Session) -> bool | None:
    """True if two sessions are on one server, in whatever databases; None if that cannot be known.

    A server that was started at another time is another one: a standby, or a copy. If the roles may not ask for start
    and identifier, the proof is an advisory lock of the first session that the second one sees in pg_locks. Raises
    psycopg.OperationalError.
    """
    one, other = identity_of(first), identity_of(second)
    for mine, its in ((one.start, other.start), (one.system, other.system)):
        if mine is not None and its is not None and mine != its:
            return False
    if None not in (one.start, other.start, one.system, other.system):
        return True
    return _sees_lock(first, second)


def _sees_lock(first: Session, second: Session) -> bool | None:
    """Tests with an advisory lock of the first session: true if the second session sees the lock in pg_locks, None if
    not even the first session sees it.

    pg_locks has the locks of all databases. Behind a pooler, a transaction keeps the first session on its server
    process.
    """
    keys = [random.SystemRandom().randrange(_KEYS) for _ in range(2)]
    try:
        with first.transaction():
            if not value(first, _TAKE, *keys) or not value(first, _SEEN, *keys):
                return None
            return bool(value(second, _SEEN, *keys))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ProtocolViolation):
        return None  # a pooler that lends sessions for single statements permits no transaction


def _if_allowed(session: Session, query: str) -> str | None:
    under_way = session.info.transaction_status is TransactionStatus.INTRANS
    try:
        with session.transaction() if under_way else nullcontext():
            answer = value(session, query)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
        return None
    return None if answer is None else str(answer)
