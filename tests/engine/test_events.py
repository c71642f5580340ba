"""The events of a run: complete, consistent with the text and with the server, and written whatever happens."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.arm.cluster import Cluster
from pgtrial.arm.connect import Target
from tests.engine.programs import Ended, Program, assert_alike, ended, settle

Event = dict[str, Any]
LONGEST_US = 3_600_000_000


def events_of(text: str) -> list[Event]:
    return [json.loads(line) for line in text.splitlines()]


def of_kind(events: list[Event], kind: str, **having: object) -> list[Event]:
    return [
        event
        for event in events
        if event["event"] == kind and all(event[key] == value for key, value in having.items())
    ]


def done_of(events: list[Event]) -> Event:
    assert events[-1]["event"] == "done"
    return events[-1]


def histogram(encoded: list[str]) -> HdrHistogram:
    merged = HdrHistogram(1, LONGEST_US, 3)
    for one in encoded:
        merged.decode_and_add(one)
    return merged


def summed(ticks: list[Event]) -> tuple[int, Counter[str]]:
    failures: Counter[str] = Counter()
    for tick in ticks:
        failures.update(tick["failures"])
    return sum(tick["transactions"] for tick in ticks), failures


def assert_consistent(events: list[Event]) -> None:
    """The form of the protocol, and ticks that add up to the summaries."""
    assert [events[0]["event"], events[1]["event"]] == ["hello", "connected"]
    assert [event["event"] for event in events].count("done") == 1
    times = [event["t"] for event in events]
    assert times == sorted(times)
    done = done_of(events)
    phases = [event["phase"] for event in of_kind(events, "phase")]
    assert phases == [phase for phase in ("warmup", "measure", "drain") if phase in phases]
    for phase in ("warmup", "measure", "drain"):
        ticks = of_kind(events, "tick", phase=phase)
        assert [tick["second"] for tick in ticks] == list(range(len(ticks)))
        assert all(tick["seconds"] == 1.0 for tick in ticks[:-1])
        transactions, failures = summed(ticks)
        summary = done[phase]
        if summary is None:
            assert (transactions, failures) == (0, Counter())
            continue
        assert (summary["transactions"], summary["failures"]) == (transactions, dict(failures))
        if phase == "drain":
            continue
        assert sum(tick["seconds"] for tick in ticks) == pytest.approx(summary["duration_s"])
        assert summary["tps"] == pytest.approx(transactions / summary["duration_s"])
        check_latencies(summary, [tick["histogram"] for tick in ticks])
        for tick in ticks:
            check_latencies(tick, [tick["histogram"]])


def check_latencies(counted: Event, encoded: list[str]) -> None:
    """The merged histograms hold as many latencies as there are transactions, and say the same of them."""
    merged = histogram(encoded)
    assert merged.get_total_count() == counted["transactions"]
    latency = counted["latency_us"]
    if counted["transactions"] == 0:
        assert latency is None
        return
    own = histogram([counted["histogram"]])
    for name, percentile in [("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99), ("p99.9", 99.9)]:
        assert values_at(merged, percentile) == values_at(own, percentile)
        assert latency[name] in values_at(own, percentile)
    assert merged.get_mean_value() == pytest.approx(latency["mean"], rel=2e-3, abs=1)
    assert merged.get_max_value() == pytest.approx(latency["max"], rel=2e-3, abs=1)
    assert latency["min"] <= latency["p50"] * 1.001 + 1


def values_at(counted: HdrHistogram, percentile: float) -> set[int]:
    """The least value that so many percent of the latencies do not exceed (the package's own rounds the rank).

    One value, but two where the rank is a whole number up to the last bits of the product.
    """
    rank = percentile / 100 * counted.get_total_count()
    return {value_of(counted, max(1, math.ceil(rank + noise))) for noise in (-1e-9, 1e-9)}


def value_of(counted: HdrHistogram, rank: int) -> int:
    seen = 0
    for item in counted.get_recorded_iterator():
        seen += item.count_at_value_iterated_to
        if seen >= rank:
            break
    return counted.get_highest_equivalent_value(item.value_iterated_to)


def run_with_events(ours: Program, target: Target, path: Path, *args: str, **env: str) -> tuple[Ended, list[Event]]:
    done = ours.run(target, *args, "--events", str(path), **env)
    return done, events_of(path.read_text())


@pytest.mark.parametrize(
    "line", ["-T 3 -c 4 -j 2 -M prepared", "-T 2 --warmup 1 -c 2", "-t 300 -c 3 -j 3", "-t 1", "-T 1 -C -c 3 -j 2"]
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
    assert (hello["protocol"], hello["frontend"]) == (1, "pgbench")
    assert hello["plan"] == {
        "scripts": ["<builtin: select only>"],
        "clients": 3,
        "jobs": 2,
        "query_mode": "extended",
        "scale": 2,
        "warmup_s": 0.5,
        "duration_s": 1.0,
        "transactions_per_client": None,
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
        assert process.wait(10) == 130
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
    with target.connect() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert rows == warmup + measure + drain
    assert f"number of transactions actually processed: {measure + drain}\n" in done.stdout
    assert f"warm-up: 1.5 s, {warmup} transactions" in done.stdout
    assert len(re.findall("^progress: ", done.stderr, re.MULTILINE)) == 1


def test_the_warm_up_of_a_counted_run_does_not_count(peers, fresh, tmp_path):
    target = fresh()
    args = ("-n", "-t", "30", "-c", "2", "-j", "2", "--warmup", "0.5", "-r")
    done, events = run_with_events(peers[1], target, tmp_path / "events", *args)
    assert_consistent(events)
    end = done_of(events)
    assert end["measure"]["transactions"] == 60
    assert end["warmup"]["transactions"] > 0
    assert "number of transactions actually processed: 60/60\n" in done.stdout
    with target.connect() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
    assert rows == 60 + end["warmup"]["transactions"]


def rollbacks(target: Target) -> int:
    with target.connect() as connection:
        return connection.execute(
            "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()[0]


@pytest.mark.parametrize("limit", [("-T", "2"), ("-t", "60"), ("-t", "60", "-C")])
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
    with target.connect() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM pgbench_history").fetchone()
        assert rows == committed
    assert rollbacks(target) - before == failed
    if limit[0] == "-t":
        assert committed + failed == 12 * 60


def test_deadlocks_are_counted_by_their_sqlstate(peers, fresh, tmp_path):
    target = fresh()
    with target.connect() as connection:
        # Clients lock two rows in either order: of two that meet one is a deadlock's victim.
        connection.execute(
            "CREATE FUNCTION both_ways() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " PERFORM pg_advisory_xact_lock(NEW.bid % 2); PERFORM pg_sleep(0.01);"
            " PERFORM pg_advisory_xact_lock(1 - NEW.bid % 2); RETURN NEW; END $$"
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


def test_a_client_that_is_given_up_leaves_the_others_running(peers, fresh, tmp_path):
    target = fresh()
    with target.connect() as connection:
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
    with target.connect() as connection:
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
        wait_for(path, lambda events: len(of_kind(events, "tick")) >= 1)
        with target.connect() as connection:
            connection.execute("DROP TABLE pgbench_history")
        done = ended(process)
    events = events_of(path.read_text())
    assert done.status == 2
    assert_consistent(events)
    end = done_of(events)
    assert (end["clients_aborted"], end["measure"]["failures"]) == (4, {"42P01": 4})
    assert end["measure"]["transactions"] > 0
    assert f"number of transactions actually processed: {end['measure']['transactions']}\n" in done.stdout


def wait_for(path: Path, ready: Callable[[list[Event]], bool], timeout_s: float = 60) -> None:
    """Wait until the complete lines of a file of events are what is waited for."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        if ready(events_of(text[: text.rfind("\n") + 1])):
            return
        time.sleep(0.02)
    raise AssertionError("the events did not come")


@pytest.fixture
def doomed(start_cluster, peers) -> Cluster:
    """A cluster of the test's own with loaded tables."""
    cluster: Cluster = start_cluster(18)
    peers[0].load(cluster.target)
    return cluster


@pytest.mark.parametrize("line", ["-T 60 -c 4 -j 2", "-T 60 -c 4 -C", "-T 60 -c 2 -M prepared -S"])
def test_a_server_stopped_in_mid_run_leaves_what_was_measured(peers, doomed, tmp_path, line):
    path = tmp_path / "events"
    with peers[1].start(doomed.target, ["-n", *line.split(), "--events", str(path)]) as process:
        wait_for(path, lambda events: len(of_kind(events, "tick")) >= 2)
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
            wait_until_running(cluster.target)
            cluster.stop(immediate=True)
            done = ended(process)
        assert done.status == 2
        # whether the server's warning arrives before the end of the connection is a race
        warning = "WARNING:  terminating connection due to immediate shutdown command\n"
        said.append((settle(done.stdout), done.stderr.replace(warning, "")))
    assert said[1] == said[0]


def test_both_speak_alike_of_a_session_that_is_ended(peers, fresh):
    target = fresh()
    said = []
    for program in peers:
        with target.connect() as administrator, target.connect(autocommit=False) as locking:
            locking.execute("LOCK pgbench_accounts")
            with program.start(target, ["-n", "-T", "60", "-S", "-c", "1", "--random-seed=1"]) as process:
                wait_until_running(target)
                administrator.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'pgbench' AND query LIKE 'SELECT abalance%'"
                )
                said.append(ended(process))
    assert_alike(*said)
    assert said[1].status == 2


