"""Determines whether two sessions are connected to the same server, even if their addresses are written differently."""

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
    """The properties that identify a server, as the server itself reports them. A field is None if the session's role
    may not query it."""

    system: str | None
    """The system identifier, which initdb has chosen. Copies of a data directory have the same one."""
    start: str | None
    """The time when the postmaster started, in seconds since 1970 to the microsecond, as text."""
    address: str | None
    """The server's address and port for this session; None for a connection by a Unix socket."""
    database: str


def identity_of(session: Session) -> ServerIdentity:
    """Returns the identity of the server to which a session is connected. Raises psycopg.OperationalError."""
    return ServerIdentity(
        _if_allowed(session, _SYSTEM),
        _if_allowed(session, _START),
        _if_allowed(session, _ADDRESS),
        str(value(session, "SELECT current_database()")),
    )


def same_server(first: Session, second: Session) -> bool | None:
    """True if two sessions are connected to the same server, even if their databases differ; None if that cannot be
    found out.

    Servers with different start times are different servers, even if their system identifiers are equal, as those of a
    standby or a copy. If the roles may not query start time and identifier, the first session takes an advisory lock,
    and the second session looks for this lock in pg_locks. Raises psycopg.OperationalError.
    """
    one, other = identity_of(first), identity_of(second)
    for mine, its in ((one.start, other.start), (one.system, other.system)):
        if mine is not None and its is not None and mine != its:
            return False
    if None not in (one.start, other.start, one.system, other.system):
        return True
    return _sees_lock(first, second)


def _sees_lock(first: Session, second: Session) -> bool | None:
    """Takes an advisory lock in the first session. Returns true if the second session sees this lock in pg_locks, and
    None if not even the first session sees it.

    pg_locks shows the locks of all databases. The lock is taken within a transaction, so that a pooler cannot move the
    first session to another server process in between.
    """
    keys = [random.SystemRandom().randrange(_KEYS) for _ in range(2)]
    try:
        with first.transaction():
            if not value(first, _TAKE, *keys) or not value(first, _SEEN, *keys):
                return None
            return bool(value(second, _SEEN, *keys))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ProtocolViolation):
        return None  # a pooler with statement pooling permits no transactions


def _if_allowed(session: Session, query: str) -> str | None:
    under_way = session.info.transaction_status is TransactionStatus.INTRANS
    try:
        with session.transaction() if under_way else nullcontext():
            answer = value(session, query)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
        return None
    return None if answer is None else str(answer)
