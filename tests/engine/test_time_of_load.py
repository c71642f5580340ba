"""Tests that the time of a load begins as in the originals: in pgbench before its clients connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.events import done_of, run_with_events
from tests.engine.fake_server import USUAL, FakeServer
from tests.engine.guarded import ADDRESS
from tests.engine.programs import Program, settled

SLOW_S = 1.5
"""The time in seconds that the slow server takes to begin a session: more than the second that the loads last."""


@pytest.fixture
def slow() -> Iterator[Target]:
    with FakeServer(lambda: USUAL, greets_after_s=SLOW_S) as server:
        yield Target(host=ADDRESS, port=server.port, user="somebody", dbname="anything", extra={"sslmode": "disable"})


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "script.sql"
    file.write_text("SELECT 1;\n")
    return str(file)


def test_connecting_takes_of_the_time_as_in_pgbench(
    peers: tuple[Program, Program], slow: Target, script: str, tmp_path: Path
) -> None:
    line = ("-n", "-f", script, "-c", "2", "-T", "1")
    theirs, mine = (settled(program.run(slow, *line, directory=tmp_path)) for program in peers)
    assert mine == theirs
    done, events = run_with_events(peers[1], slow, tmp_path / "events", *line)
    assert done.stdout.endswith("number of transactions actually processed: 0\n")
    assert done_of(events)["measure"] is None


@pytest.mark.parametrize("option", ["--time-after-connecting", "--warmup=0.1"])
def test_the_whole_time_is_measured_where_options_say_so(
    peers: tuple[Program, Program], slow: Target, script: str, tmp_path: Path, option: str
) -> None:
    line = ("-n", "-f", script, "-c", "2", "-T", "1", option)
    done, events = run_with_events(peers[1], slow, tmp_path / "events", *line)
    assert done.status == 0, done.stderr
    end = done_of(events)
    assert end["connect_s"] >= SLOW_S
    assert end["measure"]["duration_s"] == pytest.approx(1, abs=0.001)
    assert end["measure"]["transactions"] > 0
