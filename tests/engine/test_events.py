"""The events of a run that goes well: complete, consistent with the text and with the server."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.events import assert_consistent, done_of, events_of, of_kind, run_with_events
from tests.engine.programs import TIMEOUT_S
from tests.engine.sessions import wait_until_left

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "line", ["-T 2 -c 4 -j 2 -M prepared", "-T 2 --warmup 1 -c 2", "-t 300 -c 3 -j 3", "-t 1", "-T 1 -C -c 3 -j 2"]
)
@pytest.mark.parametrize("script", ["-S", "-N"])
def test_ticks_add_up_to_the_summary_and_to_the_text(peers, loaded, tmp_path, line, script):
    done, events = run_with_events(peers[1], loaded(18), tmp_path / "events", "-n", script, *line.split())
    assert done.status == 0, done.stderr
    assert_consistent(events)
    end = done_of(events)
    assert (end["status"], end["interrupted"], end["clients_aborted"]) == (0, False, 0)
    processed = int(re.search(r"actually processed: (\d+)", done.stdout)[1])
    assert processed == end["measure"]["transactions"] + end["drain"]["transactions"]
    # each client finishes at most the transaction that it is in
    assert end["drain"]["transactions"] <= events[0]["plan"]["clients"]


def test_the_first_event_tells_the_plan(peers, loaded, tmp_path):
    line = "-n -S -c 3 -j 2 -T 1 --warmup 0.5 -M extended --random-seed=18446744073709551615"
    _, events = run_with_events(peers[1], loaded(18), tmp_path / "events", *line.split())
    hello = events[0]
    assert (hello["protocol"], hello["frontend"]) == (2, "pgbench")
    assert hello["plan"] == {
        "scripts": ["<builtin: select only>"],
        "clients": 3,
        "jobs": 2,
        "query_mode": "extended",
        "scale": 2,
        "warmup_s": 0.5,
        "duration_s": 1.0,
        "transactions_per_client": None,
        "transactions": None,
        "random_seed": "18446744073709551615",
    }
    assert events[1]["clients"] == 3
    assert events[1]["connect_s"] > 0


def test_events_on_standard_output_replace_the_report(peers, loaded):
    done = peers[1].run(loaded(18), "-n", "-S", "-T", "1", "--warmup", "0.3", "--events", "-")
    assert (done.status, done.stderr) == (0, "")
    events = events_of(done.stdout)
    assert_consistent(events)
    assert [event["phase"] for event in of_kind(events, "phase")][:2] == ["warmup", "measure"]


def test_seconds_come_while_the_run_goes_on(peers, loaded):
    with peers[1].start(loaded(18), ["-n", "-S", "-T", "30", "--events", "-"]) as process:
        seen = []
        for line in process.stdout:
            seen.append(json.loads(line))
            if len(of_kind(seen, "tick")) == 2:
                break
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        seen += events_of(process.stdout.read())
        assert process.wait(TIMEOUT_S) == 130
    assert_consistent(seen)
    assert done_of(seen)["interrupted"] is True


def test_the_warm_up_is_counted_apart(peers, fresh, tmp_path):
    target = fresh()
    done, events = run_with_events(peers[1], target, tmp_path / "events", "-n", "-T", "1", "--warmup", "1.5", "-P", "1")
    assert_consistent(events)
    end = done_of(events)
    warmup, measure, drain = (end[phase]["transactions"] for phase in ("warmup", "measure", "drain"))
    assert end["warmup"]["duration_s"] == pytest.approx(1.5)
    assert [tick["seconds"] for tick in of_kind(events, "tick", phase="warmup")] == [1.0, 0.5]
    with target.connect_as_user() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert rows == warmup + measure + drain
    assert f"number of transactions actually processed: {measure + drain}\n" in done.stdout
    assert f"warm-up: 1.5 s, {warmup} transactions" in done.stdout
    # none of the warm-up; more than one if what was under way at the end took another second
    told = re.findall(r"^progress: (\d+\.\d) s", done.stderr, re.MULTILINE)
    assert told[:1] == ["1.0"]
    assert len(told) <= len(of_kind(events, "tick")) - 2


def test_the_warm_up_of_a_counted_run_does_not_count(peers, fresh, tmp_path):
    target = fresh()
    total = 0
    for warmup in ("0.5", "5", "30"):
        args = ("-n", "-t", "30", "-c", "2", "-j", "2", "--warmup", warmup, "-r")
        done, events = run_with_events(peers[1], target, tmp_path / "events", *args)
        assert_consistent(events)
        end = done_of(events)
        assert end["measure"]["transactions"] == 60
        assert "number of transactions actually processed: 60/60\n" in done.stdout
        total += 60 + end["warmup"]["transactions"]
        if end["warmup"]["transactions"] > 0:
            break  # else it was over before a slow machine had done the first one
    assert end["warmup"]["transactions"] > 0
    with target.connect_as_user() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert rows == total


def rollbacks(target: Target) -> int:
    wait_until_left(target)
    with target.connect_as_user() as connection:
        return connection.execute(
            "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()[0]


@pytest.mark.parametrize("limit", [("-T", "2"), ("-t", "60"), ("-t", "20", "-C")])
def test_serialization_failures_are_counted_as_the_server_counts_them(peers, fresh, tmp_path, limit):
    target = fresh()
    before = rollbacks(target)
    serializable = "-c default_transaction_isolation=serializable"
    args = ("-n", *limit, "-c", "12", "-j", "2", "-r")
    done, events = run_with_events(peers[1], target, tmp_path / "events", *args, PGOPTIONS=serializable)
    assert done.status == 0, done.stderr
    assert_consistent(events)
    end = done_of(events)
    failures = Counter(end["measure"]["failures"]) + Counter(end["drain"]["failures"])
    assert set(failures) <= {"40001", "40P01"}
    assert failures["40001"] > 0
    committed = end["measure"]["transactions"] + end["drain"]["transactions"]
    failed = sum(failures.values())
    share = 100 * failed / (committed + failed)
    assert f"number of failed transactions: {failed} ({share:.3f}%)\n" in done.stdout
    assert "(including failures)" in done.stdout
    of_commands = [int(line.split()[1]) for line in done.stdout.split("and failures:\n")[1].splitlines()]
    assert sum(of_commands) == failed
    with target.connect_as_user() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
        assert rows == committed
    if limit[0] == "-t":
        assert rollbacks(target) - before == failed
        assert committed + failed == 12 * int(limit[1])
    else:
        # a transaction of each client that fails when the time is over already does not count
        assert failed <= rollbacks(target) - before <= failed + 12


def test_deadlocks_are_counted_by_their_sqlstate(peers, fresh, tmp_path):
    target = fresh()
    with target.connect_as_user() as connection:
        # Clients take two locks in either order: of two that meet one is a deadlock's victim. The first of all goes on
        # when another client has the lock that it wants.
        connection.execute(
            "CREATE SEQUENCE turns; CREATE FUNCTION both_ways() RETURNS trigger LANGUAGE plpgsql AS $$"
            " DECLARE turn int := nextval('turns'); BEGIN"
            " PERFORM pg_advisory_xact_lock(turn % 2); PERFORM pg_sleep(0.01);"
            " WHILE turn = 1 AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 0 AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
            " LOOP PERFORM pg_sleep(0.01); END LOOP;"
            " PERFORM pg_advisory_xact_lock(1 - turn % 2); RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE TRIGGER both_ways BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION both_ways()"
        )
    before = rollbacks(target)
    options = "-c deadlock_timeout=10ms"
    args = ("-n", "-N", "-t", "10", "-c", "4")
    done, events = run_with_events(peers[1], target, tmp_path / "events", *args, PGOPTIONS=options)
    assert done.status == 0, done.stderr
    assert_consistent(events)
    measure = done_of(events)["measure"]
    assert set(measure["failures"]) == {"40P01"}
    assert measure["failures"]["40P01"] == rollbacks(target) - before
    assert f"number of failed transactions: {measure['failures']['40P01']} (" in done.stdout


def test_memory_stays_flat(peers, loaded, tmp_path):
    """Memory for threads and for past seconds does not accumulate: the peak size stays what it was early in the run."""
    script = tmp_path / "script"
    script.write_text("\\sleep 2 ms\nSELECT 1;\n")
    greatest = {}
    line = f"-n -f {script} -c 8 -j 2 -T 600 --events -"
    with peers[1].start(loaded(18), line.split()) as process:
        for seconds, _ in enumerate(line for line in process.stdout if json.loads(line)["event"] == "tick"):
            status = Path(f"/proc/{process.pid}/status").read_text()
            greatest[seconds] = int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1])
            if seconds == 9:
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    # kB; undrained seconds of two threads would cost some 400 kB each, 3200 in all; a machine that stands still for
    # three seconds has as many of them undrained at once
    assert greatest[9] < greatest[1] + 2000
