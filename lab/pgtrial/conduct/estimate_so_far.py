"""What the engine's seconds tell of a trial: when transactions failed, and the sums where no report followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hdrh.histogram import HdrHistogram

from pgtrial.loads.engine import Event
from pgtrial.model.records.study import FailureSpan

_LONGEST_US = 3_600_000_000
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}


def failure_spans(ticks: Sequence[Event]) -> list[FailureSpan]:
    """First and last second of each kind of failure, and how many there were, phase by phase."""
    seen: dict[tuple[Any, str], list[tuple[int, int]]] = {}
    for tick in ticks:
        for kind, failures in tick.get("failures", {}).items():
            seen.setdefault((tick["phase"], kind), []).append((tick["second"], failures))
    return [
        FailureSpan(
            phase=phase, kind=kind, first_s=told[0][0], last_s=told[-1][0], failures=sum(number for _, number in told)
        )
        for (phase, kind), told in seen.items()
    ]


def summary_so_far(ticks: Sequence[Event], phase: str) -> Event | None:
    """The summary of a phase from its seconds, in the engine's form, for an engine that could not report any more."""
    own = [tick for tick in ticks if tick["phase"] == phase]
    seconds = sum(tick.get("seconds", 1.0) for tick in own)
    if not seconds:
        return None
    failures: Counter[str] = Counter()
    for tick in own:
        failures.update(tick.get("failures", {}))
    transactions = sum(tick["transactions"] for tick in own)
    merged = HdrHistogram(1, _LONGEST_US, 3)
    for tick in own:
        if tick.get("histogram"):
            merged.decode_and_add(tick["histogram"])
    return {
        "duration_s": seconds,
        "transactions": transactions,
        "failures": dict(failures),
        "tps": transactions / seconds,
        "latency_us": _latency(merged),
        "histogram": merged.encode().decode() if merged.get_total_count() else None,
    }


def _latency(merged: HdrHistogram) -> dict[str, float] | None:
    if not merged.get_total_count():
        return None
    moments = {
        "mean": merged.get_mean_value(),
        "stddev": merged.get_stddev(),
        "min": merged.get_min_value(),
        "max": merged.get_max_value(),
    }
    at = {name: merged.get_value_at_percentile(share) for name, share in _PERCENTILES.items()}
    return {name: float(value) for name, value in (moments | at).items()}
