"""The conditions hold after kill -9 of server processes and of the engine; bench/reliability/orders.py takes longer."""

from __future__ import annotations

from random import Random

import pytest

from tests.engine.order_entry.kills import AttackedLoad
from tests.engine.order_entry.looks import number, violated
from tests.engine.sessions import wait_until_left

pytestmark = pytest.mark.server


def test_the_conditions_survive_killed_backends_and_a_killed_engine(order_entry, start_cluster, tmp_path):
    # each commit waits 20 ms: there is no need to wear the processors out
    target = start_cluster(settings={"commit_delay": "20000", "commit_siblings": "0"}).target
    assert order_entry.run(target, "load").status == 0
    load = AttackedLoad(order_entry, target, tmp_path / "events", ["-c", "16"])
    load.attack(0, (0.2, 1.0), Random(3))
    assert (load.killed["engine"], load.killed["backend"] > 0) == (1, True)
    wait_until_left(target)
    assert number(target, "SELECT count(*) FROM orders") > 30_000
    assert violated(order_entry, target) == set()
