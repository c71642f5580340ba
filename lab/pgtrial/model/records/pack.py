"""Types for the pack of a load point, and for the quality of the answers that a pack may measure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pgtrial.model.records import Record, added
from pgtrial.model.units import Number, Whole

Weight = Annotated[Whole, Field(ge=0, le=1_000_000)]
"""The weight of a script: how often it is chosen, relative to the weights of the other scripts."""


class Quality(Record):
    """A quality of the answers, such as recall. Arms are compared only if their qualities are equal within a
    tolerance."""

    name: str = Field(min_length=1, max_length=40, description="The name of the quality for people: `recall@10`.")
    better: Literal["more", "less"] = Field(
        "more",
        description="The direction in which the quality is better: `more` for larger values, `less` for smaller ones.",
    )
    tolerance: Number = Field(
        0.01,
        ge=0,
        description="The difference up to which the medians of two arms count as equal, in the unit of the quality.",
    )
    at_least: Number | None = added(
        None, "The worst quality with which an arm gets a verdict: the least value, or the largest if less is better."
    )

    def reaches(self, value: float) -> bool:
        """True if a quality is at least as good as the study requires: not below the required value, or not above it if
        less is better."""
        if self.at_least is None:
            return True
        return value >= self.at_least if self.better == "more" else value <= self.at_least

    def text(self, value: float) -> str:
        """Returns the quality with its value, for reports: `recall@10 0.953`."""
        return f"{self.name} {value:.4g}"


class PackLoad(Record):
    """The pack of a load point: its scripts with their weights, its variables, and what it measures."""

    name: str
    mix: str | None = added(
        None,
        "The name of the mix, which is the choice of scripts and weights, if the pack offers "
        "several; None if it has only one.",
    )
    scripts: dict[str, Weight] = Field(description="The weight of each script, by its file in the pack.")
    variables: dict[str, str] = Field(description="The values of the pack's variables, except for `scale`.")
    transaction: str = Field(description="A description of what one transaction of the pack does.")
    mb_per_scale: float = Field(
        description="The approximate size in megabytes of the data for one unit of scale; 0 if it is not known."
    )
    hold: str | None = added(
        None,
        "The name of the PostgreSQL setting by whose value an arm decides whether the script "
        "hold.sql runs during the load; None if the pack has no hold.sql.",
    )
    quality: Quality | None = added(None, "The quality that measure.sql determines; None if the pack has no such file.")

    def __hash__(self) -> int:
        """Returns a hash, so that load points can be keys of dictionaries."""
        return hash((self.name, self.mix))
