"""The load of a study that searches for the highest rate at which a promise on the response time is kept."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model import marks
from pgtrial.model.metrics import CAPACITY
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.transactions import CapacitySearch
from pgtrial.model.study.capacity import NOT_FOR_CAPACITY
from pgtrial.model.study.kinds.kind import Asked, misplaced
from pgtrial.model.study.kinds.transactions import Transactions
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.study.workload_names import stands_alone


class Capacity(Transactions):
    """Transactions for a search for the capacity: the warm-up runs them in a closed loop, and each probe runs them at a
    rate that the search chooses."""

    stored = CapacitySearch
    why_no_turns = "each arm looks for its capacity at rates of its own"
    why_no_fleet = "one engine makes the probes of a capacity, so several machines cannot share the load"
    has_price = False
    has_planned_time = False
    fewest_arms = 1
    searches_rate = True

    def is_meant(self, load: LoadKeys) -> bool:
        return load.capacity is not None

    def objections(self, load: LoadKeys) -> Iterator[str]:
        if not self.is_meant(load):
            return
        unfit = [name for name in load.workload if stands_alone(name) or is_sysbench(name)]
        if unfit:
            capacity = marks.short_key("load", "capacity")
            yield f"{capacity} is not for {unfit[0]}; use a workload of pgbench, a script, a pack or {ORDER_ENTRY}"
        yield from misplaced(load, NOT_FOR_CAPACITY, "a study of capacity")

    def misfit(self, load: LoadKeys, metric: str) -> str | None:
        if metric != CAPACITY:
            return "is not for a study of capacity, which compares only the capacity; leave it out"
        return None

    def metrics(self, load: LoadKeys, declared: list[str]) -> list[str]:
        return [CAPACITY]

    def caution(self, study: Asked) -> str | None:
        if not study.has_given or study.load.capacity is None or study.load.capacity.at_most is not None:
            return None
        return (
            "the search for the capacity loads the given server to its limit, which its other users will notice; give "
            f"the highest rate that is allowed, in transactions per second, as {marks.key('load', 'capacity.at_most')}"
        )

    def promise(self, load: LoadKeys) -> CapacityLoad | None:
        asked = load.capacity
        if asked is None:
            return None
        return CapacityLoad(
            percentile=asked.percentile, limit_s=asked.limit, failures=asked.failures, at_most=asked.at_most
        )
