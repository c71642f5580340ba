"""The counters of every supported version, under the same names."""

import time

import pytest

from pgtrial.evidence.observe import views
from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.pgbench_tables import PgbenchTables

PATIENCE_S = 120.0


@pytest.mark.quick
@pytest.mark.server
def test_every_version_gives_the_same_core_of_counters(cluster):
    with cluster.target.connect_as_user() as session:
        read = views.read_counters(session)
    assert {"xact_commit", "xact_rollback", "blks_read", "blks_hit", "deadlocks"} <= read["database"].keys()
    of_wal = {"wal_records", "wal_fpi", "wal_bytes", "wal_write", "wal_sync"}
    assert of_wal <= read["wal"].keys() if cluster.server.major >= 14 else "wal" not in read
    assert {"num_timed", "num_requested", "write_time", "sync_time", "buffers_written"} <= read["checkpointer"].keys()
    assert {"buffers_clean", "buffers_alloc"} <= read["bgwriter"].keys()
    of_rows = {"sequential_scans", "rows_read_sequentially", "inserted", "updated", "hot_updated", "deleted"}
    assert read["tables"].keys() == of_rows
    assert not any(name.startswith("checkpoint") for name in read["bgwriter"])


@pytest.mark.quick
@pytest.mark.server
def test_a_delta_holds_the_work_done_in_between(cluster):
    with cluster.target.connect_as_user() as session:
        # sessions of the tests before tell what they did when they end
        wait_for_clients_to_leave(session, 0, PATIENCE_S)
        before = views.read_counters(session)
        with cluster.target.connect_as_user() as worker:
            worker.execute("CREATE TABLE pgbench_work AS SELECT generate_series(1, 1000) AS n")
            worker.execute("UPDATE pgbench_work SET n = -n WHERE n <= 5")
            worker.execute("CHECKPOINT")
        wait_for_clients_to_leave(session, 0, PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        # the checkpointer reports a checkpoint after it has told whoever waits for its end
        while not (changes := views.deltas(before, views.read_counters(session)))["checkpointer"]["num_requested"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        relations = views.read_relations(session, PgbenchTables(1).relations(session))
        session.execute("DROP TABLE pgbench_work")
    assert changes["database"]["tup_inserted"] >= 1000
    assert changes["tables"]["inserted"] == 1000
    assert changes["tables"]["updated"] == 5
    assert changes["tables"]["rows_read_sequentially"] >= 1000
    if cluster.server.major >= 14:
        assert changes["wal"]["wal_bytes"] > 30_000
    assert relations["pgbench_work"]["bytes_table"] > 0
    assert relations["pgbench_work"]["live_tuples"] == 1000


def test_a_counter_that_was_reset_in_between_is_left_out():
    before = {"wal": {"wal_bytes": 100.0, "wal_fpi": 1.0}, "gone": {"x": 1.0}}
    after = {"wal": {"wal_bytes": 5.0, "wal_fpi": 3.0, "new": 7.0}}
    assert views.deltas(before, after) == {"wal": {"wal_fpi": 2.0}}
