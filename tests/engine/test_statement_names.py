"""Names of prepared statements differ between sessions: behind a pooler these may share a session of the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import require_engine
from tests.engine.events import done_of, events_of
from tests.engine.programs import Program
from tests.engine.written_captures import Recorded, Sent, write_capture
from tests.poolers import pooled

pytestmark = pytest.mark.server


def test_sessions_of_order_entry_share_one_of_the_server(
    clusters: Callable[[int], Cluster], fresh: Callable[..., Target]
) -> None:
    order_entry = Program("order-entry", (str(require_engine()), "order-entry"))
    target = fresh(18, empty=True)
    loaded = order_entry.run(target, "load", "-w", "1")
    assert loaded.status == 0, loaded.stderr
    with pooled(clusters(18), "transaction", size=1, dbname=target.dbname) as pool:
        done = order_entry.run(pool, "run", "-M", "prepared", "-c", "4", "-t", "5")
    assert (done.status, done.stderr) == (0, "")


def test_sessions_of_a_replay_share_one_of_the_server(
    replay: Program, clusters: Callable[[int], Cluster], fresh: Callable[..., Target], tmp_path: Path
) -> None:
    texts = ["select $1::int", "select $1::int + 1", "select $1::int"]
    said = [Sent(number / 100, text, ["7"], protocol="prepared") for number, text in enumerate(texts)]
    capture = write_capture(tmp_path / "capture", [Recorded(said, times=4, start=0.0)])
    events = tmp_path / "events.jsonl"
    target = fresh(18, empty=True)
    with pooled(clusters(18), "transaction", size=1, dbname=target.dbname) as pool:
        done = replay.run(pool, "--events", str(events), str(capture))
    assert done.status == 0, done.stderr
    told = done_of(events_of(events.read_text()))["replay"]
    assert (told["statements"], told["unexpected_failures"]) == (12, {})
