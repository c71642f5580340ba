"""Runs that break or are broken off: what was measured is told, in text and in events, whatever happens."""

from __future__ import annotations

import json
import os
import signal

import pytest

from pgtrial.servers.cluster import Cluster
from tests.engine.events import (
    assert_consistent,
    done_of,
    events_of,
    has_counted,
    of_kind,
    run_with_events,
    wait_for,
)
from tests.engine.programs import TIMEOUT_S, ended, settle, settled
from tests.engine.sessions import SELECTS, wait_until_counting, wait_until_locked

pytestmark = pytest.mark.server


def test_a_client_that_is_given_up_leaves_the_others_running(peers, fresh, tmp_path):
    target = fresh()
    with target.connect_as_user() as connection:
        # the third transaction of all finds that it must not be
        connection.execute(
            "CREATE SEQUENCE turns; CREATE FUNCTION third() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('turns') = 3 THEN RAISE EXCEPTION 'not this one' USING ERRCODE = 'XX123'; END IF;"
            " RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE TRIGGER third BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION third()"
        )
    done, events = run_with_events(peers[1], target, tmp_path / "events", "-n", "-t", "20", "-c", "3", "-j", "2")
    assert done.status == 2
    assert_consistent(events)
    (error,) = of_kind(events, "error")
    assert (error["kind"], error["sqlstate"], error["command"]) == ("statement", "XX123", 9)
    assert error["message"].startswith("ERROR:  not this one\nCONTEXT:  PL/pgSQL function third()")
    end = done_of(events)
    assert (end["status"], end["clients_aborted"]) == (2, 1)
    assert end["measure"]["failures"] == {"XX123": 1}
    processed = end["measure"]["transactions"]
    assert 40 <= processed < 60
    assert f"number of transactions actually processed: {processed}/60\n" in done.stdout
    assert done.stderr.endswith("pgbench: error: Run was aborted; the above results are incomplete.\n")
    assert (
        f"pgbench: error: client {error['client']} script 0 aborted in command 9 query 0: ERROR:  not this one\n"
        in (done.stderr)
    )


def test_all_clients_given_up_leave_a_complete_account(peers, fresh, tmp_path):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute("DROP TABLE pgbench_history")
    args = ("-n", "-T", "60", "--warmup", "30", "-c", "5", "-j", "2", "-P", "1")
    done, events = run_with_events(peers[1], target, tmp_path / "events", *args)
    assert done.status == 2
    assert_consistent(events)
    assert len(of_kind(events, "error", sqlstate="42P01")) == 5
    end = done_of(events)
    assert end["clients_aborted"] == 5
    assert end["warmup"]["failures"] == {"42P01": 5}
    assert end["measure"] is None
    assert "number of transactions actually processed: 0\n" in done.stdout


def test_a_table_dropped_in_mid_run_ends_the_run_with_what_was_measured(peers, fresh, tmp_path):
    target = fresh()
    path = tmp_path / "events"
    with peers[1].start(target, ["-n", "-T", "60", "-c", "4", "-j", "2", "--events", str(path)]) as process:
        wait_for(path, has_counted)
        with target.connect_as_user() as connection:
            connection.execute("DROP TABLE pgbench_history")
        done = ended(process)
    events = events_of(path.read_text())
    assert done.status == 2
    assert_consistent(events)
    end = done_of(events)
    assert (end["clients_aborted"], end["measure"]["failures"]) == (4, {"42P01": 4})
    assert end["measure"]["transactions"] > 0
    assert f"number of transactions actually processed: {end['measure']['transactions']}\n" in done.stdout


@pytest.fixture
def doomed(start_cluster, peers) -> Cluster:
    """Returns a cluster of the test's own with loaded tables."""
    cluster: Cluster = start_cluster(18)
    peers[0].load(cluster.target)
    return cluster


@pytest.mark.parametrize("line", ["-T 60 -c 4 -j 2", "-T 60 -c 4 -C", "-T 60 -c 2 -M prepared -S"])
def test_a_server_stopped_in_mid_run_leaves_what_was_measured(peers, doomed, tmp_path, line):
    path = tmp_path / "events"
    with peers[1].start(doomed.target, ["-n", *line.split(), "--events", str(path)]) as process:
        wait_for(path, has_counted)
        doomed.stop(immediate=True)
        done = ended(process)
    events = events_of(path.read_text())
    assert done.status == 2
    assert_consistent(events)
    end = done_of(events)
    clients = events[0]["plan"]["clients"]
    assert (end["status"], end["interrupted"], end["clients_aborted"]) == (2, False, clients)
    assert len(of_kind(events, "error")) == clients
    assert sum(end["measure"]["failures"].values()) == clients
    assert {kind[:2] for kind in end["measure"]["failures"]} <= {"57", "08"}
    assert end["measure"]["transactions"] > 0
    assert f"number of transactions actually processed: {end['measure']['transactions']}\n" in done.stdout
    assert done.stderr.endswith("pgbench: error: Run was aborted; the above results are incomplete.\n")


