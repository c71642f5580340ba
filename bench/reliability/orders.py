"""kill -9 of server processes and of the engine in a load of order entry, whose conditions hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from tests.engine.order_entry.kills import AttackedLoad
from tests.engine.programs import Program
from tests.engine.sessions import wait_until_left

from bench.reliability.kind import Attack, Campaign, Figure, Kind
from bench.reliability.served import served
from pgtrial.loads.data.order_entry_tables import violated_condition
from pgtrial.loads.process import engine_path
from pgtrial.loads.target import Target
from pgtrial.model.errors import TrialError

WAREHOUSES, CLIENTS = 4, 32
_SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "2GB", "huge_pages": "off"}
_PAUSE_S = (5.0, 25.0)
"""The shortest and the longest pause between two kills, seconds."""


def _run(campaign: Campaign) -> Iterator[Figure]:
    what = f"kill -9 of server processes and of the engine in order entry, {CLIENTS} clients, {WAREHOUSES} warehouses"
    attack = Attack(campaign, "orders", what, 1)
    with served(campaign, {"workload": "order-entry", "scale": WAREHOUSES}, _SETTINGS) as target:
        before = _orders(target)
        program = Program("order-entry", (str(engine_path()), "order-entry"))
        load = AttackedLoad(
            program, target, campaign.scratch / "orders.jsonl", ["-c", str(CLIENTS), "-j", "2", "--max-tries=0"]
        )
        try:
            load.attack(campaign.orders_s, _PAUSE_S, campaign.chance)
        except AssertionError as failure:
            attack.defect(f"the load did not go on: {failure}")
        wait_until_left(target)
        written = _orders(target) - before
        try:
            violated = violated_condition(target)
        except TrialError as failure:
            violated = str(failure)
    if violated is not None:
        attack.defect(violated)
    attack.count = load.killed.total()
    kinds = ", ".join(f"{count} of the {name}" for name, count in sorted(load.killed.items()))
    state = "hold" if violated is None else "were checked"
    yield attack.figure(f"{kinds}; {written:,} orders entered; the conditions 1 to 12 {state}")


def _orders(target: Target) -> int:
    with target.connect_as_user() as connection:
        row = connection.execute("SELECT count(*) FROM orders").fetchone()
    assert row is not None
    return int(row[0])


KIND = Kind("orders", lambda campaign: campaign.orders_s + 60, _run)
