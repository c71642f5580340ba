"""The key `capacity` of `[load]`: the promise on the response time that the highest rate has to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from pgtrial.model.metrics import PERCENTILES, transactions_for
from pgtrial.model.records import Record
from pgtrial.model.units import Seconds, Share, nearest

NOT_FOR_CAPACITY = {
    "rate": "a trial looks for the highest rate",
    "latency_limit": "the promise has a limit of its own",
    "interleave": "each arm has rates of its own",
    "on_server_loss": "a server that is lost keeps no promise",
}
"""The keys of `[load]` that do not apply to a study of capacity, each with the reason."""

_WARMUP_S = 3.0
_LEAST_PROBE_S, _LONGEST_PROBE_S = 1.0, 10.0
LONGER = 3
"""The factor by which a probe at a slow rate may be longer than planned, so that it has enough transactions for its
percentile."""

_SETTLING_S, _SETTLING_LIMITS = 0.5, 10
"""The least time that each probe runs before it counts: `_SETTLING_S` seconds, and `_SETTLING_LIMITS` times the
limit."""


class CapacitySection(Record):
    """The promise that a percentile of the transactions is answered within a limit, counted from their scheduled
    start."""

    percentile: str
    limit: Seconds = Field(gt=0, le=600)
    failures: Share = Field(0.001, ge=0, lt=1)
    at_most: float | None = Field(None, gt=0, allow_inf_nan=False)
    """The highest rate that the search tries, transactions per second; None: as high as the server goes."""

    @property
    def slower(self) -> float:
        """Returns the share of transactions that may take longer than the limit."""
        return 1 - PERCENTILES[self.percentile]

    @property
    def settling_s(self) -> float:
        """Returns how long a probe runs before it counts, seconds."""
        return max(_SETTLING_S, _SETTLING_LIMITS * self.limit)

    def probe_s(self, rate: float, planned_s: float) -> float:
        """Returns the length of a probe at a rate, whole seconds: as planned, or longer if its percentile needs more
        transactions."""
        needed_s = -(-transactions_for(self.percentile) // max(rate, 1e-9))
        return float(round(min(max(planned_s, needed_s), LONGER * planned_s)))

    def search_s(self, warmup_s: float, probe_s: float, probes: int) -> float:
        """Returns about how long the warm-up and `probes` probes take together, seconds."""
        return warmup_s + probes * (self.settling_s + probe_s)

    def lengths(self, warmup_s: float | None, probe_s: float | None, load_s: float, probes: int) -> tuple[float, float]:
        """Returns the warm-up and the length of a probe, seconds. A length that is not given is chosen so that a search
        takes `load_s` seconds."""
        warmup_s = _WARMUP_S if warmup_s is None else warmup_s
        if probe_s is None:
            held_s = (load_s - warmup_s) / probes - self.settling_s
            probe_s = float(int(min(_LONGEST_PROBE_S, max(_LEAST_PROBE_S, held_s))))
        return warmup_s, probe_s


def _promise(value: Any) -> Any:
    """Returns the fields of the section for a promise such as `{ p99 = "20ms", failures = "0.1%" }`. A frozen study has
    the fields themselves, which are returned unchanged."""
    if not isinstance(value, Mapping) or "percentile" in value:
        return value
    named = [key for key in value if key in PERCENTILES]
    unknown = [key for key in value if key not in PERCENTILES and key not in _OTHERS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of a promise; {nearest(unknown[0], _PARTS, 'there are')}")
    if len(named) != 1:
        raise ValueError('a promise has one percentile and its limit; write for example { p99 = "20ms" }')
    rest = {key: value[key] for key in _OTHERS if key in value}
    return {"percentile": named[0], "limit": value[named[0]], **rest}


_OTHERS = ("failures", "at_most")
_PARTS = [*PERCENTILES, *_OTHERS]

Capacity = Annotated[CapacitySection, BeforeValidator(_promise)]
