"""The type of a metric that the study file defines, as the plan stores it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.metrics import MetricName
from pgtrial.model.records import Record


class OwnMetric(Record):
    """A metric that the study file defines: one number for each trial. A comparison uses the ratio of the numbers of
    two trials."""

    unit: str = Field(description="The unit of the numbers, for reports; empty if the study gives none.")
    better: Literal["more", "less"]
    source: str = Field(description="The source of the numbers, such as the SQL that is run after each trial.")

    def named(self, name: str) -> MetricName:
        """Returns this metric in the form in which pgtrial describes its built-in metrics, under the name that the
        study gives it."""
        return MetricName(name, name, "own", self.better)
