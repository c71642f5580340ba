"""Tests of the lines of a server's log that are reported when the server has ended, and of those that stay private."""

from __future__ import annotations

from pathlib import Path

from pgtrial.evidence.observe.server_log import last_lines, panic, telling_lines

FULL_DISK = """\
2026-11-21 11:00:01.120 UTC [7] LOG:  checkpoint starting: immediate force wait
2026-11-21 11:00:09.120 UTC [9] PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device
2026-11-21 11:00:09.120 UTC [9] STATEMENT:  ALTER ROLE bob PASSWORD 'secret'
2026-11-21 11:00:09.300 UTC [1] LOG:  server process (PID 9) was terminated by signal 6: Aborted
2026-11-21 11:00:09.300 UTC [1] DETAIL:  Failed process was running: ALTER ROLE bob PASSWORD 'secret'
2026-11-21 11:00:09.300 UTC [1] LOG:  terminating any other active server processes
2026-11-21 11:00:09.301 UTC [11] FATAL:  the database system is in recovery mode
2026-11-21 11:00:09.302 UTC [12] FATAL:  the database system is in recovery mode
"""


def test_panic_fatal_and_ended_processes_are_told_with_their_time_and_alike_lines_once():
    assert telling_lines(FULL_DISK) == [
        '2026-11-21 11:00:09.120 UTC PANIC: could not write to file "pg_wal/xlogtemp.9": No space left on device',
        "2026-11-21 11:00:09.300 UTC LOG: server process (PID 9) was terminated by signal 6: Aborted",
        "2026-11-21 11:00:09.300 UTC LOG: terminating any other active server processes",
        "2026-11-21 11:00:09.301 UTC FATAL: the database system is in recovery mode (2 times)",
    ]
    assert panic(telling_lines(FULL_DISK)) == (
        'PANIC: could not write to file "pg_wal/xlogtemp.9": No space left on device'
    )


def test_a_panic_is_told_however_many_lines_follow_and_those_are_the_last():
    noise = "".join(f'2026-11-21 11:01:00.0 UTC [5] FATAL:  role "{letter}" is gone\n' for letter in "abcdefghijkl")
    told = telling_lines(FULL_DISK + noise)
    assert len(told) == 8
    assert told[0].endswith("No space left on device")
    assert told[1:] == [f'2026-11-21 11:01:00.0 UTC FATAL: role "{letter}" is gone' for letter in "fghijkl"]


def test_only_what_came_during_the_load_is_told_and_a_missing_log_tells_nothing(tmp_path: Path):
    log = tmp_path / "server.log"
    log.write_text(FULL_DISK)
    begin = log.stat().st_size
    assert last_lines(log, begin) == []
    with log.open("a") as file:
        file.write("2026-11-21 11:02:00.0 UTC [1] FATAL:  terminating connection\n")
    assert last_lines(log, begin) == ["2026-11-21 11:02:00.0 UTC FATAL: terminating connection"]
    assert last_lines(tmp_path / "none") == []
    assert panic(last_lines(log, begin)) is None
