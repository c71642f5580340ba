"""The events of a run: read, checked for what always holds, and waited for."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.loads.target import Target
from tests.engine.programs import Ended, Program

Event = dict[str, Any]
LONGEST_NS = 3_600_000_000_000


def events_of(text: str) -> list[Event]:
    return [json.loads(line) for line in text.splitlines()]


def of_kind(events: list[Event], kind: str, **having: object) -> list[Event]:
    return [
        event
        for event in events
        if event["event"] == kind and all(event[key] == value for key, value in having.items())
    ]


def done_of(events: list[Event]) -> Event:
    assert events[-1]["event"] == "done"
    return events[-1]


def histogram(encoded: list[str]) -> HdrHistogram:
    merged = HdrHistogram(1, LONGEST_NS, 3)
    for one in encoded:
        merged.decode_and_add(one)
    return merged


def summed(ticks: list[Event]) -> tuple[int, Counter[str]]:
    failures: Counter[str] = Counter()
    for tick in ticks:
        failures.update(tick["failures"])
    return sum(tick["transactions"] for tick in ticks), failures


def assert_consistent(events: list[Event]) -> None:
    """The form of the protocol, and ticks that add up to the summaries."""
    assert [events[0]["event"], events[1]["event"]] == ["hello", "connected"]
    assert [event["event"] for event in events].count("done") == 1
    times = [event["t"] for event in events]
    assert times == sorted(times)
    done = done_of(events)
    phases = [event["phase"] for event in of_kind(events, "phase")]
    # What is announced is what there is.
    assert phases == [phase for phase in ("warmup", "measure", "drain") if of_kind(events, "tick", phase=phase)]
    for phase in ("warmup", "measure", "drain"):
        ticks = of_kind(events, "tick", phase=phase)
        assert [tick["second"] for tick in ticks] == list(range(len(ticks)))
        assert all(tick["seconds"] == 1.0 for tick in ticks[:-1])
        transactions, failures = summed(ticks)
        summary = done[phase]
        if summary is None:
            assert (transactions, failures) == (0, Counter())
            continue
        assert (summary["transactions"], summary["failures"]) == (transactions, dict(failures))
        if phase == "drain":
            continue
        assert sum(tick["seconds"] for tick in ticks) == pytest.approx(summary["duration_s"])
        assert summary["tps"] == pytest.approx(transactions / summary["duration_s"])
        check_latencies(summary, [tick["histogram"] for tick in ticks])
        for tick in ticks:
            check_latencies(tick, [tick["histogram"]])


def check_latencies(counted: Event, encoded: list[str]) -> None:
    """The merged histograms hold as many latencies as there are transactions, and say the same of them."""
    merged = histogram(encoded)
    assert merged.get_total_count() == counted["transactions"]
    latency = counted["latency_us"]
    if counted["transactions"] == 0:
        assert latency is None
        return
    own = histogram([counted["histogram"]])
    percentiles = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99.9": 99.9}
    values = values_at(own, percentiles.values())
    assert values_at(merged, percentiles.values()) == values
    for name, either in zip(percentiles, values, strict=True):
        # the longest latency is known exactly, and none lies above it
        assert latency[name] in {min(value / 1000, latency["max"]) for value in either}
    assert mean_of(merged) / 1000 == pytest.approx(latency["mean"], rel=2e-3)
    assert merged.get_max_value() / 1000 == pytest.approx(latency["max"], rel=2e-3)
    assert latency["min"] <= latency["p50"] * 1.001


def values_at(counted: HdrHistogram, percentiles: Iterable[float]) -> list[set[int]]:
    """Returns for each percentile the smallest latency that at least this percentage of the latencies do not exceed.
    The histogram package computes another rank, since it rounds.

    Each result is a set of one value, or of two where the rank is a whole number but for the rounding error of the
    product.
    """
    seen = np.cumsum(counted.counts)
    ranks = [percentile / 100 * counted.get_total_count() for percentile in percentiles]
    return [{value_of(counted, seen, max(1, math.ceil(rank + noise))) for noise in (-1e-9, 1e-9)} for rank in ranks]


def value_of(counted: HdrHistogram, seen: np.ndarray, rank: int) -> int:
    """Returns the latency at a rank, read from the histogram's buckets; `seen` has the number of latencies up to each
    bucket. The package's own iterators take seconds for each second of a run with long latencies.
    """
    bucket = int(np.searchsorted(seen, rank))
    value: int = counted.get_highest_equivalent_value(counted.get_value_from_index(bucket))
    return value


def mean_of(counted: HdrHistogram) -> float:
    """Returns the mean from the buckets: each latency counts as the middle of its bucket."""
    counts = np.array(counted.counts)
    buckets = np.flatnonzero(counts)
    values = [counted.get_value_from_index(int(bucket)) for bucket in buckets]
    middles = [(value + counted.get_highest_equivalent_value(value)) / 2 for value in values]
    return float(np.average(middles, weights=counts[buckets]))


def run_with_events(ours: Program, target: Target, path: Path, *args: str, **env: str) -> tuple[Ended, list[Event]]:
    done = ours.run(target, *args, "--events", str(path), **env)
    return done, events_of(path.read_text())


def has_counted(events: list[Event]) -> bool:
    """True if the events have a second in which transactions were done."""
    return any(tick["transactions"] > 0 for tick in of_kind(events, "tick"))


def wait_for(path: Path, ready: Callable[[list[Event]], bool], timeout_s: float = 60) -> None:
    """Wait until the complete lines of a file of events are what is waited for."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        if ready(events_of(text[: text.rfind("\n") + 1])):
            return
        time.sleep(0.02)
    raise AssertionError("the events did not come")
