"""The engine's ticks put together: a phase as far as it came, or the seconds of a load that alternates with others."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pgtrial.loads.engine import Event, own_s
from pgtrial.model.latencies import Latencies

_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}


def summary_of(ticks: Sequence[Event], clients: int) -> Event | None:
    """Ticks as one, in the form of the engine's summaries; None if they last no time."""
    seconds = sum(own_s(tick, clients) for tick in ticks)
    if not seconds:
        return None
    failures: Counter[str] = Counter()
    for tick in ticks:
        failures.update(tick.get("failures", {}))
    transactions = sum(tick["transactions"] for tick in ticks)
    merged = Latencies.sum_of(Latencies.read(tick["histogram"]) for tick in ticks if tick.get("histogram"))
    return {
        "duration_s": seconds,
        "transactions": transactions,
        "failures": dict(failures),
        "tps": transactions / seconds,
        "latency_us": _latency(merged),
        "histogram": merged.encode() if merged.total else None,
    }


def by_second(ticks: Sequence[Event], clients: int, slice_s: float) -> Iterator[Event]:
    """Slices put together to seconds of the load's own time, each with the transactions of a whole second.

    The rest after the last whole second of a phase is left out.
    """
    each = max(1, round(1 / slice_s))
    for phase, own in itertools.groupby(ticks, key=lambda tick: tick["phase"]):
        slices = list(own)
        for second in range(len(slices) // each):
            found = summary_of(slices[second * each : (second + 1) * each], clients)
            if found is not None:
                yield {**found, "phase": phase, "second": second, "transactions": round(found["tps"])}


def slice_row(tick: Event) -> list[Any]:
    """A tick as a row of slices.parquet."""
    own = tick["slice"]
    times = [own[name] for name in ("planned_begin_s", "planned_end_s", "begin_s", "end_s", "client_s")]
    mean = (tick.get("latency_us") or {}).get("mean")
    failures = sum(tick.get("failures", {}).values())
    return [tick["phase"], own["round"], *times, tick["transactions"], failures, None if mean is None else float(mean)]


def _latency(merged: Latencies) -> dict[str, float] | None:
    if not merged.total:
        return None
    moments = {"mean": merged.mean, "stddev": merged.sd, "min": merged.least, "max": merged.greatest}
    at = {name: merged.percentile(percent) for name, percent in _PERCENTILES.items()}
    return {name: float(value) for name, value in (moments | at).items()}
