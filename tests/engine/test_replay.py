"""Replays of captures: they give the same rows, errors are compared with the recorded ones, many sessions are small."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgtrial.loads.target import Target
from tests.conftest import StartCluster, require_engine
from tests.engine.events import Event, assert_consistent, done_of, events_of, histogram, of_kind, wait_for
from tests.engine.programs import Ended, Program, ended, original
from tests.engine.sessions import wait_until_left
from tests.engine.written_captures import Recorded, Sent, write_capture

TABLES = {
    "pgbench_accounts": "aid, bid, abalance",
    "pgbench_branches": "bid, bbalance",
    "pgbench_tellers": "tid, bid, tbalance",
    "pgbench_history": "tid, bid, aid, delta",
}
PREFIX = "%m [%p] %q%u@%d/%a "
FAST = "--as-fast-as-possible"


def replayed(replay: Program, target: Target, capture: Path, *args: str) -> tuple[Ended, Event]:
    """Runs a replay, which must be complete and have consistent events; returns its end and its last event."""
    path = capture.with_suffix(".jsonl")
    done = replay.run(target, *args, "--events", str(path), str(capture))
    assert done.status == 0, done.stderr
    events = events_of(path.read_text())
    assert_consistent(events)
    assert events[0]["frontend"] == "replay"
    return done, done_of(events)["replay"]


def rows(target: Target, sql: str) -> list[tuple[Any, ...]]:
    with target.connect_as_user() as connection:
        return connection.execute(sql).fetchall()


# --- a recorded run of pgbench


@pytest.mark.server
@pytest.mark.parametrize("mode", ["simple", "prepared"])
@pytest.mark.parametrize("clients", [1, 4])
def test_a_recorded_run_of_pgbench_gives_the_same_rows(
    replay: Program, start_cluster: StartCluster, tmp_path: Path, clients: int, mode: str
) -> None:
    settings = {"log_min_duration_statement": "0", "log_line_prefix": PREFIX, "fsync": "off"}
    cluster = start_cluster(18, settings=settings)
    recorded = replace(cluster.target, dbname="recorded")
    copies = [replace(cluster.target, dbname=name) for name in ("fast", "timed")]
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE DATABASE recorded")
    original().load(recorded, "-s", "4")
    wait_until_left(recorded)
    with cluster.target.connect_as_user() as connection:
        for copy in copies:
            connection.execute(f"CREATE DATABASE {copy.dbname} TEMPLATE recorded")
    log = cluster.data_directory.with_suffix(".log")
    before = log.stat().st_size
    run = original().run(recorded, "-n", "-c", str(clients), "-t", "50", "-M", mode)
    assert run.status == 0, run.stderr
    wait_until_left(recorded)
    capture = captured(tmp_path, log.read_bytes()[before:])
    about = json.loads((capture / "capture.json").read_text())
    expected = contents(recorded)
    for copy, options in zip(copies, ([FAST, "-j", "2"], ["--speed", "10"]), strict=True):
        done, said = replayed(replay, copy, capture, *options)
        # beside the clients there is the session that looks at the tables before
        assert said["sessions"]["finished"] == about["sessions"] == clients + 1
        assert said["statements"] == about["statements"] > 350 * clients
        assert said["transactions"] == 50 * clients + about["statements"] - 350 * clients
        assert (said["unexpected_failures"], said["missing_failures"]) == ({}, {})
        assert contents(copy) == expected
        assert f"sessions: {clients + 1} of {clients + 1} finished\n" in done.stdout
        inserts, selects = (starting_with(said, word) for word in ("INSERT", "SELECT"))
        assert [sum(template[key] for template in inserts) for key in ("rows", "statements")] == [50 * clients] * 2
        assert histogram([template["histogram"] for template in selects]).get_total_count() == 50 * clients


def starting_with(said: Event, word: str) -> list[Event]:
    return [template for template in said["templates"] if template["text"].startswith(word)]


def captured(directory: Path, log: bytes) -> Path:
    """Returns the capture of the sessions in the database `recorded`."""
    (directory / "server.log").write_bytes(log)
    command = [str(require_engine()), "capture", "-q", "-o", str(directory / "capture")]
    selection = ["--prefix", PREFIX, "--database", "recorded", str(directory / "server.log")]
    subprocess.run([*command, *selection], check=True, stdout=subprocess.DEVNULL)
    return directory / "capture"


def contents(target: Target) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the rows of pgbench's four tables, without the times of the history."""
    return {
        table: rows(target, f"SELECT {columns} FROM {table} ORDER BY {columns}") for table, columns in TABLES.items()
    }