def wait_until_running(target: Target) -> None:
    with target.connect() as connection:
        for _ in range(3000):
            (running,) = connection.execute(
                "SELECT sum(calls) FROM (SELECT count(*) AS calls FROM pg_stat_activity"
                " WHERE application_name = 'pgbench' AND query LIKE 'SELECT abalance%') AS s"
            ).fetchone()
            if running:
                return
            time.sleep(0.01)
    raise AssertionError("no client runs")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_what_was_measured(peers, fresh, tmp_path, which):
    path = tmp_path / "events"
    target = fresh()
    with peers[1].start(target, ["-n", "-T", "60", "-c", "3", "-j", "3", "--events", str(path)]) as process:
        wait_for(path, lambda events: len(of_kind(events, "tick")) >= 3)
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
        wait_for(path, lambda events: len(of_kind(events, "tick")) >= 1)
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
    with target.connect(autocommit=False) as connection:
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
        assert process.wait(10) == 1
        assert process.stderr.read() == "pgbench: error: could not write events: Broken pipe\n"


def test_a_closed_standard_output_does_not_crash(peers, loaded):
    read, write = os.pipe()
    os.close(read)
    command = [*peers[1].command, "-n", "-S", "-t", "3"]
    environment = {**os.environ, **loaded(18).environment()}
    done = subprocess.run(command, env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_stays_flat(peers, loaded, tmp_path):
    """What a thread and a second need does not pile up: the peak of a longer run is that of a shorter one."""
    peaks = []
    for seconds in ("1", "5"):
        process = peers[1].start(loaded(18), ["-n", "-S", "-c", "8", "-j", "2", "-T", seconds, "--events", "-"])
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        _, status, usage = os.wait4(process.pid, 0)
        reader.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss)
    # kB; an undrained second of a thread would cost some 200 kB
    assert peaks[1] < peaks[0] + 1000
