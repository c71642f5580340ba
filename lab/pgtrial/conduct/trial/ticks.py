"""Adds up the ticks of a load: the statistics of one second, or of one slice, over all threads of the engine."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pgtrial.loads.engine import tick_s
from pgtrial.loads.events import Queries, Summary, Tick, Times
from pgtrial.model.latencies import Latencies
from pgtrial.model.metrics import PERCENTILES

POINTS = {name: round(100 * share, 1) for name, share in PERCENTILES.items()}
"""The percentiles of a summary, by their names in it."""


def summary_of(ticks: Sequence[Tick], clients: int) -> Summary | None:
    """Returns the sum of ticks, in the same form as the engine's summary of a phase; None if the ticks have a total
    length of 0."""
    seconds = sum(tick_s(tick, clients) for tick in ticks)
    if not seconds:
        return None
    failures: Counter[str] = Counter()
    for tick in ticks:
        failures.update(tick.get("failures", {}))
    transactions = sum(tick["transactions"] for tick in ticks)
    queries = [tick["queries"] for tick in ticks if "queries" in tick]
    merged = Latencies.sum_of(Latencies.read(text) for tick in ticks if (text := tick.get("histogram")))
    summary = Summary(
        duration_s=seconds,
        transactions=transactions,
        failures=dict(failures),
        tps=transactions / seconds,
        latency_us=_latency(merged),
        histogram=merged.encode() if merged.total else None,
        retries=sum(tick.get("retries", 0) for tick in ticks),
    )
    if queries:
        errors = sum(each["errors"] for each in queries)
        summary["queries"] = Queries(errors=errors)
    return summary


def by_second(ticks: Sequence[Tick], clients: int, slice_s: float) -> Iterator[Tick]:
    """Yields ticks of a whole second each, put together from consecutive slices of the load.

    Slices after the last whole second of a phase are left out.
    """
    slices_of_one = max(1, round(1 / slice_s))
    for phase, of_phase in itertools.groupby(ticks, key=lambda tick: tick["phase"]):
        slices = list(of_phase)
        for second in range(len(slices) // slices_of_one):
            summary = summary_of(slices[second * slices_of_one : (second + 1) * slices_of_one], clients)
            if summary is not None:
                tick = Tick(event="tick", phase=phase, second=second, transactions=round(summary["tps"]))
                tick["failures"] = summary.get("failures", {})
                tick["latency_us"] = summary.get("latency_us")
                yield tick


def _latency(merged: Latencies) -> Times | None:
    if not merged.total:
        return None
    moments = {"mean": merged.mean, "stddev": merged.sd, "min": merged.least, "max": merged.greatest}
    at = {name: merged.percentile(percent) for name, percent in POINTS.items()}
    return cast("Times", {name: float(value) for name, value in (moments | at).items()})


def timeline_row(tick: Tick) -> list[Any]:
    """Returns the row of timeline.parquet for a tick."""
    latency = tick.get("latency_us") or {}
    percentiles = [latency.get(name) for name in ("mean", "p50", "p95", "p99", "max")]
    return [tick["phase"], tick["second"], tick["transactions"], sum(tick.get("failures", {}).values()), *percentiles]


def slice_row(tick: Tick) -> list[Any]:
    """Returns the row of slices.parquet for a tick."""
    times_of_slice = tick["slice"]
    times = [times_of_slice[name] for name in ("planned_begin_s", "planned_end_s", "begin_s", "end_s", "client_s")]
    mean = (tick.get("latency_us") or {}).get("mean")
    failures = sum(tick.get("failures", {}).values())
    return [tick["phase"], times_of_slice["round"], *times, tick["transactions"], failures, mean]
