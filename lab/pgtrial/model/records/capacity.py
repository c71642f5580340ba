"""The promise of a load point whose trials look for the capacity, which is the highest rate that keeps the promise."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record, added


class CapacityLoad(Record):
    """The promise that a rate has to keep: a percentile of the response times stays within a limit, and few
    transactions fail."""

    percentile: str
    limit_s: float
    failures: float = Field(
        description="The largest share of the transactions that may fail at a rate which keeps the promise."
    )
    at_most: float | None = added(
        None, "The highest rate that the search tries, in transactions per second; None if the search is not limited."
    )

    @property
    def label(self) -> str:
        """Returns the promise (the limit for response time and failures) for people: `p99 within 20ms`, `p99 within
        20ms, at most 500/s`."""
        limit = f"{self.limit_s * 1000:.6g}ms" if self.limit_s < 1 else f"{self.limit_s:.6g}s"
        ceiling = f", at most {self.at_most:,.10g}/s" if self.at_most is not None else ""
        return f"{self.percentile} within {limit}{ceiling}"
