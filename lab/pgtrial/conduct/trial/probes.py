"""Makes the probes of a search for the capacity from the events of runs at a rate, and finds the rate at which a search
begins from stored trials.

The response time of a transaction counts from its scheduled start. A failed transaction counts as slower than the
limit. A transaction that is not completed at the end of the run counts as slower too, if its scheduled start was longer
ago than the limit. Since an engine that is behind its schedule starts transactions in the order of the schedule, all
other waiting transactions are more recent than the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.loads.events import Tick
from pgtrial.model.latencies import Latencies
from pgtrial.model.metrics import PERCENTILES
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.trial import Probe, Trial
from pgtrial.statistics.capacity import Promise, Reading, capacity, next_rate

_BELOW = 0.7
"""The share of a closed loop's throughput that a search takes as its first rate, if no capacity is known yet."""

_LEAST_RATE = 0.1
"""The lowest rate at which a search begins, in transactions per second."""


def promise_of(asked: CapacityLoad) -> Promise:
    """Returns the promise that a capacity has to keep, as two shares of all transactions: the share that may be slower
    than the limit, and the share that may fail."""
    return Promise(slower=1 - PERCENTILES[asked.percentile], failed=asked.failures)


def probe_of(outcome: Outcome, rate: float, asked: CapacityLoad) -> Probe:
    """Returns the results of a run at a rate as a probe."""
    measured = outcome.measured
    if measured is None:
        raise ValueError("the run has no measured part")
    waiting, busy = _queue(outcome.ticks)
    late = max(0.0, waiting + busy - rate * asked.limit_s)
    failed = sum(measured.failures.values())
    latencies = Latencies.read(outcome.histogram) if outcome.histogram else None
    committed_slower = latencies.above(1e6 * asked.limit_s) if latencies is not None else 0
    reading = Reading(rate, measured.transactions + failed + late, committed_slower + failed + late, failed)
    share = 100 * PERCENTILES[asked.percentile]
    return Probe(
        rate=rate,
        duration_s=measured.duration_s,
        tps=measured.tps,
        transactions=reading.transactions,
        slower=reading.slower,
        failed=failed,
        waiting=waiting,
        at_percentile_us=latencies.percentile_of(share, round(reading.transactions)) if latencies else None,
        lag_p99_us=_lag_p99_us(outcome),
        kept=reading.strain(promise_of(asked)) <= 1,
    )


def start_rate(earlier: Iterable[Trial], point: LoadPoint, block: int) -> float | None:
    """Returns the rate at which all searches of a block begin: the median capacity in the blocks before it, or None if
    no capacity is known yet."""
    capacities = [
        trial.capacity
        for trial in earlier
        if trial.block < block and trial.load_point == point and trial.capacity is not None
    ]
    return median(capacities) if capacities else None


def first_rate(throughput: float) -> float:
    """Returns the rate at which a search begins if only the throughput of a closed loop is known. Both are in
    transactions per second."""
    return max(_LEAST_RATE, _BELOW * throughput)


class Search:
    """A search for the capacity of an arm. It chooses the rate of each next probe from the results so far, until it has
    ended."""

    def __init__(self, asked: CapacityLoad, start: float) -> None:
        self.probes: list[Probe] = []
        """The probes so far."""
        self._asked, self._start, self._promise = asked, start, promise_of(asked)
        self._outcomes: list[Outcome] = []

    @property
    def next_rate(self) -> float | None:
        """The rate of the next probe, in transactions per second; None if the search has ended."""
        return next_rate(self._start, self._readings, self._promise, self._asked.at_most or math.inf)

    def add(self, outcome: Outcome, rate: float) -> None:
        """Adds the outcome of a run at a rate."""
        self.probes.append(probe_of(outcome, rate, self._asked))
        self._outcomes.append(outcome)

    @property
    def capacity(self) -> float | None:
        """The highest rate, in transactions per second, that keeps the promise (the limits for response times and
        failures); None if no probe has kept it."""
        return capacity(self._readings, self._promise)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the probe whose rate is nearest to the capacity, among those that kept the promise (the limits
        for response times and failures). If no probe kept the promise, it is the outcome of the probe with the lowest
        rate."""
        found = self.capacity
        indices = range(len(self.probes))
        if found is None:
            return self._outcomes[min(indices, key=lambda index: self.probes[index].rate)]
        kept = [index for index in indices if self.probes[index].kept]
        return self._outcomes[min(kept, key=lambda index: abs(math.log(self.probes[index].rate / found)))]

    @property
    def _readings(self) -> list[Reading]:
        return [Reading(probe.rate, probe.transactions, probe.slower, probe.failed) for probe in self.probes]


def _lag_p99_us(outcome: Outcome) -> float | None:
    summary = outcome.done.get("measure") if outcome.done is not None else None
    lag = summary.get("lag_us") if summary else None
    return lag.get("p99") if lag else None


def _queue(ticks: Sequence[Tick]) -> tuple[int, int]:
    """Returns the number of waiting transactions and the number of busy clients at the end of the measured part."""
    queue = next((tick.get("queue") for tick in reversed(ticks) if tick["phase"] == "measure"), None)
    return (queue["waiting"], queue["busy"]) if queue else (0, 0)
