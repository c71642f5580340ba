"""Queries that run one after the other: their order, times, answers, errors and limit."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgtrial.loads.target import Target
from tests.conftest import require_engine
from tests.engine.events import of_kind
from tests.engine.sessions import TIMEOUT_S
from tests.processes import until

pytestmark = pytest.mark.server

QUERIES = {
    "numbers": "select i, i * 2 from generate_series(1, 1000) i",
    "backwards": "select i, i * 2 from generate_series(1000, 1, -1) i",
    "one": "set work_mem = '8MB'; select 1;",
    "setting": "select current_setting('work_mem')",
    "left_open": "begin; select count(*) from pg_class",
    "changed": "create temporary table kept as select 1; drop table kept",
    "wrong": "select 1 / 0",
    "empty": "-- nothing",
    "slow": "select pg_sleep(60)",
}
CONNECTIONS = "select count(*) from pg_stat_activity where application_name = 'pgtrial suite'"


@pytest.fixture(scope="module")
def target(clusters: Any) -> Target:
    server: Target = clusters(18).target
    return server


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name, text in QUERIES.items():
        (tmp_path / f"{name}.sql").write_text(text)
    return {name: str(tmp_path / f"{name}.sql") for name in QUERIES}


def run(target: Target, *options: str, **more: Any) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        [str(require_engine()), "suite", *options, "--events", "-"],
        env=target.environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        **more,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_each_query_runs_as_often_as_asked_for(target: Target, files: dict[str, str]) -> None:
    names = ["numbers", "backwards", "one", "left_open", "changed", "setting"]
    options = [f"--file={files[name]}" for name in names]
    status, events, errors = run(target, *options, "--runs=3", "--warmup", "--random-seed=7")
    assert (status, errors) == (0, "")
    assert [event["event"] for event in events[:3]] == ["hello", "connected", "phase"]
    assert events[0]["plan"]["scripts"] == names
    assert events[0]["plan"]["suite"] == {"runs": 3, "limit_s": 60.0, "pauses": False}
    queries = of_kind(events, "query")
    assert [query["phase"] for query in queries] == ["warmup"] * 6 + ["measure"] * 18
    passes = [[query["query"] for query in queries[first : first + 6]] for first in range(0, 24, 6)]
    assert all(sorted(one) == sorted(names) for one in passes)
    assert len({tuple(one) for one in passes}) > 1
    assert [query["run"] for query in queries[6:]] == [1] * 6 + [2] * 6 + [3] * 6
    assert not any(query["over_limit"] or query["sqlstate"] for query in queries)
    by_name = {query["query"]: query for query in queries}
    assert [by_name[name]["rows"] for name in names] == [1000, 1000, 1, by_name["left_open"]["rows"], 0, 1]
    # the same rows in another order
    assert by_name["numbers"]["rows_hash"] == by_name["backwards"]["rows_hash"] != by_name["one"]["rows_hash"]
    assert by_name["changed"]["rows_hash"] is None
    assert len({(query["query"], query["rows_hash"]) for query in queries}) == 6, (
        "a setting of one query is none of another"
    )
    done = events[-1]
    assert done["measure"]["transactions"] == 18
    assert done["warmup"]["transactions"] == 6
    measured_us = sum(query["time_us"] for query in queries[6:])
    assert done["measure"]["duration_s"] == pytest.approx(measured_us / 1e6, rel=1e-3)
    assert done["measure"]["latency_us"]["mean"] == pytest.approx(measured_us / 18, rel=1e-3)


def test_a_query_finds_nothing_that_another_has_left_in_its_session(target: Target, tmp_path: Path) -> None:
    leaving = {
        "role": "set role pg_monitor; select 1",
        "table": "create temp table kept as select 1",
        "statement": "prepare kept as select 1; execute kept",
        "cursor": "declare kept cursor with hold for select 1; fetch kept",
        "lock": "select pg_advisory_lock(7)",
    }
    looking = {
        "user": "select 1 where current_user = session_user",
        "locks": "select 1 from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "session": "select pg_backend_pid()",
    }
    for name, text in (leaving | looking).items():
        (tmp_path / f"{name}.sql").write_text(text)
    status, events, errors = run(target, *(f"-f{path}" for path in tmp_path.iterdir()), "--runs=3", "--random-seed=1")
    assert (status, errors) == (0, "")
    queries = of_kind(events, "query")
    assert [query["message"] for query in queries if query["sqlstate"]] == []
    assert {query["rows"] for query in queries if query["query"] == "user"} == {1}
    assert {query["rows"] for query in queries if query["query"] == "locks"} == {0}
    assert len({query["rows_hash"] for query in queries if query["query"] == "session"}) == 1


def test_a_seed_of_one_query_is_none_of_another(target: Target, tmp_path: Path) -> None:
    (tmp_path / "seed.sql").write_text("select setseed(0.5)")
    (tmp_path / "drawn.sql").write_text("select random()")
    status, events, errors = run(target, *(f"-f{path}" for path in tmp_path.iterdir()), "--runs=9", "--random-seed=1")
    assert (status, errors) == (0, "")
    drawn = [query["rows_hash"] for query in of_kind(events, "query") if query["query"] == "drawn"]
    assert len(set(drawn)) == len(drawn) >= 9


def test_the_role_of_the_session_is_that_of_its_user_after_each_query(target: Target, tmp_path: Path) -> None:
    (tmp_path / "role.sql").write_text("select 1 where current_user = 'pg_monitor'")
    with target.connect_as_user() as connection:
        connection.execute("create role watcher login; grant pg_monitor to watcher")
        connection.execute("alter role watcher set role = pg_monitor")
        try:
            watcher = replace(target, user="watcher")
            status, events, errors = run(watcher, "-f", str(tmp_path / "role.sql"), "--runs=3")
        finally:
            connection.execute("drop role watcher")
    assert (status, errors) == (0, "")
    assert [query["rows"] for query in of_kind(events, "query")] == [1, 1, 1]


def test_a_seed_gives_the_order(target: Target, files: dict[str, str]) -> None:
    options = [f"-f{files[name]}" for name in ("numbers", "backwards", "one", "left_open")]

    def order(seed: int) -> list[str]:
        _, events, _ = run(target, *options, f"--random-seed={seed}", "--runs=2")
        return [query["query"] for query in of_kind(events, "query")]

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(4)}) > 1


def test_what_fails_or_takes_too_long_is_one_query_alone(target: Target, files: dict[str, str]) -> None:
    options = [f"-f{files[name]}" for name in ("wrong", "empty", "slow", "one")]
    # so long that nothing but the slow one reaches it on a busy machine
    status, events, _ = run(target, *options, "--limit=3", "--runs=2")
    assert status == 0
    of_query: dict[str, list[dict[str, Any]]] = {}
    for query in of_kind(events, "query"):
        of_query.setdefault(query["query"], []).append(query)
    for query in of_query["wrong"]:
        assert (query["sqlstate"], query["time_us"], query["rows"]) == ("22012", None, 0)
        assert query["message"] == "ERROR:  division by zero"
    assert {query["sqlstate"] for query in of_query["empty"]} == {"empty"}
    assert [(query["over_limit"], query["time_us"], query["sqlstate"]) for query in of_query["slow"]] == [
        (True, 3_000_000.0, None)
    ] * 2
    assert [query["rows"] for query in of_query["one"]] == [1, 1]
    measured = events[-1]["measure"]
    assert (measured["transactions"], measured["failures"]) == (4, {"22012": 2, "empty": 2})


def test_a_pause_has_no_connection(target: Target, files: dict[str, str]) -> None:
    command = [str(require_engine()), "suite", "-f", files["numbers"], "-f", files["one"], "--pause", "--events", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, env=target.environment(), **pipes) as engine,
        target.connect_as_user() as session,
    ):
        assert engine.stdin is not None
        assert engine.stdout is not None
        paused = []
        for line in engine.stdout:
            event = json.loads(line)
            if event["event"] != "pause":
                continue
            paused.append(event["query"])
            # a busy server ends a session later than its client
            until(lambda: session.execute(CONNECTIONS).fetchone() == (0,), "there is no connection")
            engine.stdin.write("\n")
            engine.stdin.flush()
        assert engine.wait(TIMEOUT_S) == 0
    assert sorted(paused) == ["numbers", "one"]


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_pause(target: Target, files: dict[str, str], which: signal.Signals) -> None:
    command = [str(require_engine()), "suite", "-f", files["one"], "--pause", "--events", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=target.environment(), **pipes) as engine:
        assert engine.stdout is not None
        lines = (json.loads(line) for line in engine.stdout)
        assert any(event["event"] == "pause" for event in lines)
        engine.send_signal(which)
        # standard input stays open
        assert engine.wait(TIMEOUT_S) == 130
        done = list(lines)[-1]
    assert (done["event"], done["status"], done["interrupted"]) == ("done", 130, True)


def test_a_run_that_is_interrupted_in_its_warm_up_has_used_nothing(target: Target, tmp_path: Path) -> None:
    (tmp_path / "rows.sql").write_text("select i from generate_series(1, 300000) i")
    (tmp_path / "slow.sql").write_text("select pg_sleep(600)")
    files = [f"-f{tmp_path}/{name}.sql" for name in ("rows", "slow")]
    # in the order of this seed, rows come first
    command = [str(require_engine()), "suite", *files, "--warmup", "--limit=900", "--random-seed=5", "--events", "-"]
    with subprocess.Popen(command, env=target.environment(), stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        lines = (json.loads(line) for line in engine.stdout)
        assert any(event["event"] == "query" for event in lines)
        engine.send_signal(signal.SIGINT)
        assert engine.wait(TIMEOUT_S) == 130
        done = list(lines)[-1]
    assert (done["warmup"]["transactions"], done["measure"]) == (1, None)
    client = done["client"]
    assert (client["cpu_user_s"], client["cpu_system_s"], client["cpu_per_transaction_us"]) == (0, 0, None)


def test_lines_that_come_together_end_a_pause_each(target: Target, files: dict[str, str]) -> None:
    status, events, _ = run(target, "-f", files["one"], "--pause", "--runs=3", input="\n\n\n")
    assert status == 0
    assert len(of_kind(events, "query")) == 3


def test_a_lost_connection_ends_the_run(target: Target, files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "suicide.sql").write_text("select pg_terminate_backend(pg_backend_pid())")
    status, events, errors = run(target, "-f", str(tmp_path / "suicide.sql"), "-f", files["one"], "--runs=5")
    assert status == 2
    (error,) = of_kind(events, "error")
    assert (error["kind"], error["sqlstate"]) == ("connection", "57P01")
    assert "terminating connection due to administrator command" in errors
    assert events[-1]["clients_aborted"] == 1
    status, events, _ = run(target, "-f", files["one"], "--pause", stdin=subprocess.DEVNULL)
    assert (status, of_kind(events, "error")[0]["kind"]) == (2, "connect")


def test_the_report_has_a_line_for_each_query(target: Target, files: dict[str, str]) -> None:
    command = [str(require_engine()), "suite", "-f", files["numbers"], "-f", files["wrong"]]
    done = subprocess.run(
        command, env=target.environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    lines = sorted(" ".join(line.split()) for line in done.stdout.splitlines())
    assert done.returncode == 0
    assert lines[0].startswith("1 measured, 1 failed, ")
    assert lines[1].startswith("numbers ")
    assert lines[1].endswith(" ms 1000 rows")
    assert lines[2] == "wrong failed: ERROR: division by zero"
