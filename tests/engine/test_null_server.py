"""The null server as clients see it: psql, psycopg, the original pgbench and ours."""

from __future__ import annotations

import math
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.probes import probe_of
from pgtrial.loads.target import Target
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.trial import Probe
from tests.conftest import require_engine
from tests.engine.events import run_with_events
from tests.engine.programs import TIMEOUT_S, Ended, Program, client_program

LISTENING = "null-server: listening on "
STATUS_OF_LIBPQ = psycopg.pq.TransactionStatus

Start = Callable[..., Target]


@pytest.fixture
def null_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a null server: `null_server("--delay", "1ms")`; every one has to end with status 0."""
    running: list[subprocess.Popen[str]] = []

    def start(*options: str) -> Target:
        directory = tmp_path_factory.mktemp("null")
        process = _spawn("--socket-dir", str(directory), *options)
        running.append(process)
        assert _first_line(process) == f"{LISTENING}{directory}/.s.PGSQL.5432\n"
        return Target(str(directory), 5432, "somebody", "anything")

    yield start
    for process in running:
        process.terminate()
        assert _ended(process).status == 0


def test_psql_gets_rows_tags_and_transactions(null_server: Start) -> None:
    target = null_server()
    script = ["begin; update t set a = 1", "select 1", "select count(*) from pgbench_branches", "rollback", "vacuum t"]
    commands = [word for text in script for word in ("-c", text)]
    done = _run([str(client_program("psql")), "-XAt", *commands], target)
    assert done == Ended(0, "BEGIN\nUPDATE 1\n0\n1\nROLLBACK\nVACUUM\n", "")


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("workload", ["select-only", "tpcb-like"])
def test_pgbench_runs_unchanged(null_server: Start, peers: tuple[Program, Program], mode: str, workload: str) -> None:
    target = null_server("--threads", "2")
    for program in peers:
        done = program.run(target, "-n", "-b", workload, "-M", mode, "-c", "4", "-t", "50")
        assert done.status == 0, done.stderr
        assert "number of transactions actually processed: 200/200" in done.stdout
        assert "scaling factor: 1\n" in done.stdout
        assert "partition" not in done.stdout


def test_pgbench_loads_its_tables(null_server: Start, peers: tuple[Program, Program]) -> None:
    target = null_server()
    for program in peers:
        done = program.run(target, "-i", "-s", "2")
        assert done.status == 0, done.stderr


def test_psycopg_prepares_pipelines_copies_and_recovers(null_server: Start) -> None:
    with null_server().connect_as_user(autocommit=False) as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            for number in range(3):
                assert cursor.execute("select %s", [number], prepare=True).fetchall() == [(0,)]
        with connection.pipeline():
            cursors = [connection.execute("select %s", [number]) for number in range(10)]
        assert [cursor.fetchone() for cursor in cursors] == [(0,)] * 10
        cursor = connection.cursor()
        with cursor.copy("COPY t FROM STDIN") as copy:
            for number in range(1000):
                copy.write_row((number, "text"))
        assert cursor.rowcount == 1000
        assert connection.info.transaction_status == STATUS_OF_LIBPQ.INTRANS
        connection.commit()
        assert connection.info.transaction_status == STATUS_OF_LIBPQ.IDLE


def test_a_failed_transaction_takes_nothing_but_its_end(null_server: Start) -> None:
    with null_server().connect_as_user(autocommit=False) as connection:
        connection.execute("select 1")
        connection.pgconn.exec_prepared(b"missing", [])
        assert connection.info.transaction_status == STATUS_OF_LIBPQ.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        assert connection.execute("select 1").fetchone() == (0,)


def test_statements_take_their_time_and_the_survey_none(null_server: Start) -> None:
    survey = [str(client_program("psql")), "-XAt", "-c", "select count(*) from pgbench_branches"]
    assert _run(survey, null_server("--delay", "60min")) == Ended(0, "1\n", "")
    with null_server("--delay", "200ms").connect_as_user() as connection:
        began = time.monotonic()
        connection.execute("select 1; select 2")
        assert time.monotonic() - began >= 0.4


def test_too_many_clients_are_refused_and_room_is_given_back(null_server: Start) -> None:
    target = null_server("--max-connections", "1")
    with target.connect_as_user(), pytest.raises(psycopg.OperationalError, match="too many clients"):
        target.connect_as_user()
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            target.connect_as_user().close()
            break
        except psycopg.OperationalError:
            assert time.monotonic() < deadline


def test_ten_thousand_connections_of_one_process(null_server: Start, peers: tuple[Program, Program]) -> None:
    _, ours = peers
    done = ours.run(null_server(), "-n", "-S", "-c", "10000", "-t", "1")
    assert done.status == 0, done.stderr
    assert "number of transactions actually processed: 10000/10000" in done.stdout


def test_tcp_is_loopback_unless_asked_otherwise() -> None:
    with _spawn("--listen", "0") as process:
        address, port = _first_line(process).removeprefix(LISTENING).strip().split(":")
        assert address == "127.0.0.1"
        with Target(address, int(port), "u", "d").connect_as_user() as connection:
            assert connection.execute("select 1").fetchone() == (0,)
        process.send_signal(signal.SIGINT)
        assert _ended(process).status == 0


def test_the_socket_goes_with_the_server_and_a_left_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with _spawn("--socket-dir", str(tmp_path)) as process:
        assert _first_line(process).startswith(LISTENING)
        with _spawn("--socket-dir", str(tmp_path)) as second:
            refused = _ended(second)
        process.terminate()
        assert _ended(process).status == 0
    assert refused.status == 3
    assert refused.stderr == f"null-server: could not listen on {path}: Address already in use (os error 98)\n"
    assert not path.exists()


def _spawn(*options: str) -> subprocess.Popen[str]:
    command = [str(require_engine()), "null-server", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _ended(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    return Ended(process.returncode, stdout, stderr)


def _run(command: list[str], target: Target) -> Ended:
    return Program("psql", tuple(command)).run(target)


def test_statements_wait_in_a_queue_for_a_limited_number_of_servers(null_server: Start) -> None:
    target = null_server("--delay", "100ms", "--servers", "2", "--threads", "2")
    began = time.monotonic()
    clients = [threading.Thread(target=_ask, args=(target,)) for _ in range(6)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert time.monotonic() - began >= 0.3


def _ask(target: Target) -> None:
    with target.connect_as_user() as connection:
        connection.execute("select 1")


PROMISE = CapacityLoad(percentile="p99", limit_s=0.1, failures=0.001)
SERVED = 200
"""Statements a second that one server with a delay of 5 ms answers."""


def probed(target: Target, directory: Path, rate: float, seconds: int) -> Probe:
    """Runs a load at a rate and returns the result in the form that the search for a capacity reads."""
    ours = Program("pgbench", (str(require_engine()), "pgbench"))
    options = ["-n", "-S", "-M", "prepared", "-c", "8", "-R", str(rate), "-T", str(seconds)]
    done, events = run_with_events(ours, target, directory / f"{rate:g}", *options)
    assert done.status == 0, done.stderr
    outcome = Outcome()
    for event in events:
        outcome.add(event)
    return probe_of(outcome, rate, PROMISE)


def test_a_probe_at_twice_the_capacity_ends_and_counts_what_it_did_not_start(
    null_server: Start, tmp_path: Path
) -> None:
    target = null_server("--delay", "5ms", "--servers", "1")
    probe = probed(target, tmp_path, 2 * SERVED, 3)
    committed = probe.tps * probe.duration_s
    assert committed <= 3 * SERVED + 1
    scheduled = 6 * SERVED
    # the schedule is a Poisson process; clients at a transaction are 8 at most
    assert abs(committed + probe.waiting - scheduled) < 6 * math.sqrt(scheduled) + 8
    late = probe.transactions - committed
    assert probe.waiting - 2 * SERVED * PROMISE.limit_s <= late <= probe.waiting + 8
    assert not probe.kept
    assert probe.slower > 0.5 * probe.transactions
