"""Replays of statements that were cancelled: they are cancelled again, after the recorded time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.capture_program import captured
from tests.engine.events import done_of, events_of
from tests.engine.programs import Program

LOG = """\
2026-11-23 08:00:00.000 UTC [1] LOG:  statement: SELECT pg_sleep(600)
2026-11-23 08:00:00.100 UTC [2] LOG:  statement: SELECT 2
2026-11-23 08:00:00.300 UTC [1] ERROR:  canceling statement due to user request
2026-11-23 08:00:00.300 UTC [1] STATEMENT:  SELECT pg_sleep(600)
2026-11-23 08:00:00.300 UTC [1] LOG:  statement: SELECT 1
2026-11-23 08:00:00.400 UTC [1] LOG:  statement: SELECT pg_sleep(601)
2026-11-23 08:00:00.700 UTC [1] FATAL:  terminating connection due to administrator command
2026-11-23 08:00:00.700 UTC [1] STATEMENT:  SELECT pg_sleep(601)
"""


@pytest.mark.server
@pytest.mark.parametrize("pace", ["--speed=2", "--as-fast-as-possible"])
def test_cancelled_statements_are_cancelled_again(replay: Program, fresh, tmp_path: Path, pace: str) -> None:
    log, capture, events = tmp_path / "server.log", tmp_path / "capture", tmp_path / "events.jsonl"
    log.write_text(LOG)
    captured(capture, log)
    done = replay.run(fresh(18, empty=True), pace, "--events", str(events), str(capture))
    assert done.status == 0, done.stderr
    said = done_of(events_of(events.read_text()))["replay"]
    assert said["expected_failures"] == {"57014": 2}
    assert (said["unexpected_failures"], said["missing_failures"]) == ({}, {})
    assert said["statements"] == 4
    assert said["sessions"]["finished"] == 2
