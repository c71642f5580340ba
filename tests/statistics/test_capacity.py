"""The search for the capacity against queues whose capacity is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from pgtrial.statistics import capacity as search
from pgtrial.statistics.capacity import CLOSE, MOST, MOST_BROKEN, Promise, Reading, capacity, next_rate

PROMISE = Promise(slower=0.01, failed=0.001)
LIMIT_S = 0.01
SERVICE_S = 0.001
CAPACITY = 1 / SERVICE_S - math.log(100) / LIMIT_S
"""The capacity of an M/M/1 queue. Its response time is exponential, with the rate 1 / service time - arrival rate
(Kleinrock 1975, 3.2).
"""

Probe = Callable[[float], Reading]


def one_server(random: np.random.Generator, rate: float) -> Reading:
    """Returns a probe of an M/M/1 queue, so long that at the capacity 100 transactions are slower than the limit. Its
    measurement begins after ten times the limit.
    """
    settling_s, end_s = 10 * LIMIT_S, 10 * LIMIT_S + 10_000 / CAPACITY
    arrivals = np.sort(random.random(random.poisson(rate * end_s))) * end_s
    worked = np.cumsum(services := random.exponential(SERVICE_S, len(arrivals)))
    ends = worked + np.maximum.accumulate(arrivals - (worked - services))
    measured = (ends >= settling_s) & (ends < end_s)
    late = max(0.0, np.count_nonzero(ends >= end_s) - rate * LIMIT_S)
    return Reading(
        rate, np.count_nonzero(measured) + late, np.count_nonzero((ends - arrivals)[measured] > LIMIT_S) + late
    )


def searched(start: float, probe: Probe, promise: Promise = PROMISE) -> list[Reading]:
    readings: list[Reading] = []
    while (rate := next_rate(start, readings, promise)) is not None:
        readings.append(probe(rate))
    return readings


def found(readings: list[Reading], promise: Promise = PROMISE) -> float:
    rate = capacity(readings, promise)
    assert rate is not None
    return rate


def test_searches_from_anywhere_agree_on_a_known_capacity() -> None:
    random = np.random.default_rng(4)
    starts = CAPACITY * np.exp(random.normal(0, 0.4, 60))
    logs = [math.log(found(searched(start, lambda rate: one_server(random, rate))) / CAPACITY) for start in starts]
    # of 60 searches: the mean within three standard errors, and none far away
    assert abs(np.mean(logs)) < 3 * np.std(logs) / math.sqrt(60) + 0.003
    assert np.std(logs) < 0.03
    assert np.abs(logs).max() < 0.12


def share(rate: float, at: float, slope: float) -> float:
    """Returns the share of transactions slower than the limit at this rate, whose odds grow with a power of the rate.
    At the rate `at` it is the promised share.
    """
    odds = PROMISE.slower / (1 - PROMISE.slower) * (rate / at) ** slope
    return odds / (1 + odds)


@pytest.mark.parametrize("slope", [5.0, 20.0, 120.0])
@pytest.mark.parametrize("start", [0.3, 0.97, 1.0, 4.0])
def test_without_noise_the_capacity_is_exact(slope: float, start: float) -> None:
    readings = searched(1000 * start, lambda rate: Reading(rate, 1e6, 1e6 * share(rate, 1000, slope)))
    assert found(readings) == pytest.approx(1000, rel=0.002)
    assert len(readings) <= MOST
    near = readings[-CLOSE:]
    assert {reading.strain(PROMISE) > 1 for reading in near} == {False, True}


def test_failures_bound_the_capacity_where_they_come_first() -> None:
    def failing(rate: float) -> Reading:
        return Reading(rate, 1e6, 1e6 * share(rate, 2000, 20), 1e6 * PROMISE.failed * (rate / 1000) ** 20)

    assert found(searched(700, failing)) == pytest.approx(1000, rel=0.02)


def test_no_rate_keeps_a_promise_that_the_service_breaks() -> None:
    readings = searched(1000, lambda rate: Reading(rate, 1000, 30))
    assert capacity(readings, PROMISE) is None
    assert len(readings) == MOST_BROKEN
    assert 40 < readings[0].rate / readings[-1].rate < 50
    assert all(later.rate < earlier.rate for earlier, later in itertools.pairwise(readings))


def test_without_a_broken_promise_the_highest_rate_is_the_capacity() -> None:
    readings = searched(1000, lambda rate: Reading(rate, 1000, 0))
    assert found(readings) == max(reading.rate for reading in readings)


def test_a_probe_without_transactions_breaks_the_promise() -> None:
    assert Reading(100, 0, 0).strain(PROMISE) == 100
    assert Reading(100, 1000, 0, 1).strain(Promise(0.01, 0.0)) > 1


def test_the_next_rate_follows_from_rates_and_shares_alone() -> None:
    first = searched(900, lambda rate: Reading(rate, 1e4, 1e4 * share(rate, 1000, 20)))
    scaled = searched(9000, lambda rate: Reading(rate, 1e4, 1e4 * share(rate, 10_000, 20)))
    assert [10 * reading.rate for reading in first] == pytest.approx([reading.rate for reading in scaled])
    assert search.EXPECTED == CLOSE + 2


@pytest.mark.parametrize("start", [CAPACITY / 3, CAPACITY * 3])
def test_no_probe_is_faster_than_the_rate_allowed_and_one_that_keeps_the_promise_there_ends_the_search(start) -> None:
    random = np.random.default_rng(4)

    def allowed(most: float) -> list[Reading]:
        readings: list[Reading] = []
        while (rate := next_rate(start, readings, PROMISE, most)) is not None:
            readings.append(one_server(random, rate))
        return readings

    below = allowed(CAPACITY / 2)
    assert max(reading.rate for reading in below) == CAPACITY / 2
    assert found(below) == CAPACITY / 2
    assert below[-1].rate == CAPACITY / 2
    above = allowed(CAPACITY * 1.5)
    assert max(reading.rate for reading in above) <= CAPACITY * 1.5
    assert abs(math.log(found(above) / CAPACITY)) < 0.12
