"""Signals that pgbench ends by: SIGPIPE where nobody reads its words any more, SIGALRM where its time is over."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.conftest import require_engine
from tests.engine.events import assert_consistent, done_of, events_of
from tests.engine.programs import TIMEOUT_S, Ended, Program, ended, settle
from tests.engine.sysbench.sides import original as original_sysbench
from tests.engine.sysbench.sides import ours as our_sysbench

pytestmark = pytest.mark.server

NOTICES = "DO $$ BEGIN RAISE NOTICE 'x'; END $$;\n"
DEBUG = "\\set a debug(1)\n"


def status_of(program: Program, target: Target, args: list[str], *closed: str, directory: Path) -> int:
    """Returns the exit status of a run whose streams in `closed` (`stdout`, `stderr`) are pipes that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    streams = {name: write if name in closed else subprocess.DEVNULL for name in ("stdout", "stderr")}
    options, variables = program._led(target, directory)
    try:
        return subprocess.run(
            [*program.command, *options, *args],
            env={**os.environ, **variables},
            cwd=directory,
            **streams,
            check=False,
            timeout=TIMEOUT_S,
        ).returncode
    finally:
        os.close(write)


@pytest.mark.parametrize(
    ("closed", "args"),
    [
        ("stdout", ["-S", "-t", "3"]),
        ("stderr", ["-S", "-T", "60", "-P", "1"]),
        ("stderr", ["-T", "60", "-f", "notices.sql"]),
        ("stderr", ["-T", "60", "-f", "debug.sql"]),
        ("stderr", ["-i"]),
        ("stderr", ["--nosuch"]),
        ("stdout", ["--help"]),
    ],
)
def test_a_closed_pipe_ends_the_program(peers, fresh, tmp_path, closed, args):
    (tmp_path / "notices.sql").write_text(NOTICES)
    (tmp_path / "debug.sql").write_text(DEBUG)
    target = fresh()
    statuses = [status_of(program, target, args, closed, directory=tmp_path) for program in peers]
    assert statuses == [-signal.SIGPIPE] * 2


@pytest.mark.parametrize("args", [["cpu", "--events=1", "run"], ["--help"], ["oltp_read_only", "help"]])
def test_a_closed_pipe_ends_sysbench(loaded, tmp_path, args):
    statuses = [
        status_of(program, loaded(18), args, "stdout", directory=tmp_path)
        for program in (original_sysbench(), our_sysbench())
    ]
    assert statuses == [-signal.SIGPIPE] * 2


def test_a_closed_pipe_ends_the_null_server(tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [str(require_engine()), "null-server", "--socket-dir", str(tmp_path), "--port", "5432"]
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def under_alarm(program: Program, target: Target, args: list[str], *, idle: bool = False) -> Ended:
    """Returns the result of a run of ten minutes that gets SIGALRM after a second with transactions, or after its first
    second if it is `idle`.
    """
    begins = "progress: " if idle else r"progress: \S+ s, (?!0\.0 tps)"
    with program.start(target, ["-n", "-S", "-P", "1", *args]) as process:
        assert any(re.match(begins, line) for line in process.stderr)
        process.send_signal(signal.SIGALRM)
        return ended(process)


@pytest.mark.parametrize("args", [[], ["-R", "500"], ["-c", "4", "-j", "2", "--connect"]])
def test_an_alarm_ends_a_timed_run_with_its_report(peers, loaded, args):
    results = [under_alarm(program, loaded(18), ["-T", "600", *args]) for program in peers]
    theirs, mine = (settle(done.stdout) for done in results)
    assert mine == theirs
    assert [done.status for done in results] == [0, 0]
    assert "duration: 600 s\n" in mine
    assert "actually processed: 0\n" not in results[1].stdout


def test_an_alarm_ends_clients_that_wait_for_a_scheduled_start(peers, loaded):
    """The original waits for that start."""
    done = under_alarm(peers[1], loaded(18), ["-T", "600", "-R", "0.02", "-c", "2", "--random-seed=1"], idle=True)
    assert done.status == 0
    assert "duration: 600 s\n" in done.stdout


def test_an_alarm_kills_a_run_that_time_does_not_limit(peers, loaded):
    statuses = [under_alarm(program, loaded(18), ["-t", "100000000"]).status for program in peers]
    assert statuses == [-signal.SIGALRM] * 2


def test_the_events_of_a_run_that_an_alarm_ended_are_whole(peers, loaded, tmp_path):
    path = tmp_path / "events"
    done = under_alarm(peers[1], loaded(18), ["-T", "600", "-c", "4", "-j", "2", "--events", str(path)])
    assert done.status == 0, done.stderr
    events = events_of(path.read_text())
    assert_consistent(events)
    end = done_of(events)
    assert (end["status"], end["interrupted"]) == (0, False)
    assert end["measure"]["transactions"] > 0
