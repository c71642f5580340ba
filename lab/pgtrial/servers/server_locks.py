"""Locks the given servers of a study for this lab, by an advisory lock that other labs see.

A session of the lab holds the lock from the check of the arms to the end of the study; the lock ends with that session.
It belongs to one database, but pg_locks shows the locks of all databases, so that labs in two databases of one server
see each other. Every lab takes the lock in shared mode and then looks who else has it, so that of two labs that come at
the same time at least one sees the other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Self

import psycopg

from pgtrial.loads.target import Target, is_pooled, value
from pgtrial.model.errors import ArmError, StudyError, one_line
from pgtrial.model.study.servers import Given
from pgtrial.servers.arm import Arm
from pgtrial.servers.connection_errors import cure_of, is_final, reason_of
from pgtrial.servers.given_limits import LEAVING_S, LOCK_APPLICATION
from pgtrial.servers.server_identity import same_server

_KEYS = (0x70677472, 0x69616C73)
"""The keys of the advisory lock: the letters of `pgtrials`."""

_OTHERS = """SELECT locks.pid, application_name, usename, datname, host(client_addr)
    FROM pg_locks locks LEFT JOIN pg_stat_activity activity ON activity.pid = locks.pid
    WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted
    AND NOT locks.pid = ANY (%s) ORDER BY backend_start LIMIT 1"""

_PAUSE_S = 0.2
_LONGEST_NAME = 63
"""The longest application_name, in bytes."""


class _CannotLock(Exception):
    """The server, or a pooler in front of it, cannot take such a lock."""


class _LockSession:
    """A session that holds the lock of one server.

    Behind a pooler that lends server processes from transaction to transaction, a transaction stays open, which keeps
    the process. A lock of the session would stay with the process, which others use later.
    """

    def __init__(self, target: Target, application: str) -> None:
        self.session = target.connect(application_name=application)
        self.pooled = is_pooled(self.session)
        self.pid = -1
        """The number of the server process, as the server knows it, while it has the lock."""

    def take(self, processes: Sequence[int]) -> tuple[object, ...] | None:
        """Takes the lock and returns None. If another lab has it, returns a description of that lab's session and does
        not keep the lock. `processes` are this lab's.

        Raises _CannotLock.
        """
        try:
            if self.pooled:
                self.session.execute("BEGIN")
                self.session.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
            function = "pg_try_advisory_xact_lock_shared" if self.pooled else "pg_try_advisory_lock_shared"
            value(self.session, f"SELECT {function}(%s, %s)", *_KEYS)
            self.pid = int(value(self.session, "SELECT pg_backend_pid()"))
            other = self.session.execute(_OTHERS.encode(), (*_KEYS, [self.pid, *processes])).fetchone()
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.InsufficientPrivilege) as error:
            self._release()
            raise _CannotLock(one_line(error)) from None
        except psycopg.OperationalError as error:
            if not self.pooled:
                raise
            self._release()
            raise _CannotLock(one_line(error)) from None
        if other is not None:
            # otherwise of two labs that come at the same time neither would get the lock
            self._release()
        return other

    def _release(self) -> None:
        with suppress(psycopg.OperationalError):
            if self.pooled:
                self.session.execute("ROLLBACK")
            else:
                self.session.execute("SELECT pg_advisory_unlock_shared(%s, %s)", _KEYS)

    def is_alive(self) -> bool:
        """True if the session is alive, and so still has the lock."""
        try:
            self.session.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True


class _HeldServer:
    """A server that is locked, and the arms that use it, with the numbers and databases of their deployments."""

    def __init__(self, arm: str, number: int, target: Target, lock: _LockSession) -> None:
        self.target = target
        self.lock = lock
        self.used_by = [(arm, number, target.dbname)]


class ServerLocks:
    """The given servers of one study, each recognised however it is named. On exit their locks are released."""

    def __init__(self, study: str, patience_s: float = 0.0, leaving_s: float = LEAVING_S) -> None:
        """`study` is the study's name for people at other labs.

        `patience_s` limits how long to wait for a server that does not answer, `leaving_s` how long to wait for another
        lab that may be about to end, in seconds.
        """
        self._patience_s, self._leaving_s = patience_s, leaving_s
        # every role sees the application_name of a session
        since = f" since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        named = f"{LOCK_APPLICATION}{study}".encode()[: _LONGEST_NAME - len(since)].decode(errors="ignore")
        self._application = named + since
        self._held: list[_HeldServer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._held:
            held.lock.session.close()

    def take(self, arms: Mapping[str, Arm]) -> list[str]:
        """Locks the given servers of all arms. Returns a sentence for each that cannot be locked.

        Raises StudyError if another lab has one of them, if two deployments of an arm are one server, and if it cannot
        be known whether two are one; ArmError if a server fails.
        """
        notes: list[str] = []
        for name, arm in arms.items():
            if isinstance(arm.setup, Given):
                for number, target in enumerate(arm.targets or ()):
                    with _told(name, target):
                        notes += self._add(name, number, target)
        return notes

    def take_one(self, target: Target) -> list[str]:
        """Locks one server that belongs to no arm; otherwise like `take`."""
        with _told("", target):
            return self._add("", 0, target)

    def renew(self) -> None:
        """Takes those locks again that were lost with their sessions, as at a restart of the server.

        Raises ArmError if another lab has a server now.
        """
        for held in self._held:
            if not held.lock.is_alive():
                held.lock.session.close()
                arm = held.used_by[0][0]
                try:
                    with _told(arm, held.target):
                        held.lock = self._connect(held.target)
                        self._lock(arm, held)
                except StudyError as error:
                    raise ArmError(str(error)) from None

    def in_common(self) -> tuple[list[str], Target] | None:
        """Returns the arms whose deployments of the same number are one server, and that server; None if there are no
        such arms."""
        for held in self._held:
            for number in sorted({number for _, number, _ in held.used_by}):
                arms = [arm for arm, other, _ in held.used_by if other == number]
                if len(arms) > 1:
                    return arms, held.target
        return None

    def _add(self, arm: str, number: int, target: Target) -> list[str]:
        lock = self._connect(target)
        try:
            for held in self._held:
                same = same_server(held.lock.session, lock.session)
                if same is None:
                    raise StudyError(
                        f"{_of(arm)}it cannot be known whether {target.label} and {held.target.label} are one "
                        "server: the role may see neither its start (pg_postmaster_start_time, pg_control_system) nor "
                        "its locks (pg_locks); grant that, or name one server alone"
                    )
                if same:
                    _join(held, arm, number, target)
                    lock.session.close()
                    return []
            held = _HeldServer(arm, number, target, lock)
            notes = self._lock(arm, held)
        except BaseException:
            lock.session.close()
            raise
        self._held.append(held)
        return notes

    def _connect(self, target: Target) -> _LockSession:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return _LockSession(target, self._application)
            except psycopg.OperationalError as error:
                if time.monotonic() >= deadline or is_final(error):
                    raise
            time.sleep(_PAUSE_S)

    def _lock(self, arm: str, held: _HeldServer) -> list[str]:
        """Takes the lock, or waits a moment for another lab that is about to end."""
        deadline = time.monotonic() + self._leaving_s
        processes = [other_held.lock.pid for other_held in self._held if other_held is not held]
        try:
            while True:
                if (other := held.lock.take(processes)) is None:
                    return []
                if time.monotonic() > deadline:
                    raise StudyError(f"{_of(arm)}{_in_use(held.target, other)}")
                time.sleep(_PAUSE_S * random.uniform(0.5, 1.5))
        except _CannotLock as why:
            if held.lock.session.broken:  # a pooler for single statements ends such a session
                held.lock = self._connect(held.target)
            return [
                f"{held.target.label} cannot be locked for this study ({why}), and another lab on this server would "
                "not be noticed; see to it that no other study runs there"
            ]


def _join(held: _HeldServer, arm: str, number: int, target: Target) -> None:
    for name, of, database in held.used_by:
        if (name, database) == (arm, target.dbname):
            raise StudyError(
                f"{_of(arm)}{target.label}, its deployment {number + 1}, is the database of its deployment {of + 1}"
                "; name each deployment once"
            )
    held.used_by.append((arm, number, target.dbname))


def _in_use(target: Target, other: tuple[object, ...]) -> str:
    pid, application, user, database, address = other
    client = f" from {address}" if address else ""
    return (
        f"another lab has a study on the server of {target.label}: {application or 'a session'}, process {pid} there, "
        f"role {user or 'unknown'}, database {database or 'unknown'}{client}; wait until that study has ended, "
        f"or if its lab is gone, end the session by SELECT pg_terminate_backend({pid})"
    )


def _of(arm: str) -> str:
    return f"arms.{arm}: " if arm else ""


@contextmanager
def _told(arm: str, target: Target) -> Iterator[None]:
    """Turns an error of the server or of libpq within the context into an ArmError."""
    try:
        yield
    except psycopg.Error as error:
        reason = reason_of(error)
        cure = f"; {known}" if (known := cure_of(reason, {})) is not None else ""
        raise ArmError(f"{_of(arm)}cannot lock {target.label} for the study: {reason}{cure}") from None
