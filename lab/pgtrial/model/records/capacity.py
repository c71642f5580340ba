"""The promise of a load point at which the capacity is looked for."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record


class CapacityLoad(Record):
    """The promise of which the highest rate is looked for."""

    percentile: str
    limit_s: float
    failures: float = Field(description="The share of transactions that may fail.")

    @property
    def label(self) -> str:
        """For people: `p99 within 20ms`."""
        limit = f"{self.limit_s * 1000:.6g}ms" if self.limit_s < 1 else f"{self.limit_s:.6g}s"
        return f"{self.percentile} within {limit}"
