"""Limits how long the lab's own statements wait for locks on a given server.

A statement that waits for a strong lock also blocks all sessions that ask for the lock after it. Therefore the lab's
statement gives up after some seconds, and the error names the sessions that hold the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import psycopg

from pgtrial.loads.target import Session, is_pooled
from pgtrial.model.errors import ArmError

LIMIT_S = 5
"""The longest time for which a statement of the lab waits for a lock, in seconds."""

_LOOK_S = 0.5
"""The pause between two queries for the sessions that hold the lock, in seconds."""

_WANTED = """SELECT DISTINCT format('%%I.%%I', n.nspname, c.relname) AS name FROM pg_locks l
    JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
    WHERE NOT l.granted AND l.pid = %s ORDER BY name"""

_BLOCKING = """SELECT format('process %%s of %%s', a.pid, coalesce(a.usename, 'the server'))
    FROM pg_stat_activity a WHERE a.pid = ANY (pg_blocking_pids(%s)) ORDER BY a.pid"""


class LockWait(ArmError):
    """Raised when another session holds a lock that a statement of the lab needs."""


@contextmanager
def short_lock_waits(session: Session, connect: Callable[[], Session]) -> Iterator[None]:
    """Limits the time for which statements of the session wait for a lock within the context to LIMIT_S seconds. Raises
    LockWait.

    `connect` opens a second session, which finds the sessions that hold the lock. Behind a pooler no limit is set,
    since the setting would stay in the server session, which other clients use later.
    """
    if is_pooled(session):
        yield
        return
    with _Look(session, connect) as look:
        session.execute(f"SET lock_timeout = '{LIMIT_S}s'".encode())
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            held = ", ".join(look.blocking) or "a session that has ended since"
            raise LockWait(
                f"{session.info.dbname}: pgtrial waited {LIMIT_S}s for a lock on {look.wanted}, which is locked "
                f"by {held}; end that session's transaction"
            ) from None
        finally:
            with suppress(psycopg.Error):
                session.execute(b"SET lock_timeout = 0")


class _Look:
    """Finds the sessions that hold the lock for which `session` waits. Sends its first query after the session has
    waited for a moment."""

    def __init__(self, session: Session, connect: Callable[[], Session]) -> None:
        self.blocking: list[str] = []
        self.wanted = "a table"
        """The object for whose lock the session waits, by its name if that is known."""
        self._process = session.info.backend_pid
        self._connect = connect
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Look:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(LIMIT_S)

    def _look(self) -> None:
        if self._over.wait(_LOOK_S):
            return
        with suppress(psycopg.Error, ArmError), closing(self._connect()) as session:
            while not self._over.wait(_LOOK_S):
                found = session.execute(_BLOCKING.encode(), (self._process,)).fetchall()
                self.blocking = [blocker for (blocker,) in found] or self.blocking
                wanted = session.execute(_WANTED.encode(), (self._process,)).fetchall()
                self.wanted = ", ".join(name for (name,) in wanted) or self.wanted
