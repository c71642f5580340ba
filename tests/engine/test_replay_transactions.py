"""Replays of what an application did without BEGIN: a batch, which the extended protocol ends with one Sync."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgtrial.loads.target import Target
from tests.conftest import StartCluster
from tests.engine.capture_program import captured
from tests.engine.events import done_of, events_of
from tests.engine.programs import Program
from tests.engine.sessions import wait_until_left

PREFIX = "%m [%p] %v %q%u@%d/%a "
INSERT = "INSERT INTO t VALUES (%s)"


def work(target: Target) -> None:
    """Sends a batch, one that fails and is undone as a whole, and a statement of its own."""
    with target.connect_as_user() as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, [(number,) for number in range(1, 21)])
        with pytest.raises(psycopg.errors.UniqueViolation):
            cursor.executemany(INSERT, [(31,), (32,), (5,), (33,)])
        cursor.execute(INSERT, (40,))
    wait_until_left(target)


def ids(target: Target) -> list[int]:
    with target.connect_as_user() as connection:
        return [number for (number,) in connection.execute("SELECT id FROM t ORDER BY id")]


@pytest.mark.server
def test_a_batch_is_one_transaction_in_the_replay(replay: Program, start_cluster: StartCluster, tmp_path: Path) -> None:
    settings = {
        "log_min_duration_statement": "0",
        "log_line_prefix": PREFIX,
        "log_parameter_max_length_on_error": "-1",
        "fsync": "off",
    }
    cluster = start_cluster(18, settings=settings)
    recorded, copy = (replace(cluster.target, dbname=name) for name in ("recorded", "copy"))
    with cluster.target.connect_as_user() as connection:
        for target in (recorded, copy):
            connection.execute(f"CREATE DATABASE {target.dbname}")
    for target in (recorded, copy):
        with target.connect_as_user() as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        wait_until_left(target)
    log = cluster.data_directory.with_suffix(".log")
    before = log.stat().st_size
    work(recorded)
    (tmp_path / "server.log").write_bytes(log.read_bytes()[before:])
    capture = tmp_path / "capture"
    found = captured(capture, tmp_path / "server.log", "--prefix", PREFIX, "--database=recorded")
    assert found.left_out()["begin-added"] == 2
    events = tmp_path / "events.jsonl"
    done = replay.run(copy, "--as-fast-as-possible", "--events", str(events), str(capture))
    assert done.status == 0, done.stderr
    said = done_of(events_of(events.read_text()))["replay"]
    assert (said["unexpected_failures"], said["missing_failures"]) == ({}, {})
    assert said["statements"] - said["transactions"] == 21 + 4
    assert ids(copy) == ids(recorded) == [*range(1, 21), 40]
