"""The metrics that the user of a study has defined, as they are frozen in the plan."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.metrics import MetricName
from pgtrial.model.records import Record


class OwnMetric(Record):
    """A metric that the study file defines. It is a number per trial, compared as a ratio of two trials."""

    unit: str = Field(description="For reports; empty if none is given.")
    better: Literal["more", "less"]
    source: str = Field(description="Where the numbers come from, such as the SQL that is run after each trial.")

    def named(self, name: str) -> MetricName:
        """Returns the metric under its name, as those are described that come with pgtrial."""
        return MetricName(name, name, "own", self.better)
