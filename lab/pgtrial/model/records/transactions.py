"""The kind of load that consists of transactions and runs for a given time: pgbench's scripts, sysbench's tests, order
entry or a pack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.kind import Measure, PointKind


@dataclass(frozen=True)
class Transactions(PointKind):
    """The transactions of a load point, which its clients repeat for a given time."""

    key: ClassVar[str] = "transactions"
    clients: int = 1
    rate: float | None = None
    """The given rate in transactions per second; None if each client starts a transaction as soon as its last one has
    ended (a closed loop)."""

    @property
    def measure(self) -> Measure:
        return "goodput" if self.rate is None else "mean response time"

    @property
    def details(self) -> str:
        rate = f", {self.rate:,.10g}/s" if self.rate is not None else ""
        return f", {self.clients} client{'s' if self.clients != 1 else ''}{rate}"

    def directory(self, workload: str, size: str) -> str:
        rate = f"-r{self.rate:.10g}" if self.rate is not None else ""
        return f"{super().directory(workload, size)}-c{self.clients}{rate}"


@dataclass(frozen=True, kw_only=True)
class CapacitySearch(Transactions):
    """The transactions of a load point whose trials look for the highest rate that keeps a promise (a limit for the
    response time and for failures)."""

    key: ClassVar[str] = "capacity"
    promise: CapacityLoad

    @property
    def details(self) -> str:
        return f"{super().details}, {self.promise.label}"