def test_both_speak_alike_of_a_server_stopped_in_mid_run(peers, start_cluster):
    said = []
    for program in peers:
        cluster = start_cluster(18)
        peers[0].load(cluster.target)
        with program.start(cluster.target, ["-n", "-T", "60", "-S", "-c", "1"]) as process:
            wait_until_counting(cluster.target)
            cluster.stop(immediate=True)
            done = ended(process)
        assert done.status == 2
        # whether the server's warning arrives before the end of the connection is a race
        warning = "WARNING:  terminating connection due to immediate shutdown command\n"
        said.append((settle(done.stdout), done.stderr.replace(warning, "")))
    assert said[1] == said[0]


@pytest.mark.like_pgbench
def test_both_speak_alike_of_a_session_that_is_ended(both, fresh):
    target = fresh()

    def act(program):
        with target.connect_as_user() as administrator, target.connect_as_user(autocommit=False) as locking:
            locking.execute("LOCK pgbench_accounts")
            with program.start(target, ["-n", "-T", "60", "-S", "-c", "1", "--random-seed=1"]) as process:
                wait_until_locked(target)
                # waiting or not: while the session looks for a deadlock it is not said to wait
                administrator.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {SELECTS}")
                return settled(ended(process))

    theirs, mine = both(act)
    assert mine == theirs
    assert mine["status"] == 2


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_what_was_measured(peers, fresh, tmp_path, which):
    path = tmp_path / "events"
    target = fresh()
    with peers[1].start(target, ["-n", "-T", "60", "-c", "3", "-j", "3", "--events", str(path)]) as process:
        wait_for(path, has_counted)
        process.send_signal(which)
        done = ended(process)
    events = events_of(path.read_text())
    assert done.status == 130
    assert_consistent(events)
    end = done_of(events)
    assert (end["interrupted"], end["status"], end["clients_aborted"]) == (True, 130, 0)
    processed = end["measure"]["transactions"]
    assert processed > 0
    assert f"number of transactions actually processed: {processed}\n" in done.stdout
    assert "tps = " in done.stdout


def test_an_interrupt_in_the_warm_up_leaves_nothing_measured(peers, loaded, tmp_path):
    path = tmp_path / "events"
    with peers[1].start(loaded(18), ["-n", "-S", "-T", "9", "--warmup", "60", "--events", str(path)]) as process:
        wait_for(path, has_counted)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    events = events_of(path.read_text())
    assert done.status == 130
    assert_consistent(events)
    assert done_of(events)["measure"] is None
    assert done_of(events)["warmup"]["transactions"] > 0


def test_an_interrupt_while_a_statement_waits_ends_the_run(peers, fresh, tmp_path):
    path = tmp_path / "events"
    target = fresh()
    with target.connect_as_user(autocommit=False) as connection:
        connection.execute("LOCK pgbench_accounts")
        with peers[1].start(target, ["-n", "-S", "-T", "60", "-c", "2", "--events", str(path)]) as process:
            wait_for(path, lambda events: len(of_kind(events, "tick")) >= 1)
            process.send_signal(signal.SIGINT)
            done = ended(process)
    assert done.status == 130
    assert done_of(events_of(path.read_text()))["measure"]["transactions"] == 0


def test_a_file_that_cannot_be_written_is_told_before_the_run(peers, loaded, tmp_path):
    for path, reason in [(tmp_path / "no" / "events", "No such file or directory"), (tmp_path, "Is a directory")]:
        done = peers[1].run(loaded(18), "-n", "-S", "-T", "60", "--events", str(path))
        assert done.status == 1
        assert done.stderr == f'pgbench: error: could not open events file "{path}": {reason}\n'


def test_a_full_disk_costs_the_events_and_not_the_report(peers, loaded):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    done = peers[1].run(loaded(18), "-n", "-S", "-t", "10", "--events", "/dev/full")
    assert done.status == 1
    assert done.stderr == "pgbench: error: could not write events: No space left on device\n"


def test_a_reader_that_goes_away_ends_the_run(peers, loaded):
    with peers[1].start(loaded(18), ["-n", "-S", "-T", "60", "--events", "-"]) as process:
        for line in process.stdout:
            if json.loads(line)["event"] == "tick":
                break
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 1
        assert process.stderr.read() == "pgbench: error: could not write events: Broken pipe\n"
