"""Locks the given servers of a study, by an advisory lock that other labs see, so that two studies do not use one
server at the same time.

A database session of the lab holds the lock from the check of the arms to the end of the study; the lock ends with that
session. An advisory lock belongs to one database, but pg_locks shows the locks of all databases, so that labs in two
databases of one server see each other. Every lab takes the lock in shared mode and then looks in pg_locks for other
holders. Therefore, if two labs take the lock at the same time, at least one of them sees the other.
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
"""The two keys of the advisory lock: the bytes of the text `pgtrials`."""

_OTHERS = """SELECT locks.pid, application_name, usename, datname, host(client_addr)
    FROM pg_locks locks LEFT JOIN pg_stat_activity activity ON activity.pid = locks.pid
    WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted
    AND NOT locks.pid = ANY (%s) ORDER BY backend_start LIMIT 1"""

_PAUSE_S = 0.2
_LONGEST_NAME = 63
"""The longest application_name, in bytes."""


class _CannotLock(Exception):
    """Raised if the server, or a pooler in front of it, does not support the advisory lock."""


class _LockSession:
    """A database session that holds the lock of one server.

    Behind a pooler with transaction pooling, the lock is held by an open transaction, which keeps the same server
    process. A lock at session level would stay with a server process that other clients use later.
    """

    def __init__(self, target: Target, application: str) -> None:
        self.session = target.connect(application_name=application)
        self.pooled = is_pooled(self.session)
        self.pid = -1
        """The process ID (PID) of the server process that has the lock, as pg_backend_pid() returns it; -1 as long as
        the session has no lock."""

    def take(self, processes: Sequence[int]) -> tuple[object, ...] | None:
        """Takes the lock and returns None. If another lab has the lock, releases it again and returns a row that
        describes that lab's session. `processes` are the PIDs of this lab's other sessions with locks.

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
            # release it before the next attempt: if two labs kept their locks, each would find the lock of the other
            # forever
            self._release()
        return other

    def _release(self) -> None:
        with suppress(psycopg.OperationalError):
            if self.pooled:
                self.session.execute("ROLLBACK")
            else:
                self.session.execute("SELECT pg_advisory_unlock_shared(%s, %s)", _KEYS)

    def is_alive(self) -> bool:
        """True if the session still works, and therefore still has the lock."""
        try:
            self.session.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True


class _HeldServer:
    """A locked server, and the arms that use it: for each the arm's name, the number of its deployment and the
    database."""

    def __init__(self, arm: str, number: int, target: Target, lock: _LockSession) -> None:
        self.target = target
        self.lock = lock
        self.used_by = [(arm, number, target.dbname)]


class ServerLocks:
    """Holds the locks of the given servers of one study. A server that several arms use is locked once, even if their
    connection strings differ. On exit the locks are released."""

    def __init__(self, study: str, patience_s: float = 0.0, leaving_s: float = LEAVING_S) -> None:
        """`study` is the name of the study that users of other labs see in messages.

        `patience_s` is how long to wait for a server that does not answer, and `leaving_s` how long to wait for another
        lab that may be about to release its lock, both in seconds.
        """
        self._patience_s, self._leaving_s = patience_s, leaving_s
        # the name goes into application_name, which every role can see
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
        """Locks the given servers of all arms. Returns a sentence for each server that does not support the lock.

        Raises StudyError if another lab has locked one of the servers, if two deployments of an arm are the same
        database, or if pgtrial cannot find out whether two addresses lead to the same server. Raises ArmError if a
        server does not answer.
        """
        notes: list[str] = []
        for name, arm in arms.items():
            if isinstance(arm.setup, Given):
                for number, target in enumerate(arm.targets or ()):
                    with _as_arm_error(name, target):
                        notes += self._add(name, number, target)
        return notes

    def take_one(self, target: Target) -> list[str]:
        """Locks a single server that does not belong to an arm. Otherwise the same as `take`."""
        with _as_arm_error("", target):
            return self._add("", 0, target)

    def renew(self) -> None:
        """Takes those locks again whose sessions have ended, for example because the server was restarted.

        Raises ArmError if another lab has locked a server in the meantime.
        """
        for held in self._held:
            if not held.lock.is_alive():
                held.lock.session.close()
                arm = held.used_by[0][0]
                try:
                    with _as_arm_error(arm, held.target):
                        held.lock = self._connect(held.target)
                        self._lock(arm, held)
                except StudyError as error:
                    raise ArmError(str(error)) from None

    def in_common(self) -> tuple[list[str], Target] | None:
        """Returns the arms that share a server, that is whose deployments with the same number are the same server, and
        the address of this server. Returns None if no arms share a server."""
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
                        f"{_of(arm)}pgtrial cannot find out whether {target.label} and {held.target.label} are one "
                        "server: the role may query neither its identity (pg_postmaster_start_time, pg_control_system) "
                        "nor its locks (pg_locks); grant these rights, or name only one server"
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
        """Takes the lock. If another lab has it, waits for a moment, since that lab may be about to release it. Returns
        sentences for the user."""
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
            if held.lock.session.broken:  # a pooler with statement pooling closes the connection at BEGIN
                held.lock = self._connect(held.target)
            return [
                f"{held.target.label} cannot be locked for this study ({why}), so pgtrial would not notice another lab "
                "on this server; make sure that no other study runs there"
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
        f"another pgtrial runs a study on the server of {target.label}: {application or 'a session'}, process {pid} "
        f"there, role {user or 'unknown'}, database {database or 'unknown'}{client}; wait until that study has ended, "
        f"or if its lab is gone, end the session by SELECT pg_terminate_backend({pid})"
    )


def _of(arm: str) -> str:
    return f"arms.{arm}: " if arm else ""


@contextmanager
def _as_arm_error(arm: str, target: Target) -> Iterator[None]:
    """Turns an error of the server or of libpq within the context into an ArmError, whose message names the arm and the
    server."""
    try:
        yield
    except psycopg.Error as error:
        reason = reason_of(error)
        cure = f"; {known}" if (known := cure_of(reason, {})) is not None else ""
        raise ArmError(f"{_of(arm)}cannot lock {target.label} for the study: {reason}{cure}") from None
