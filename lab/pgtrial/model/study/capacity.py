"""The key `capacity` of `[load]`, which has the promise that the highest rate has to keep: limits for the response time
and for failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pgtrial.model.metrics import PERCENTILES, transactions_for
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.units import Number, Seconds, Share, nearest

NOT_FOR_CAPACITY = {
    "rate": "a trial looks for the highest rate",
    "latency_limit": "the promise has its own time limit",
    "interleave": "each arm is tried at rates of its own",
    "on_server_loss": "a server that is lost keeps no promise",
}
"""The keys of `[load]` that do not apply to a study of capacity, each with the reason."""

_WARMUP_S = 3.0
_LEAST_PROBE_S, _LONGEST_PROBE_S = 1.0, 10.0
LONGER = 3
"""The factor by which a probe, which is one run at one rate, may be longer than planned. At a slow rate it needs the
time to have enough transactions for the percentile that the study limits."""

_SETTLING_S, _SETTLING_LIMITS = 0.5, 10
"""The time for which each probe runs before its transactions count: at least `_SETTLING_S` seconds, and at least
`_SETTLING_LIMITS` times the limit of the response time."""


class CapacitySection(Record):
    """The promise that a percentile of the transactions is answered within a time limit. The response time counts from
    the scheduled start of a transaction."""

    percentile: str
    limit: Seconds = Field(gt=0, le=600)
    failures: Share = Field(0.001, ge=0, lt=1)
    at_most: Number | None = Field(None, gt=0, allow_inf_nan=False)
    """The highest rate that the search tries, in transactions per second; None if the search is not limited."""

    @property
    def slower(self) -> float:
        """Returns the share of transactions that may take longer than the limit."""
        return 1 - PERCENTILES[self.percentile]

    @property
    def settling_s(self) -> float:
        """Returns how long a probe runs before its transactions count, in seconds."""
        return max(_SETTLING_S, _SETTLING_LIMITS * self.limit)

    def probe_s(self, rate: float, planned_s: float) -> float:
        """Returns the length of a probe at a rate, in whole seconds: the planned length, or a longer one if the
        percentile needs more transactions."""
        needed_s = -(-transactions_for(self.percentile) // max(rate, 1e-9))
        return float(round(min(max(planned_s, needed_s), LONGER * planned_s)))

    def search_s(self, warmup_s: float, probe_s: float, probes: int) -> float:
        """Returns the approximate time that the warm-up and this number of probes take together, in seconds."""
        return warmup_s + probes * (self.settling_s + probe_s)

    def lengths(self, warmup_s: float | None, probe_s: float | None, load_s: float, probes: int) -> tuple[float, float]:
        """Returns the length of the warm-up and of a probe, in seconds. A warm-up that is None becomes `_WARMUP_S`; a
        probe that is None gets the length with which a search takes about `load_s` seconds."""
        warmup_s = _WARMUP_S if warmup_s is None else warmup_s
        if probe_s is None:
            held_s = (load_s - warmup_s) / probes - self.settling_s
            probe_s = float(int(min(_LONGEST_PROBE_S, max(_LEAST_PROBE_S, held_s))))
        return warmup_s, probe_s


def _promise(value: Any) -> Any:
    """Returns the fields of the section for a promise as the user writes it, such as `{ p99 = "20ms", failures = "0.1%"
    }`. A study that pgtrial has stored with all defaults (a frozen study) has the fields themselves, which are returned
    unchanged."""
    if not isinstance(value, Mapping) or "percentile" in value:
        return value
    named = [key for key in value if key in PERCENTILES]
    unknown = [key for key in value if key not in PERCENTILES and key not in _OTHERS]
    if unknown:
        raise ValueError(f"a promise has no key {quoted(unknown[0])}; {nearest(unknown[0], _PARTS, 'its keys are')}")
    if len(named) != 1:
        raise ValueError('a promise must have one percentile with its limit; write for example { p99 = "20ms" }')
    rest = {key: value[key] for key in _OTHERS if key in value}
    return {"percentile": named[0], "limit": value[named[0]], **rest}


_OTHERS = ("failures", "at_most")
_PARTS = [*PERCENTILES, *_OTHERS]

Capacity = Annotated[CapacitySection, BeforeValidator(_promise)]
