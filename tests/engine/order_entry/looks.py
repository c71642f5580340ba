"""Queries and checks that the tests of order entry share."""

from __future__ import annotations

import re

from pgtrial.loads.target import Target
from tests.engine.programs import Program

WAREHOUSES = 2
DISTRICTS = 10 * WAREHOUSES
WAITING = {"PGOPTIONS": "-c commit_delay=20000"}
"""Environment variables for loads of a fixed time: each commit waits 20 ms, which leaves the processors to
other tests.
"""

KINDS = ["new-order", "payment", "order-status", "delivery", "stock-level", "new-order, rolled back"]


def violated(order_entry: Program, target: Target) -> set[int]:
    """Runs the consistency check and returns the numbers of the conditions of order entry that do not hold."""
    done = order_entry.run(target, "check")
    held = {int(number) for number in re.findall(r"^condition (\d+): holds \(.+\)$", done.stdout, re.MULTILINE)}
    broken = {int(number) for number in re.findall(r"error: condition (\d+) does not hold for ", done.stderr)}
    assert held | broken == set(range(1, 13)), done
    assert not held & broken, done
    assert done.status == (2 if broken else 0), done
    return broken


def number(target: Target, query: str) -> float:
    with target.connect_as_user() as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return float(row[0])
