"""Tasks on bounded pools of connections: every task is told of, what it waited for, and what is refused."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import require_engine
from tests.engine.events import (
    assert_consistent,
    done_of,
    events_of,
    has_counted,
    histogram,
    of_kind,
    run_with_events,
    wait_for,
)
from tests.engine.programs import Ended, Program, ended
from tests.engine.sessions import TIMEOUT_S, wait_until_left

pytestmark = pytest.mark.server


SMALL = ("--threads-in-table=2", "--rows=100")
STOP_S = 1.9


@pytest.fixture(scope="session")
def tasks() -> Program:
    """Returns the front end for tasks."""
    return Program("tasks", (str(require_engine()), "tasks"))


@pytest.fixture(scope="session")
def with_table(tasks, loaded) -> Target:
    """Returns a database with a small table_a."""
    target: Target = loaded(18)
    made = tasks.run(target, "--initialize-only", *SMALL)
    assert made.status == 0, made.stderr
    assert re.search(r"table_a: 2 x 100 rows created in \d+ ms, vacuumed in \d+ ms\n$", made.stderr)
    return target


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def figure(done: Ended, name: str) -> list[float]:
    """Returns the numbers of a line of the summary."""
    found = re.search(rf"^{re.escape(name)} +(\d.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", found[1])]


def test_lines_csv_summary_and_events_say_the_same(tasks, with_table, tmp_path):
    path = tmp_path / "tasks.csv"
    args = ("--apps=3", "--tasks=40", "--pool=4", "-j", "2", "--csv", str(path))
    done, events = run_with_events(tasks, with_table, tmp_path / "events", *args)
    assert (done.status, done.stderr) == (0, "")
    assert_consistent(events)
    lines = done.stdout.splitlines()
    assert lines[0] == "ApplicationId | Running Tasks | Task Duration | EndTime"
    lines = [line.split(" | ") for line in lines if line.count(" | ") == 3][1:]
    rows = rows_of(path)
    assert [
        [row["application"], row["running_tasks"], row["task_duration_s"], row["end_time"]] for row in rows
    ] == lines
    # each task of each application once, and never more of them running than the pool has connections
    assert Counter((row["application"], row["task"]) for row in rows) == Counter(
        (str(app), str(task)) for app in (1, 2, 3) for task in range(1, 41)
    )
    assert {row["running_tasks"] for row in rows} <= {"1", "2", "3", "4"}
    ends = [datetime.fromisoformat(row["end_time"]) for row in rows]
    assert ends == sorted(ends)
    durations = sorted(float(row["task_duration_s"]) for row in rows)
    for row in rows:
        assert float(row["queue_s"]) + float(row["service_s"]) == pytest.approx(float(row["task_duration_s"]), abs=2e-6)
    measured = done_of(events)["tasks"]
    assert (measured["planned"], measured["completed"], measured["failed"]) == (120, 120, 0)
    assert figure(done, "completed") == [120]
    assert figure(done, "failures") == [0]
    median = (durations[59] + durations[60]) / 2
    for name, value in [("min", durations[0]), ("max", durations[-1]), ("median", median)]:
        assert measured["response_us"][name] == pytest.approx(value * 1e6, abs=2)
        assert figure(done, name)[0] == pytest.approx(value, abs=2e-6)
    assert figure(done, "mean")[0] == pytest.approx(sum(durations) / 120, abs=2e-6)
    assert sum(measured["classes"].values()) == 120
    summary = done_of(events)["measure"]
    for key in ("queue", "service"):
        assert histogram([summary[f"{key}_histogram"]]).get_total_count() == 120
        # of a bucket, a thousandth wide, it is the upper end
        assert summary[f"{key}_us"]["p50"] <= summary["latency_us"]["max"] * 1.001 + 1
    assert events[0]["plan"]["pools"] == {
        "apps": 3, "tasks": 40, "arrival": "at-once", "size": 4, "timeout_s": 15.0, "lifetime_s": None,
    }  # fmt: skip
    assert events[0]["plan"]["transactions"] == 120


def test_tasks_change_nothing_and_use_no_more_connections_than_the_pools_have(tasks, with_table):
    wait_until_left(with_table)
    with with_table.connect_as_user() as connection:
        before = connection.execute("SELECT sum(thread_id), sum(a_value), count(*) FROM table_a").fetchone()
        sessions = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
        opened = connection.execute(sessions).fetchone()[0]
        assert tasks.run(with_table, "--apps=2", "--tasks=60", "--pool=3", "-q").status == 0
        after = connection.execute("SELECT sum(thread_id), sum(a_value), count(*) FROM table_a").fetchone()
        connection.execute("SELECT pg_stat_force_next_flush()")
        # the pools', and the one that looks at the table
        assert connection.execute(sessions).fetchone()[0] - opened <= 2 * 3 + 1
    assert after == before == (300, 10100, 200)


def test_tasks_that_get_no_connection_in_time_are_counted_with_their_waiting_times(peers, loaded, tmp_path):
    script = tmp_path / "slow.sql"
    script.write_text("SELECT pg_sleep(0.1);\n")
    # so long that a busy machine makes the first connections before it is over
    args = ("-n", "-f", str(script), "--apps=1", "--tasks=500", "--pool=2", "--pool-timeout=4")
    done, events = run_with_events(peers[1], loaded(18), tmp_path / "events", *args)
    assert done.status == 0, done.stderr
    assert_consistent(events)
    end = done_of(events)
    completed, failed = end["measure"]["transactions"], end["measure"]["failures"]["pool-timeout"]
    assert 0 < completed < 160
    assert completed + failed == 500
    assert end["tasks"]["failures"] == {"pool-timeout": failed}
    told = of_kind(events, "task")
    assert [task["failure"] for task in told] == ["pool-timeout"] * failed
    # those who came last waited in vain, from the moment of their arrival
    assert {task["task"] for task in told} == set(range(completed + 1, 501))
    assert all(4 <= task["waited_s"] < 60 and task["served_s"] == 0 for task in told)
    assert end["measure"]["pool_timeouts"]["count"] == failed
    assert end["tasks"]["timeout_waited_us"]["min"] >= 4_000_000
    assert f"number of transactions actually processed: {completed}/500\n" in done.stdout
    assert f"number of pool time-outs: {failed} (" in done.stdout


def test_a_task_without_connection_has_a_duration_of_minus_one(tasks, with_table, tmp_path):
    path, log, told = tmp_path / "tasks.csv", tmp_path / "tasks.log", tmp_path / "events"
    # so long that a busy machine makes the first task's connection before it is over
    args = ("--apps=1", "--tasks=5", "--pool=1", "--pool-timeout=4", "--csv", str(path), "--log", str(log))
    with with_table.connect_as_user(autocommit=False) as blocker:
        blocker.execute("LOCK TABLE table_a")
        with tasks.start(with_table, [*args, "--events", str(told)]) as process:
            # the first task has the connection and waits for the lock, the others give up
            wait_for(told, lambda events: len(of_kind(events, "task")) == 4)
            blocker.rollback()
            done = ended(process)
    assert done.status == 0
    rows = rows_of(path)
    assert [row["task_duration_s"] for row in rows][:4] == ["-1"] * 4
    assert [row["failure"] for row in rows] == ["pool-timeout"] * 4 + [""]
    assert all(float(row["queue_s"]) >= 4 and row["service_s"] == "" for row in rows[:4])
    assert [line.split(" | ")[2] for line in log.read_text().splitlines()[1:5]] == ["-1"] * 4
    assert figure(done, "failures")[0] == 4
    assert "(pool-timeout 4)" in done.stdout
    vain = re.search(r"waited for a connection in vain \(s\): min (\d+\.\d+)", done.stdout)
    assert vain
    assert 4 <= float(vain[1]) < 60
    assert " | " not in done.stdout


def test_a_statement_that_fails_is_a_failed_task_and_the_others_go_on(peers, loaded, tmp_path):
    script = tmp_path / "failing.sql"
    script.write_text("\\set x random(0, 1)\nBEGIN;\nSELECT 1 / :x;\nEND;\n")
    args = ("-n", "-f", str(script), "--tasks=40", "--pool=2", "--random-seed=5")
    done, events = run_with_events(peers[1], loaded(18), tmp_path / "events", *args)
    assert done.status == 0
    measure = done_of(events)["measure"]
    assert measure["failures"].keys() == {"22012"}
    assert 0 < measure["failures"]["22012"] == 40 - measure["transactions"] < 40
    assert done.stderr.count("division by zero") == 1
    assert done_of(events)["clients_aborted"] == 0


def test_a_connection_that_the_server_ends_is_replaced(peers, loaded, tmp_path):
    script = tmp_path / "ending.sql"
    script.write_text("\\set x random(1, 4)\nSELECT pg_terminate_backend(pg_backend_pid()) WHERE :x = 1;\n")
    args = ("-n", "-f", str(script), "--tasks=40", "--pool=2", "--random-seed=5")
    done, events = run_with_events(peers[1], loaded(18), tmp_path / "events", *args)
    assert done.status == 0
    measure = done_of(events)["measure"]
    assert 0 < measure["failures"].pop("57P01") == 40 - measure["transactions"]
    assert measure["failures"] == {}


class TooSlow(Exception):
    """The second task came before the connection was lost."""


@contextmanager
def lost_while_free(target: Target, engine: subprocess.Popen[str], until: float, *, held: bool) -> Iterator[None]:
    """Makes the server close the connection of an engine that has no task, and waits until the engine has closed it as
    well.

    Raises TooSlow if that takes longer than `until`, a time of time.monotonic() before which no further task begins.
    """
    with target.connect_as_user() as connection, target.connect_as_user(autocommit=False) as holder:

        def one(query: str) -> object:
            while (found := connection.execute(query).fetchone()) is None:
                if time.monotonic() > until:
                    raise TooSlow
                time.sleep(0.01)
            return found[0]

        free = "state = 'idle' AND query LIKE 'CREATE TEMP TABLE own_of_task%'"
        pid = one(f"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND {free}")
        files = psutil.Process(engine.pid).num_fds()
        if held:
            # a session says farewell before it drops what was temporary
            schema = one("SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'own_of_task'")
            holder.execute(f"LOCK TABLE {schema}.own_of_task IN ACCESS SHARE MODE")
            assert one(f"SELECT pg_terminate_backend({pid})") is True
            one(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Lock'")
        else:
            assert one(f"SELECT pg_terminate_backend({pid}, {TIMEOUT_S * 1000:.0f})") is True
        while psutil.Process(engine.pid).num_fds() == files and time.monotonic() < until:
            time.sleep(0.01)
        if time.monotonic() > until:
            raise TooSlow
        yield


@pytest.mark.parametrize("held", [False, True], ids=["it ends at once", "it ends late"])
def test_a_connection_that_is_lost_while_it_is_free_costs_no_task(peers, loaded, tmp_path, held):
    target, path, script = loaded(18), tmp_path / "events", tmp_path / "own.sql"
    script.write_text("CREATE TEMP TABLE own_of_task AS SELECT 1;\n")
    # one task at the start and one so many seconds later: more where this machine is slow
    for pause_s in (2.5, 10, 40):
        args = ("-n", "-f", str(script), "--tasks=2", "--pool=1", f"--arrival={1 / pause_s}", "--events", str(path))
        wait_until_left(target)
        until = time.monotonic() + pause_s
        with peers[1].start(target, args) as process:
            try:
                with lost_while_free(target, process, until, held=held):
                    done = ended(process)
                break
            except TooSlow:
                process.kill()
    else:
        pytest.fail("the connection was not lost before the second task came")
    assert done.status == 0
    measure = done_of(events_of(path.read_text()))["measure"]
    assert (measure["transactions"], measure["failures"]) == (2, {})


def test_connections_are_replaced_after_their_lifetime(peers, loaded, tmp_path):
    script = tmp_path / "own.sql"
    # as long as its lifetime a connection lasts, however late it came and in how short a time the tasks had to
    script.write_text("INSERT INTO backends VALUES (pg_backend_pid());\nSELECT pg_sleep(0.01);\n")
    target = loaded(18)
    with target.connect_as_user() as connection:
        connection.execute("DROP TABLE IF EXISTS backends; CREATE TABLE backends (pid int)")
        for lifetime, replaced in [("--pool-lifetime=0.05", True), ("--pool-lifetime=60", False)]:
            connection.execute("TRUNCATE backends")
            args = ("-n", "-f", str(script), "--tasks=40", "--pool=1", "--arrival=100", lifetime)
            done = peers[1].run(target, *args)
            assert done.status == 0
            assert "actually processed: 40/40\n" in done.stdout
            seen = connection.execute("SELECT count(DISTINCT pid), count(*) FROM backends").fetchone()
            assert seen[1] == 40
            assert (seen[0] > 1) == replaced
        connection.execute("DROP TABLE backends")


def test_a_server_that_stops_for_a_while_shows_in_response_times_and_not_in_most_service_times(
    tasks, start_cluster, tmp_path
):
    cluster: Cluster = start_cluster(18)
    assert tasks.run(cluster.target, "--initialize-only", *SMALL).status == 0
    path = tmp_path / "events"
    # 100 tasks a second for 7 seconds, whatever the server does: it stops before the last of them come, also where a
    # busy machine lets the test know late that the first second is over
    args = ("--apps=1", "--tasks=700", "--pool=2", "--arrival=100", "-q", "--events", str(path))
    with tasks.start(cluster.target, args) as process:
        wait_for(path, has_counted)
        stop(cluster, STOP_S)
        done = ended(process)
    assert done.status == 0
    end = done_of(events_of(path.read_text()))
    measure = end["measure"]
    assert (measure["transactions"], measure["failures"]) == (700, {})
    assert measure["latency_us"]["p99"] > 0.8 * STOP_S * 1e6
    # the few that were on the server took as long, the others waited in the queue
    assert measure["service_us"]["p99"] < measure["latency_us"]["p99"] / 4
    assert measure["queue_us"]["p99"] > 0.7 * STOP_S * 1e6
    assert end["tasks"]["service_us"]["max"] > 0.8 * STOP_S * 1e6


def stop(cluster: Cluster, seconds: float) -> None:
    """Stops all processes of the server for this number of seconds, the postmaster first, so that it starts no
    others.
    """
    pid = int((cluster.data_directory / "postmaster.pid").read_text().split()[0])
    postmaster = psutil.Process(pid)
    stopped = [postmaster]
    try:
        halt(postmaster)
        for process in postmaster.children(recursive=True):
            stopped.append(process)
            halt(process)
        time.sleep(seconds)
    finally:
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)


def halt(process: psutil.Process) -> None:
    """Stops a process with a signal, and waits until it has stopped."""
    deadline = time.monotonic() + TIMEOUT_S
    os.kill(process.pid, signal.SIGSTOP)
    while process.status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_interrupt_ends_the_run_with_what_was_measured(tasks, with_table, tmp_path):
    path = tmp_path / "events"
    args = ("--apps=1", "--tasks=10000", "--pool=2", "--arrival=poisson:200", "-q", "--events", str(path))
    with tasks.start(with_table, args) as process:
        wait_for(path, has_counted)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.status == 130
    end = done_of(events_of(path.read_text()))["tasks"]
    assert end["completed"] > 0
    assert end["completed"] + end["failed"] + end["unfinished"] == 10000
    assert figure(done, "not run to the end") == [end["unfinished"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--tasks=0", 'invalid value "0" for option --tasks: it must be a whole number from 1 to 10000000'),
        ("--arrival=soon", 'invalid value "soon" for option --arrival: it must be at-once, a rate'),
        (
            "--apps=2 --pool=4000",
            "2 pools of 4000 connections may need 8000 connections, but the server allows this user at most",
        ),
        ("--rows=7", "--rows is 7, but table_a was made with 100"),
        ("--pool=2 --csv=/nowhere/tasks.csv", 'could not open "/nowhere/tasks.csv": No such file or directory'),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(tasks, with_table, line, message):
    done = tasks.run(with_table, *line.split())
    assert (done.status, done.stdout) == (3, "")
    assert done.stderr.startswith(f"pgtrial-engine tasks: error: {message}")
    assert done.stderr.count("\n") == 1


def test_a_missing_table_and_a_foreign_one_are_told(tasks, fresh):
    target = fresh(18, empty=True)
    missing = tasks.run(target)
    assert missing.status == 3
    assert f'there is no table_a in database "{target.dbname}"; make it with' in missing.stderr
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE table_a (thread_id int, a_value int)")
    foreign = tasks.run(target, "-i", *SMALL)
    assert foreign.status == 3
    assert "has a table_a that was not made by pgtrial-engine tasks; rename it" in foreign.stderr


def test_a_copy_of_the_table_serves_as_it_is_and_is_never_replaced(tasks, fresh):
    target = fresh(18, empty=True)
    assert tasks.run(target, "--initialize-only", *SMALL).status == 0
    with target.connect_as_user() as connection:
        connection.execute("CREATE SCHEMA aside")
        connection.execute("CREATE TABLE aside.table_a AS SELECT * FROM table_a")
        comment = connection.execute("SELECT quote_literal(obj_description('table_a'::regclass))").fetchone()[0]
        connection.execute(f"COMMENT ON TABLE aside.table_a IS {comment}")
        connection.execute(f"ALTER DATABASE {target.dbname} SET search_path = aside, public")
        made = connection.execute("SELECT 'aside.table_a'::regclass::oid").fetchone()
    refused = tasks.run(target, "--initialize-only", *SMALL)
    assert (refused.status, refused.stderr) == (
        3,
        f'pgtrial-engine tasks: error: database "{target.dbname}" has a table_a that is a copy of one that '
        "pgtrial-engine tasks made; drop or rename it, or name another database\n",
    )
    wrong = tasks.run(target, "--rows", "7")
    assert "--rows is 7, but table_a was made with" in wrong.stderr
    with target.connect_as_user() as connection:
        assert connection.execute("SELECT 'table_a'::regclass::oid").fetchone() == made


def test_what_a_user_may_not_do_or_have_is_told(tasks, peers, fresh, tmp_path):
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE ROLE reader LOGIN")
    try:
        denied = tasks.run(replace(target, user="reader"), "-i", *SMALL)
        assert denied.status == 3
        assert "could not make table_a: permission denied for schema public; name a database" in denied.stderr
        assert denied.stderr.count("\n") == 1
        with target.connect_as_user() as connection:
            connection.execute("ALTER ROLE reader CONNECTION LIMIT 6")
        script = tmp_path / "one.sql"
        script.write_text("SELECT 1;\n")
        args = ("-n", "-f", str(script), "--tasks=5", "--pool=7")
        limited = peers[1].run(replace(target, user="reader"), *args)
        assert "allows this user at most 6 (the role's CONNECTION LIMIT): choose" in limited.stderr
        with target.connect_as_user() as connection:
            connection.execute(f'ALTER DATABASE "{target.dbname}" CONNECTION LIMIT 5')
        limited = peers[1].run(replace(target, user="reader"), *args)
        assert "allows this user at most 5 (the database's CONNECTION LIMIT): choose" in limited.stderr
        assert peers[1].run(target, *args).status == 0, "a superuser is held to neither"
        locked = tasks.run(target, "-i", *SMALL, PGOPTIONS="-c default_transaction_read_only=on")
        assert locked.status == 3
        assert "transactions of this user are read-only" in locked.stderr
    finally:
        with target.connect_as_user() as connection:
            connection.execute("DROP ROLE reader")


def test_a_standby_is_told(tasks, start_cluster):
    cluster: Cluster = start_cluster(18)
    cluster.stop()
    (cluster.data_directory / "standby.signal").touch()
    cluster.start(cluster.data_directory.with_suffix(".log"))
    done = tasks.run(cluster.target, "-i", *SMALL)
    assert done.status == 3
    assert "the server is a read-only standby, and tasks update a table; connect to the primary\n" in done.stderr


def test_pools_larger_than_the_server_takes_are_refused_by_pgbench_as_well(peers, loaded):
    done = peers[1].run(loaded(18), "-n", "-S", "--tasks=5", "--pool=9000")
    assert done.status == 1
    assert (
        "1 pool of 9000 connections may need 9000 connections, but the server allows this user at most" in done.stderr
    )
    done = peers[1].run(loaded(18), "-n", "-S", "--tasks=5", "--pool=2", "-c", "4")
    assert (done.status, done.stdout) == (1, "")
    assert "-c/--client cannot be combined with --pool" in done.stderr
