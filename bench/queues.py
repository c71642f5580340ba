"""Simulated servers behind one queue, first come, first served. Their capacity is known by simulation."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pgtrial.statistics.capacity import Reading

Floats = npt.NDArray[np.float64]

_TRANSACTIONS = 1_000_000
_SIMULATIONS = 10
"""The number of simulations whose mean is taken as the true capacity; a single one has a standard error of 0.3 to 0.6%,
as much as a study of 11 blocks.
"""

_HALVINGS = 16


@dataclass(frozen=True)
class Queue:
    """Servers behind one queue. Service times are lognormal, or of one length; seconds."""

    servers: int
    mean_s: float
    sigma: float
    """The standard deviation of the logarithm of the service time."""

    @property
    def delay(self) -> str:
        """The service time in the form of the null server's option."""
        if not self.sigma:
            return f"{self.mean_s * 1e6:.3f}us"
        median_s = self.mean_s * math.exp(-(self.sigma**2) / 2)
        return f"lognormal:{median_s * 1e6:.3f}us..{median_s * math.exp(_P99 * self.sigma) * 1e6:.3f}us"

    def probe(self, random: np.random.Generator, rate: float, limit_s: float, probe_s: float) -> Reading:
        """Simulates a probe at a rate and returns its result, counted as the lab counts a probe. Before it, the queue
        settles for ten times the limit."""
        settling_s = 10 * limit_s
        end_s = settling_s + probe_s
        arrivals, ends = self._serve(random, rate, random.poisson(rate * end_s), end_s)
        measured = (ends >= settling_s) & (ends < end_s)
        late = max(0.0, float(np.count_nonzero(ends >= end_s)) - rate * limit_s)
        slower = np.count_nonzero((ends - arrivals)[measured] > limit_s)
        return Reading(rate, np.count_nonzero(measured) + late, slower + late)

    def capacity(self, share: float, limit_s: float, seed: int) -> float:
        """Returns the highest rate at which this share of transactions takes longer than the limit, by long simulations
        at each rate.
        """
        seeds = range(_SIMULATIONS * seed, _SIMULATIONS * (seed + 1))
        return sum(self._simulated_capacity(share, limit_s, one) for one in seeds) / _SIMULATIONS

    def _simulated_capacity(self, share: float, limit_s: float, seed: int) -> float:
        low, high = 0.1 * self.servers / self.mean_s, self.servers / self.mean_s
        for _ in range(_HALVINGS):
            rate = math.sqrt(low * high)
            span_s = _TRANSACTIONS / rate
            arrivals, ends = self._serve(np.random.default_rng(seed), rate, _TRANSACTIONS, span_s)
            slower = float(((ends - arrivals)[_TRANSACTIONS // 50 :] > limit_s).mean())
            low, high = (rate, high) if slower <= share else (low, rate)
        return math.sqrt(low * high)

    def _serve(self, random: np.random.Generator, rate: float, number: int, span_s: float) -> tuple[Floats, Floats]:
        """Returns the times at which `number` transactions arrive, at random within `span_s` seconds, and at which they
        end."""
        arrivals = np.sort(random.random(number)) * span_s
        services = np.full(number, self.mean_s)
        if self.sigma:
            services = np.exp(random.normal(math.log(self.mean_s) - self.sigma**2 / 2, self.sigma, number))
        if self.servers == 1:  # each ends its service after the last time at which the queue was empty
            worked = np.cumsum(services)
            return arrivals, worked + np.maximum.accumulate(arrivals - (worked - services))
        free = [0.0] * self.servers
        ends = np.empty(number)
        for place, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
            ends[place] = max(arrival, free[0]) + service
            heapq.heapreplace(free, ends[place])
        return arrivals, ends


_P99 = 2.326347874040841
