"""From a server that has just started to one in the state that every trial's load begins with."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg

from pgtrial.arm.connect import Target
from pgtrial.errors import StudyError
from pgtrial.study.spec import SetUp

Session = psycopg.Connection[tuple[Any, ...]]

_PREWARM = """SELECT sum(pg_prewarm(relation)) FROM (
    SELECT c.oid::regclass FROM pg_class c
        WHERE c.relname LIKE 'pgbench\\_%' AND c.relkind = 'r' AND pg_table_is_visible(c.oid)
    UNION ALL SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE c.relname LIKE 'pgbench\\_%' AND c.relkind = 'r' AND pg_table_is_visible(c.oid)) AS warm(relation)"""


def run_setup_sql(session: Session, arm: str, setup: SetUp) -> None:
    """Run the arm's own SQL on its fresh copy. Raises StudyError naming the statement that PostgreSQL refuses."""
    for statement in setup.setup_sql:
        try:
            session.execute(statement.encode())
        except psycopg.Error as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StudyError(f"[arms.{arm}] setup_sql {statement.strip()[:60]!r} failed: {said}") from None


def warm_relations(session: Session, setup: SetUp) -> str | None:
    """Read tables and indexes into shared buffers by pg_prewarm; a note when that is not to be had.

    A given server is not altered: there the extension is used only if it is installed already.
    """
    try:
        if not session.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_prewarm'").fetchone():
            if setup.dsn is not None:
                return "pg_prewarm is not installed on the given server: the warm-up alone fills its buffers"
            if not session.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'").fetchone():
                return "this server comes without pg_prewarm: the warm-up alone fills its buffers"
            session.execute("CREATE EXTENSION pg_prewarm")
        session.execute(_PREWARM)
    except psycopg.errors.InsufficientPrivilege:
        return "the role may not use pg_prewarm: the warm-up alone fills the buffers"
    return None


class Checkpoint:
    """The lab's own CHECKPOINT at a fixed moment, so that every trial is measured at the same phase of the cycle."""

    def __init__(self, target: Target):
        self.duration_s: float | None = None
        self.ended: float | None = None
        self.refusal: str | None = None
        self._session = target.connect()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None

    def issue_after(self, delay_s: float) -> None:
        """Issue it in the background, so many seconds from now."""
        self._thread = threading.Thread(target=self._issue, args=(delay_s,), daemon=True)
        self._thread.start()

    def issue_now(self) -> None:
        """Issue it and wait for its end."""
        self._issue(0.0)

    def close(self) -> None:
        """Wait for its end if it has begun; forget it if it has not."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join()
        self._session.close()

    def note(self, measured_since: float | None) -> str | None:
        """What a reader should know; `measured_since` is the start of the measured part by time.monotonic()."""
        if self.refusal is not None:
            return self.refusal
        if self.ended is None or self.duration_s is None or measured_since is None or self.ended <= measured_since:
            return None
        return (
            f"the checkpoint issued in the warm-up took {self.duration_s:.1f}s and ended "
            f"{self.ended - measured_since:.1f}s into the measured part; a longer warm-up keeps it out"
        )

    def _issue(self, delay_s: float) -> None:
        if self._cancelled.wait(delay_s):
            return
        start = time.monotonic()
        try:
            self._session.execute("CHECKPOINT")
        except psycopg.errors.InsufficientPrivilege:
            self.refusal = "no checkpoint before the measured part: the role may not issue one (grant pg_checkpoint)"
        except psycopg.Error as error:
            self.refusal = (
                f"the checkpoint in the warm-up failed: {str(error).splitlines()[0] if str(error) else error!r}"
            )
        else:
            self.ended = time.monotonic()
            self.duration_s = self.ended - start