# --- errors


@pytest.mark.server
def test_errors_are_compared_with_the_recorded_ones(replay: Program, fresh, tmp_path: Path) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
    insert = "insert into t values ($1)"
    capture = write_capture(
        tmp_path / "capture",
        [
            Recorded(
                [
                    Sent(0.0, insert, ["1"]),
                    Sent(0.1, insert, ["1"], sqlstate="23505"),
                    Sent(0.2, insert, ["2"], sqlstate="23505"),
                    Sent(0.3, "select 1/0"),
                    Sent(0.4, "select * from missing where id = $1", ["7"], "extended"),
                    Sent(0.5, "begin"),
                    Sent(0.6, insert, ["3"]),
                    Sent(0.7, insert, ["3"], sqlstate="23505"),
                    Sent(0.8, "select 2", sqlstate="25P02"),
                    Sent(0.9, "rollback"),
                    Sent(1.0, "select id from t", rows=2),
                    Sent(1.1, "select id from t", rows=5),
                ]
            )
        ],
    )
    done, said = replayed(replay, target, capture, FAST)
    assert said["expected_failures"] == {"23505": 2, "25P02": 1}
    assert said["unexpected_failures"] == {"22012": 1, "42P01": 1}
    assert said["missing_failures"] == {"23505": 1}
    assert (said["statements"], said["transactions"], said["other_rows"]) == (12, 8, 1)
    assert rows(target, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    by_text = {template["text"]: template for template in said["templates"]}
    assert by_text["select * from missing where id = $1"]["unexpected_failures"] == {"42P01": 1}
    inserts = by_text[insert]
    assert (inserts["expected_failures"], inserts["missing_failures"], inserts["rows"]) == (
        {"23505": 2},
        {"23505": 1},
        3,
    )
    assert "errors that were not recorded: 2 (22012: 1, 42P01: 1)\n" in done.stdout
    said_of_it = 'failed with 42P01, which was not recorded: relation "missing" does not exist\n'
    assert f"(select * from missing where id = $1) {said_of_it}" in done.stderr


@pytest.mark.server
def test_what_follows_from_an_error_in_its_transaction_is_counted_with_it(
    replay: Program, fresh, tmp_path: Path
) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE t (id int)")
    insert, missing = "insert into t values ($1)", "select * from missing"
    capture = write_capture(
        tmp_path / "capture",
        [
            Recorded(
                [
                    Sent(0.0, "begin"),
                    Sent(0.1, missing),
                    Sent(0.2, insert, ["1"]),
                    Sent(0.3, insert, ["2"]),
                    Sent(0.4, "rollback"),
                    Sent(0.5, "begin"),
                    Sent(0.6, insert, ["1"], sqlstate="23505"),
                    Sent(0.7, "select 1", sqlstate="25P02"),
                    Sent(0.8, "rollback"),
                    Sent(0.9, "select 1"),
                ]
            )
        ],
    )
    done, said = replayed(replay, target, capture, FAST)
    assert said["unexpected_failures"] == {"25P02": 2, "42P01": 1}
    assert said["missing_failures"] == {"23505": 1, "25P02": 1}
    by_text = {template["text"]: template for template in said["templates"]}
    assert by_text[missing]["consequences"] == {"42P01": 2}
    assert (by_text[insert]["missing_consequences"], by_text[insert]["consequences"]) == ({"23505": 1}, {})
    assert done.stderr.count("which was not recorded") == 1, "what follows is not reported"


@pytest.mark.server
def test_hashes_of_rows_tell_other_contents_from_another_order(replay: Program, fresh, tmp_path: Path) -> None:
    ordered, listed, changed = "select a from t order by b", "select a, b from t where b < $1", "update t set b = b"
    session = Recorded([Sent(0.0, ordered), Sent(0.1, listed, ["9"], "extended"), Sent(0.2, changed)], times=2)
    capture = write_capture(tmp_path / "capture", [session])
    hashes = []
    for values in ("('x', 1), ('y', 2)", "('y', 2), ('x', 1)", "('x', 2), ('y', 1)", "('x', 1), ('z', 2)"):
        target = fresh(18, empty=True)
        with target.connect_as_user() as connection:
            connection.execute(f"CREATE TABLE t (a text, b int); INSERT INTO t VALUES {values}".encode())
        _, said = replayed(replay, target, capture, FAST, "--hash-results")
        hashes.append({template["text"]: template["rows_hash"] for template in said["templates"]})
        assert all(re.fullmatch("[0-9a-f]{16}", found) for found in hashes[-1].values())
    first, *others = hashes
    assert first.keys() == {ordered, listed, changed}
    differing = [{text for text in first if other[text] != first[text]} for other in others]
    assert differing == [set(), {listed}, {ordered, listed}]
    _, said = replayed(replay, target, capture, FAST)
    assert {template["rows_hash"] for template in said["templates"]} == {None}


@pytest.mark.server
def test_a_session_that_loses_its_connection_is_over_and_the_others_go_on(
    replay: Program, fresh, tmp_path: Path
) -> None:
    target = fresh(18, empty=True)
    rest = [Sent(0.1, "select 1"), Sent(0.2, "select 1")]
    broken = [Sent(0.0, "select pg_terminate_backend(pg_backend_pid())"), *rest]
    capture = write_capture(tmp_path / "capture", [Recorded(broken), Recorded(rest, times=3)])
    done, said = replayed(replay, target, capture, FAST)
    assert said["unexpected_failures"] == {"57P01": 1}
    assert (said["sessions"]["lost"], said["sessions"]["finished"], said["statements"]) == (1, 3, 7)
    assert "  1 lost their connection\n" in done.stdout


@pytest.mark.server
def test_a_session_that_waits_notices_that_its_connection_is_gone(replay: Program, fresh, tmp_path: Path) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        # waits until the session has its first answer, however late that is, and ends it
        connection.execute(
            "CREATE FUNCTION end_the_other() RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE other int; BEGIN LOOP"
            " PERFORM pg_stat_clear_snapshot(); SELECT pid INTO other FROM pg_stat_activity"
            " WHERE application_name = 'pgtrial replay' AND datname = current_database() AND pid <> pg_backend_pid()"
            " AND state = 'idle' AND query = 'select 1'; EXIT WHEN FOUND; PERFORM pg_sleep(0.01); END LOOP;"
            " RETURN pg_terminate_backend(other); END $$"
        )
    # the next statement of the session that is lost comes after the time of the replay, enough for a busy machine
    waiting = Recorded([Sent(0.0, "select 1"), Sent(3000.0, "select 1")])
    ending = Recorded([Sent(0.1, "select end_the_other()", rows=1)])
    capture = write_capture(tmp_path / "capture", [waiting, ending])
    _, said = replayed(replay, target, capture, "-T", "6")
    assert (said["other_rows"], said["sessions"]["lost"], said["statements"]) == (0, 1, 2)


@pytest.mark.server
def test_sessions_wait_for_one_another_where_the_server_has_too_few_places(
    replay: Program, fresh, tmp_path: Path
) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 3")
    capture = write_capture(tmp_path / "capture", [Recorded([Sent(0.0, "select 1"), Sent(0.2, "select 1")], times=5)])
    few = replace(target, user="few")
    try:
        refused = replay.run(few, str(capture))
        assert refused.status == 3
        assert refused.stderr == (
            "pgtrial-engine replay: error: up to 5 sessions are open at the same time, more than the server allows: it "
            "allows this user at most 3 connections (the role's CONNECTION LIMIT). Choose --max-connections=3 or less, "
            "so that sessions wait for one another, or raise that limit\n"
        )
        # a place is free when the backend that had it has ended, which may be later than its session
        _, said = replayed(replay, few, capture, "--max-connections=3")
        assert (said["sessions"]["finished"], said["statements"]) == (5, 10)
    finally:
        wait_until_left(target)
        with target.connect_as_user() as connection:
            connection.execute("DROP ROLE few")


# --- times


@pytest.mark.server
def test_response_times_count_from_the_recorded_times(replay: Program, fresh, tmp_path: Path) -> None:
    said = [Sent(number / 1000, "select pg_sleep(0.2)", protocol="extended") for number in range(5)]
    capture = write_capture(tmp_path / "capture", [Recorded(said)])
    path = tmp_path / "events"
    done = replay.run(fresh(18, empty=True), "--events", str(path), str(capture))
    assert done.status == 0, done.stderr
    measured = done_of(events_of(path.read_text()))["measure"]
    # the last one was to start when the first one had just begun
    assert measured["latency_us"]["max"] >= 990_000
    assert measured["service_us"]["p50"] >= 199_000
    assert measured["lag_us"]["p99.9"] >= 790_000
    assert measured["queries"]["reads"] == 5


@pytest.mark.server
def test_a_transaction_is_whole_when_the_time_is_over(replay: Program, fresh, tmp_path: Path) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE t (id int)")
    insert = "insert into t values ($1)"
    said = [
        Sent(0.0, "begin"),
        Sent(0.2, insert, ["1"]),
        Sent(3000.0, insert, ["2"]),
        Sent(6000.0, "commit"),
        Sent(6000.0, insert, ["3"]),
    ]
    capture = write_capture(tmp_path / "capture", [Recorded(said), Recorded([Sent(4000.0, insert, ["4"])])])
    # so long that a busy machine begins the transaction before the time is over
    done, told = replayed(replay, target, capture, "-T", "4", "-j", "2")
    assert rows(target, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    assert (told["statements"], told["sessions"]["begun"], told["sessions"]["finished"]) == (4, 1, 0)
    assert "statements: 4 of 6 executed" in done.stdout


@pytest.mark.server
def test_a_sample_has_whole_sessions_and_copies_repeat_them(replay: Program, fresh, tmp_path: Path) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE t (session int)")
    insert = "insert into t values ($1)"
    capture = write_capture(
        tmp_path / "capture", [Recorded([Sent(0.0, insert, [str(number)])] * 3) for number in range(40)]
    )
    _, said = replayed(replay, target, capture, FAST, "--sample", "50%", "--copies", "2", "--max-connections", "8")
    counted = rows(target, "SELECT session, count(*) FROM t GROUP BY session")
    assert 0 < len(counted) < 40
    assert {count for _, count in counted} == {6}
    assert said["sessions"]["finished"] == 2 * len(counted)


@pytest.mark.server
def test_the_least_sample_is_one_session(replay: Program, fresh, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture", [Recorded([Sent(0.0, "select 1")])] * 6)
    for seed in range(5):
        _, said = replayed(replay, fresh(18, empty=True), capture, FAST, "--sample=0.0001%", f"--random-seed={seed}")
        assert said["sessions"]["finished"] == 1


@pytest.mark.server
def test_the_edges_of_a_capture_are_told(replay: Program, fresh, tmp_path: Path) -> None:
    cut = [Sent(0.0, "select 1"), Sent(0.1, "commit"), Sent(0.2, "begin"), Sent(0.3, "select 1")]
    capture = write_capture(tmp_path / "capture", [Recorded(cut, database="a"), Recorded(cut[:1], database="b")])
    target = fresh(18, empty=True)
    done, said = replayed(replay, target, capture, FAST)
    assert (said["sessions"]["begun_before"], said["sessions"]["left_open"]) == (1, 1)
    assert "  1 left in a transaction; it may have ended after the capture\n" in done.stdout
    assert (
        f'warning: the recorded sessions used several databases (a, b); all sessions are replayed in "{target.dbname}"'
        in done.stderr
    )


@pytest.mark.server
def test_a_session_parses_a_prepared_statement_once_and_anew_after_it_was_dropped(
    replay: Program, fresh, tmp_path: Path
) -> None:
    one = Sent(0.0, "select $1::int", ["1"], "prepared")
    names = "select name from pg_prepared_statements"
    said = [one, one, Sent(0.0, names, rows=1), Sent(0.0, "discard all"), one, Sent(0.0, names, rows=1)]
    capture = write_capture(tmp_path / "capture", [Recorded(said)])
    _, told = replayed(replay, fresh(18, empty=True), capture, FAST)
    assert (told["statements"], told["unexpected_failures"], told["other_rows"]) == (6, {}, 0)


@pytest.mark.server
def test_null_parameters_and_any_text_arrive_as_they_were(replay: Program, fresh, tmp_path: Path) -> None:
    target = fresh(18, empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE t (id int, text text)")
    texts: list[str | None] = [None, "", "it's", "Größe\n\\", "x" * 5000]
    said = [Sent(0.0, "insert into t values ($1, $2)", [str(i), text], "extended") for i, text in enumerate(texts)]
    said.append(Sent(0.0, "insert into t values ($1, $2)", ["5", "E'\\\\x''' "]))
    capture = write_capture(tmp_path / "capture", [Recorded(said)])
    replayed(replay, target, capture, FAST)
    expected = [*enumerate(texts), (5, "\\x'")]
    assert rows(target, "SELECT id, text FROM t ORDER BY id") == expected


@pytest.mark.server
def test_texts_arrive_in_a_database_of_another_encoding(replay: Program, fresh, tmp_path: Path) -> None:
    target = replace(fresh(18, empty=True), dbname="latin")
    with replace(target, dbname="postgres").connect_as_user() as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        with target.connect_as_user() as connection:
            connection.execute("CREATE TABLE t (text text)")
        insert = "insert into t values ($1)"
        said = [Sent(0.0, insert, ["'Größe'"]), Sent(0.0, insert, ["Größe"], "prepared")]
        replayed(replay, target, write_capture(tmp_path / "capture", [Recorded(said)]), FAST)
        assert rows(target, "SELECT text = U&'Gr\\00f6\\00dfe', length(text) FROM t") == [(True, 5)] * 2
    finally:
        wait_until_left(target)
        with replace(target, dbname="postgres").connect_as_user() as connection:
            connection.execute("DROP DATABASE latin")


@pytest.mark.server
def test_an_interrupt_ends_a_replay_with_what_was_done_so_far(replay: Program, fresh, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture", [Recorded([Sent(0.0, "select 1"), Sent(3000.0, "select 1")])])
    path = tmp_path / "events"
    with replay.start(fresh(18, empty=True), ["--events", str(path), str(capture)]) as process:
        wait_for(path, lambda events: any(tick["queries"]["reads"] for tick in of_kind(events, "tick")))
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.status == 130
    assert "statements: 1 of 2 executed" in done.stdout
    assert "  1 begun and not finished\n" in done.stdout
    assert "interrupted after" in done.stderr
    told = done_of(events_of(path.read_text()))
    assert (told["interrupted"], told["replay"]["statements"]) == (True, 1)
