"""Replays of captures: ten thousand sessions are small, and what cannot be replayed is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.events import done_of, events_of, of_kind
from tests.engine.programs import Program, ended
from tests.engine.written_captures import Recorded, Sent, write_capture
from tests.processes import Peak

FAST = "--as-fast-as-possible"
MANY = 10_000
MOST_PER_SESSION_KIB = 4.0


# --- many sessions


def test_ten_thousand_sessions_at_the_same_time_are_small(replay: Program, null_server: Target, tmp_path: Path) -> None:
    said = [Sent(3 + number / 10, "update t set a = $1", [f"'{'x' * 150}'"]) for number in range(13)]
    peaks = []
    for sessions in (1, MANY):
        capture = write_capture(tmp_path / f"of-{sessions}", [Recorded(said, times=sessions, start=0.0)])
        path = tmp_path / f"events-{sessions}"
        args = ["-j", "2", "--events", str(path), str(capture)]
        with replay.start(null_server, args) as process, Peak(process.pid) as peak:
            done = ended(process)
        assert done.status == 0, done.stderr
        told = done_of(events_of(path.read_text()))["replay"]
        assert told["statements"] == 13 * sessions
        assert told["sessions"]["finished"] == sessions
        assert told["rows"] == 13 * sessions
        peaks.append(peak.kib)
    alone, together = peaks
    assert (together - alone) / (MANY - 1) <= MOST_PER_SESSION_KIB


# --- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name the directory of a capture; try"),
        (["DIRECTORY/none"], '"DIRECTORY/none" is not a capture: it has no capture.json'),
        (["DIRECTORY/newer"], 'the capture in "DIRECTORY/newer" has format 9, and this release reads formats up to 1'),
        (["DIRECTORY/cut"], '"DIRECTORY/cut/sessions.bin" is cut short: it has '),
        (["DIRECTORY/empty"], 'the capture in "DIRECTORY/empty" has no statements'),
        (["--slice=250ms", "DIRECTORY/good"], "--slice cannot be combined with a replay: "),
        (["--shard=1/2", "DIRECTORY/good"], "--shard cannot be combined with a replay: "),
        (
            ["--events=DIRECTORY/none/x", "DIRECTORY/good"],
            'could not open events file "DIRECTORY/none/x": No such file',
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_a_sentence(
    replay: Program, null_server: Target, tmp_path: Path, options: Sequence[str], message: str
) -> None:
    good = [Recorded([Sent(0.0, "select 1")])]
    write_capture(tmp_path / "good", good)
    write_capture(tmp_path / "newer", good, format=9)
    write_capture(tmp_path / "empty", [])
    cut = write_capture(tmp_path / "cut", good) / "sessions.bin"
    cut.write_bytes(cut.read_bytes()[:-1])
    done = replay.run(null_server, *(option.replace("DIRECTORY", str(tmp_path)) for option in options))
    assert done.status == 3
    assert done.stderr.startswith(f"pgtrial-engine replay: error: {message.replace('DIRECTORY', str(tmp_path))}")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")


def test_examples_are_the_first_statements_that_did_not_fail_as_they_were_sent(replay: Program, tmp_path: Path) -> None:
    said = [
        Sent(0.0, "select $1", ["'it''s'"], sqlstate="22012"),
        Sent(1.0, "select $1", ["42"]),
        Sent(2.0, "select $1::int, $2", ["7", None], protocol="prepared"),
        Sent(3.0, "select 3"),
    ]
    capture = write_capture(tmp_path / "capture", [Recorded(said)])
    # without a server
    done = replay.run(Target(str(tmp_path), 5432, "somebody", "anything"), "--examples=1,0,9", str(capture))
    assert (done.status, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"template": 0, "text": "select 42", "values": []},
        {"template": 1, "text": "select $1::int, $2", "values": ["7", None]},
    ]


def test_a_capture_that_is_damaged_inside_ends_the_replay(replay: Program, null_server: Target, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture", [Recorded([Sent(0.0, "select 1")] * 3)])
    path = capture / "sessions.bin"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = replay.run(null_server, FAST, str(capture))
    assert done.status == 2
    assert done.stderr.startswith(f'pgtrial-engine replay: error: "{path}" is damaged (')


def test_a_server_that_is_not_there_is_told_before_anything_begins(replay: Program, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "capture", [Recorded([Sent(0.0, "select 1")])])
    done = replay.run(Target(str(tmp_path), 5432, "somebody", "anything"), str(capture))
    assert done.status == 3
    assert done.stderr.startswith("pgtrial-engine replay: error: connection to server on socket ")


def test_the_plan_is_in_the_first_event(replay: Program, null_server: Target, tmp_path: Path) -> None:
    said = [Sent(0.0, "select 1"), Sent(4.0, "select 1")]
    capture = write_capture(tmp_path / "capture", [Recorded(said, times=2)])
    done = replay.run(null_server, "--events", "-", "--speed=100", "--copies=2", str(capture))
    events = events_of(done.stdout)
    assert events[0]["plan"]["replay"] == {
        "capture": str(capture),
        "sessions": 4,
        "statements": 8,
        "recorded_s": 4.0,
        "most_at_once": 4,
        "speed": 100.0,
        "sample_percent": 100.0,
        "copies": 2,
    }
    plan = events[0]["plan"]
    assert (plan["query_mode"], plan["clients"], plan["transactions"]) == ("recorded", 4, 8)
    assert of_kind(events, "tick")
