"""Parts of a plan: how trials take turns, how a study went on after its end, and which tries came before it."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record, added


class Interleaving(Record):
    """How the trials of one load point of one block run at the same time: in turns, a slice of time each."""

    slice_s: float = Field(description="Length of a slice; the measured part of each trial is a whole number of them.")
    shared_server: bool = Field(False, description="Whether all arms are sessions of one server with other settings.")
    transactions: int = added(5, "How many median transactions of the slowest arm a slice is to hold.")
    longer: dict[int, float] = added(
        {}, "By load point the length where slice_s was too short for that, as its first warm-up found; for all arms."
    )

    def slice_at(self, point: int) -> float:
        """Length of a slice at a load point."""
        return self.longer.get(point, self.slice_s)


class Extension(Record):
    """One step by which a study went on after its end; the plan's looks and trials hold what it added."""

    created: str = Field(description="UTC, ISO 8601.")
    pgtrial: str = Field(description="Version of the lab that planned it.")
    after: int = Field(description="Blocks that were complete.")
    end: int = Field(description="Blocks after which the study ends now.")
    budget_s: float | None = Field(description="Time that the blocks may take; None: not limited.")
    decided: bool = Field(description="Whether every comparison was decided: then only the end ends the study.")


class EarlierTry(Record):
    """A study of the same question that was there when this one began."""

    directory: str = Field(description="Its name, beside this study's directory.")
    created: str = Field(description="UTC, ISO 8601.")
    blocks: int = Field(description="Blocks that were complete.")
    planned: int = Field(description="Blocks that were planned.")
