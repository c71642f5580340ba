"""Reads the progress of a job from the server while it runs (pg_stat_progress_*), and watches the server's memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.evidence.observe.linux import server_memory
from pgtrial.loads.target import Session
from pgtrial.machines.interrupt import held_off
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.windows import AnyMachine

MEMORY_EVERY_S = 0.25

_VIEWS = {
    "create_index": (("tuples_done", "tuples_total"), ("blocks_done", "blocks_total")),
    "vacuum": (
        ("indexes_processed", "indexes_total"),
        ("heap_blks_vacuumed", "heap_blks_total"),
        ("heap_blks_scanned", "heap_blks_total"),
    ),
    "analyze": (("sample_blks_scanned", "sample_blks_total"),),
    "copy": (("bytes_processed", "bytes_total"),),
    "cluster": (("heap_blks_scanned", "heap_blks_total"),),
    "basebackup": (("backup_streamed", "backup_total"),),
}
"""For each progress view, the pairs of a counter and its total, those of the latest phase first."""

_AVAILABLE = """SELECT relname FROM pg_catalog.pg_class
    WHERE relnamespace = 'pg_catalog'::regnamespace AND relname LIKE 'pg\\_stat\\_progress\\_%'"""
_OF_CLIENTS = "pid IN (SELECT pid FROM pg_stat_activity WHERE client_port IS NOT NULL AND pid <> pg_backend_pid())"
"""SQL condition for the server processes of clients. It excludes autovacuum and the session that evaluates the
condition."""
_QUICKLY = "SET LOCAL statement_timeout = '1s'"
"""The statement that limits the time of a query, since the job that is being observed may hold locks on which the query
would wait."""


@dataclass(frozen=True)
class Progress:
    """The progress of a command that the server is executing."""

    command: str
    """The command in lower case, such as `create index` or `vacuum`."""
    phase: str
    share: float | None
    """The share of the phase that is complete, from 0 to 1; None if the server does not report it."""


class ProgressViews:
    """Reads the progress views of a server. Versions before 9.6 have none, and later versions have more of them."""

    def __init__(self, session: Session) -> None:
        """Finds out which progress views the server has. Raises psycopg.Error if the query for them fails."""
        self._session = session
        known = {name for (name,) in session.execute(_AVAILABLE.encode()).fetchall()}
        parts = [
            f"SELECT '{name}', to_jsonb(p) FROM pg_stat_progress_{name} p WHERE {_OF_CLIENTS}"
            for name in _VIEWS
            if f"pg_stat_progress_{name}" in known
        ]
        self._query = " UNION ALL ".join(parts)

    def look(self) -> Progress | None:
        """Returns the progress of the command that is running; None if no command reports any, or if the query for the
        progress would have to wait for a lock of that command."""
        if not self._query:
            return None
        try:
            with self._session.transaction():
                self._session.execute(_QUICKLY)
                row = self._session.execute(f"{self._query} LIMIT 1".encode()).fetchone()
        except (psycopg.errors.QueryCanceled, psycopg.errors.InsufficientPrivilege):
            return None
        return None if row is None else progress_of(*row)


def progress_of(view: str, row: Mapping[str, Any]) -> Progress:
    """Returns the progress that is in a row of a progress view."""
    pairs = ((row.get(done), row.get(total)) for done, total in _VIEWS[view])
    share = next((done / total for done, total in pairs if done and total), None)
    command = row.get("command") or view.replace("_", " ")
    phase = row.get("phase") or row.get("type") or ""
    return Progress(str(command).lower(), str(phase).lower(), None if share is None else min(1.0, share))


class PeakMemory:
    """A context manager that regularly measures the memory of a server's processes, as long as the context lasts.
    `bytes` is the largest value; None if nothing could be measured."""

    def __init__(self, machine: AnyMachine | None, data_directory: Path | None) -> None:
        self.bytes: float | None = None
        self._directory = data_directory if machine is LOCAL and os.path.exists("/proc/self/smaps_rollup") else None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> PeakMemory:
        if self._directory is not None:
            with held_off():
                self._thread = threading.Thread(target=self._watch, args=(self._directory,), name="memory", daemon=True)
                self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, directory: Path) -> None:
        with suppress(OSError):  # the trial goes on without this value
            while True:
                size = server_memory(directory)
                if size is not None:
                    self.bytes = max(self.bytes or 0.0, size)
                if self._over.wait(MEMORY_EVERY_S):
                    return
