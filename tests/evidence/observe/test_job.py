"""Tests of the progress that a server reports of a running job."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import psycopg
import pytest

from pgtrial.evidence.observe.job import Progress, ProgressViews, progress_of
from pgtrial.evidence.observe.linux import proportional


@pytest.mark.parametrize(
    ("view", "row", "progress"),
    [
        (
            "create_index",
            {"command": "CREATE INDEX", "phase": "building index: scanning table", "blocks_done": 30,
             "blocks_total": 120, "tuples_done": 0, "tuples_total": 0},
            Progress("create index", "building index: scanning table", 0.25),
        ),
        (
            "create_index",
            {"command": "CREATE INDEX", "phase": "building index: loading tuples in tree", "blocks_done": 0,
             "blocks_total": 0, "tuples_done": 50, "tuples_total": 100},
            Progress("create index", "building index: loading tuples in tree", 0.5),
        ),
        (
            "vacuum",
            {"phase": "scanning heap", "heap_blks_total": 10, "heap_blks_scanned": 1, "heap_blks_vacuumed": 0,
             "indexes_total": 0, "indexes_processed": 0},
            Progress("vacuum", "scanning heap", 0.1),
        ),
        (
            "copy",
            {"command": "COPY FROM", "type": "FILE", "bytes_processed": 300, "bytes_total": 0},
            Progress("copy from", "file", None),
        ),
    ],
)  # fmt: skip
def test_the_share_is_that_of_the_phase(view, row, progress):
    assert progress_of(view, row) == progress


def test_memory_that_processes_share_is_counted_once():
    rollup = "7ffe-7fff ---p 00000000 00:00 0 [rollup]\nRss:   2048 kB\nPss:   1536 kB\nPss_Anon:  1024 kB\n"
    assert proportional(rollup) == 1536 * 1024
    assert proportional("") is None


@pytest.mark.server
def test_a_vacuum_is_seen_while_it_runs_and_a_server_that_does_nothing_reports_nothing(clusters):
    target = clusters(18).target
    with target.connect_as_user() as looking, target.connect_as_user() as working:
        views = ProgressViews(looking)
        assert views.look() is None
        working.execute("DROP TABLE IF EXISTS slowly")
        working.execute("CREATE TABLE slowly AS SELECT g, repeat('x', 1000) FROM generate_series(1, 2000) g")
        working.execute("SET vacuum_cost_delay = 20")
        working.execute("SET vacuum_cost_limit = 1")
        vacuum = threading.Thread(target=_until_cancelled, args=(working, "VACUUM (FREEZE, PARALLEL 0) slowly"))
        vacuum.start()
        seen = None
        deadline = time.monotonic() + 60
        while (seen is None or seen.share is None) and vacuum.is_alive() and time.monotonic() < deadline:
            seen = views.look()
        working.cancel()
        vacuum.join()
        assert seen is not None
        assert (seen.command, seen.phase) == ("vacuum", "scanning heap")
        assert seen.share is not None
        assert 0 < seen.share < 1
        working.execute("DROP TABLE slowly")


def _until_cancelled(session, statement):
    with suppress(psycopg.errors.QueryCanceled):
        session.execute(statement)
