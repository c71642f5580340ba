"""Which server a session is on, however its address is written."""

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
    """What a server says of itself; None where the role may not ask."""

    system: str | None
    """The identifier that initdb gave it; copies of a data directory share it."""
    start: str | None
    """When its postmaster started, seconds since 1970 to the microsecond, as text."""
    address: str | None
    """Where the session has reached it; None: a Unix socket."""
    database: str


def identity_of(session: Session) -> ServerIdentity:
    """The identity of the server that a session is on. Raises psycopg.OperationalError."""
    return ServerIdentity(
        _if_allowed(session, _SYSTEM),
        _if_allowed(session, _START),
        _if_allowed(session, _ADDRESS),
        str(value(session, "SELECT current_database()")),
    )


def same_server(first: Session, second: Session) -> bool | None:
    """Whether two sessions are on one server, in whatever databases; None: it cannot be known.

    A server that has another start is another one: a standby, or a copy. Where the roles may not ask for start and
    identifier, an advisory lock of the first session that the second one sees in pg_locks is the proof. Raises
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
    """Whether the second session sees a lock that the first one takes for this; None where the first does not either.

    Locks of all databases are in pg_locks. Behind a pooler a transaction keeps the first one where it is.
    """
    keys = [random.SystemRandom().randrange(_KEYS) for _ in range(2)]
    try:
        with first.transaction():
            if not value(first, _TAKE, *keys) or not value(first, _SEEN, *keys):
                return None
            return bool(value(second, _SEEN, *keys))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ProtocolViolation):
        return None  # a pooler of statements permits no transaction


def _if_allowed(session: Session, query: str) -> str | None:
    under_way = session.info.transaction_status is TransactionStatus.INTRANS
    try:
        with session.transaction() if under_way else nullcontext():
            answer = value(session, query)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
        return None
    return None if answer is None else str(answer)
