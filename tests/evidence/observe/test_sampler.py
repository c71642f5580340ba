"""Tests on a real server of what a sampler observes, what it must not observe, and that it does not harm the server."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import psycopg
import pytest

from pgtrial.evidence.observe import sampler as sampling
from pgtrial.evidence.observe.sampler import OwnTime, Sampler, waits_of
from pgtrial.evidence.observe.views import Session, Views
from pgtrial.loads.client_processes import count_clients
from pgtrial.machines.machine import LOCAL, Done, HostLost
from pgtrial.machines.windows import WindowsHost
from tests.conftest import require
from tests.machines.shell import ShellMachine

PATIENCE_S = 120.0
ALL_S = 3600.0
"""A time in seconds that is longer than any test."""


@contextmanager
def waiting_for_a_lock(cluster) -> Iterator[None]:
    """Yields a session that waits for a lock of another session until the context ends."""
    with cluster.target.connect_as_user(application_name="holder") as holder:
        holder.execute("SELECT pg_advisory_lock(77)")
        with cluster.target.connect_as_user(application_name="waiter") as waiter:
            thread = threading.Thread(target=waiter.execute, args=("SELECT pg_advisory_lock(77)",))
            thread.start()
            try:
                until(lambda: waits(holder, waiter.info.backend_pid))
                yield
            finally:
                holder.execute("SELECT pg_advisory_unlock(77)")
                thread.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def waits(session: Session, process: int) -> bool:
    """True if this server process waits for an advisory lock. The view shows the wait a moment after it begins."""
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'advisory'"
    return session.execute(query, (process,)).fetchone() is not None


def begin(watching: Sampler) -> None:
    """Tells the sampler that the load and the measured part begin now, before its first sample; this process stands for
    the load.
    """
    watching.measure_begins()
    watching.load_begins(os.getpid())


@pytest.fixture
def often(monkeypatch):
    """Looks as often as a test can wait for."""
    monkeypatch.setattr(sampling, "WAITS_EVERY_S", 0.05)


@pytest.mark.server
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("major", "machine"), [(10, LOCAL), (15, LOCAL), (18, LOCAL), (18, ShellMachine())])
def test_a_session_that_waits_is_seen_with_what_it_waits_for(clusters, major, machine):
    require(Path("/proc/stat").exists(), "Linux")
    cluster = clusters(major)
    watching = Sampler(cluster.target.connect, machine, cluster.data_directory)
    expected = {"cpu", "memory", "processes", "pg_stat_database", *(["pg_stat_io"] if major >= 16 else [])}
    with waiting_for_a_lock(cluster), watching:
        begin(watching)
        until(lambda: len(watching._readings) >= 1)
        # a session reports its counters when it ends
        with cluster.target.connect_as_user() as worker:
            worker.execute("SELECT count(*) FROM pg_class")
        until(lambda: expected <= set(watching.seen(ALL_S).observed["source"]))
    seen = watching.seen(ALL_S)
    since = {"pg_stat_wal": 14, "pg_stat_slru": 13, "pg_stat_io": 16}
    assert seen.notes == [
        f"not observed: {name}, which PostgreSQL has from {first} on" for name, first in since.items() if major < first
    ]
    waiting = seen.waits.filter(pl.col("wait_event") == "advisory")
    assert set(waiting["wait_event_type"]) == {"Lock"}
    assert set(waiting["state"]) == {"active"}
    assert waiting["sessions"].max() == 1.0
    assert "checkpointer" in set(seen.waits["backend_type"])
    locks = seen.observed.filter((pl.col("source") == "pg_locks") & (pl.col("name") == "ExclusiveLock waiting"))
    assert locks["value"].max() == 1.0
    assert seen.cost["samples"] >= 3
    assert 0 < seen.cost["lab_cpu_s"] < 60
    assert 0 < seen.cost["server_cpu_s"] < 60
    assert watching.seen(0).cost == dict.fromkeys(seen.cost, 0.0), "no look was in the measured part"


@pytest.mark.server
@pytest.mark.usefixtures("often")
def test_the_sampler_does_not_see_the_lab_itself(clusters):
    cluster = clusters(18)
    with cluster.target.connect_as_user() as other:
        # those of tests before have hung up, and may still be there
        until(lambda: count_clients(other) == 0)
        with Sampler(cluster.target.connect, None, None) as watching:
            begin(watching)
            until(lambda: len(watching._sessions) >= 2)
    assert "client backend" not in set(watching.seen(ALL_S).waits["backend_type"])


@pytest.mark.server
@pytest.mark.usefixtures("often")
def test_a_role_without_rights_sees_its_own_sessions_and_is_told_once_what_it_misses(clusters):
    cluster = clusters(18)
    with cluster.target.connect_as_user() as admin:
        admin.execute("CREATE ROLE plain LOGIN")
        try:
            with cluster.target.connect_as_user(user="plain", application_name="load") as own:
                own.execute("SELECT 1")
                watching = Sampler(lambda: cluster.target.connect_as_user(user="plain"), None, None)
                with watching:
                    begin(watching)
                    until(lambda: len(watching._readings) >= 2)
        finally:
            admin.execute("DROP ROLE plain")
    seen = watching.seen(ALL_S)
    assert set(seen.waits["backend_type"]) == {"client backend"}
    assert seen.notes == ["not observed: sessions of others, which the role may not see (grant pg_read_all_stats)"]
    assert "server_cpu_s" not in seen.cost


@pytest.mark.server
@pytest.mark.usefixtures("often")
def test_a_server_that_goes_away_ends_the_sampler_and_keeps_what_it_saw(start_cluster):
    cluster = start_cluster()
    with Sampler(cluster.target.connect, None, None) as watching:
        begin(watching)
        until(lambda: len(watching._sessions) >= 2)
        cluster.stop(immediate=True)
        until(lambda: bool(watching._notes))
    seen = watching.seen(ALL_S)
    assert not seen.waits.is_empty()
    assert len(seen.notes) == 1
    assert seen.notes[0].startswith("the sampler ended early: ")


class Gone(ShellMachine):
    """A host that answers so many scripts, and then no more."""

    def __init__(self, scripts: int):
        super().__init__()
        self._scripts = scripts

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        if self.round_trips >= self._scripts:
            raise HostLost("somebody@somewhere is gone")
        return super().sh(script, timeout_s=timeout_s)


@pytest.mark.server
@pytest.mark.usefixtures("often")
def test_a_host_that_goes_away_is_a_note_and_the_server_is_looked_at_to_the_end(clusters):
    require(Path("/proc/stat").exists(), "Linux")
    cluster = clusters(18)
    with Sampler(cluster.target.connect, Gone(3), cluster.data_directory) as watching:
        begin(watching)
        until(lambda: bool(watching._notes))
        seen = len(watching._readings)
        until(lambda: len(watching._readings) >= seen + 2)
    assert watching.seen(ALL_S).notes == [
        "the server's host was not observed to the end: somebody@somewhere is gone",
    ]
    assert "cpu" in watching._readings[0].counters
    assert "cpu" not in watching._readings[-1].counters
    assert "pg_stat_database" in watching._readings[-1].counters


@pytest.mark.server
@pytest.mark.usefixtures("often")
def test_a_host_that_is_costly_to_look_at_does_not_keep_the_sampler_from_the_server(clusters):
    class Costly(WindowsHost):
        label = "me@windows"
        looks = 0

        def powershell(self, script: str) -> str:
            self.looks += 1
            own = [{"ProcessId": pid, "ParentProcessId": 1, "KernelModeTime": 0, "UserModeTime": 0} for pid in sessions]
            return json.dumps({"cpu": [{}], "processes": own, "own": 100 * 10**7})

    def connect():
        session = clusters(18).target.connect_as_user()
        sessions.append(session.info.backend_pid)
        return session

    sessions: list[int] = []
    host = Costly()
    with Sampler(connect, host, None) as watching:
        begin(watching)
        until(lambda: len(watching._looks) > 4)
    assert host.looks == 1
    assert watching.seen(ALL_S).cost["server_cpu_s"] == 100.0


def test_a_server_that_cannot_be_reached_is_a_note_and_no_error(tmp_path):
    def connect() -> psycopg.Connection:
        return psycopg.connect(host=str(tmp_path), dbname="none")

    with Sampler(connect, None, None) as watching:
        begin(watching)
    seen = watching.seen(ALL_S)
    assert seen.waits.is_empty()
    assert seen.observed.is_empty()
    assert seen.notes[0].startswith("the sampler ended early: ")


@pytest.mark.server
def test_a_load_that_was_never_measured_was_not_observed(clusters):
    with Sampler(clusters(18).target.connect, None, None) as watching:
        watching.load_begins(os.getpid())
        until(lambda: len(watching._looks) >= 1)
    assert watching.seen(ALL_S).waits.is_empty()


@pytest.mark.server
def test_every_version_reads_its_views_in_one_statement(cluster):
    with cluster.target.connect_as_user() as session:
        views = Views(session)
        # a session reports once a second what it has done itself, and others when they have ended
        until(lambda: views.read()["pg_stat_database"]["xact_commit"] > 0)
        values = views.read()
        version = session.info.server_version
        assert views.statements() == {}
    assert views.refused == []
    assert {"pg_stat_database", "pg_stat_bgwriter"} <= values.keys()
    since = {"pg_stat_wal": 14, "pg_stat_slru": 13, "pg_stat_io": 16, "pg_stat_checkpointer": 17}
    for name, first in since.items():
        assert (name in values) == (version >= first * 10000), name
    assert views.lacking == {name: since[name] for name in list(since)[:3] if name not in values}


@pytest.mark.server
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("major", [10, 15])
def test_statements_are_counted_over_the_whole_load_where_the_extension_is_in_use(start_cluster, major):
    cluster = start_cluster(major, settings={"shared_preload_libraries": "pg_stat_statements"})
    with cluster.target.connect_as_user() as worker:
        available = worker.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_stat_statements'").fetchone()
        require(available, f"pg_stat_statements for PostgreSQL {major}")
        worker.execute("CREATE EXTENSION pg_stat_statements")
        worker.execute("SELECT count(*) FROM pg_class")
        with Sampler(cluster.target.connect, None, None) as watching:
            begin(watching)
            until(lambda: len(watching._looks) >= 1)
            worker.execute("SELECT count(*) FROM pg_class")
    observed = watching.seen(ALL_S).observed
    told = observed.filter(pl.col("name") == "calls: SELECT count(*) FROM pg_class")
    assert told.rows() == [(None, "pg_stat_statements", "calls: SELECT count(*) FROM pg_class", 1.0)]
    kinds = {name.partition(": ")[0] for name in observed.filter(pl.col("source") == "pg_stat_statements")["name"]}
    assert kinds - {"wal_bytes"} == {"calls", "exec_ms", "rows", "blks_hit", "blks_read"}
    assert ("wal_bytes" in kinds) == (major >= 13)


def test_of_a_load_that_alternates_only_looks_within_its_slices_count():
    busy, idle = ("client backend", None, None, "active"), ("client backend", None, None, "idle")
    moments = [
        (100.1, 100.2, busy),
        (100.7, 100.8, idle),
        (100.9, 101.1, idle),
        (101.0, 101.2, busy),
        (102.2, 102.3, busy),
    ]
    looks = [(began, ended, {doing: 4}) for began, ended, doing in moments]
    own = OwnTime(101.0, [(100.0, 100.5), (101.0, 101.5), (102.0, 102.5)])
    assert waits_of(looks, 101.0, 2, own).rows() == [(second, *busy, 4.0) for second in (-1, 0, 1)]
    assert waits_of(looks, 101.0, 1, own)["second"].to_list() == [-1, 0]
    assert [row[-2] for row in waits_of(looks, 100.9, 2).rows()] == ["active", "idle", "active", "idle", "active"]
