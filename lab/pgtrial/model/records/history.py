"""The type for one line of a history, which collects the results of commits: how one commit compared with the baseline
of its study."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from pgtrial.model.records import Moment, Record, added
from pgtrial.model.records.claims import Estimate, Word


class Entry(Record):
    """The result of one arm of one study, as a line of a history."""

    format: int = 1
    study: str = Field(description="The identity of the study: the time at which it was planned, and its seed.")
    at: Moment
    commit: str = Field(
        description="The commit whose server was measured; the name of the arm if the server was not built from "
        "a commit."
    )
    arm: str
    reference: str = Field(
        description="The baseline of the study, with which the arm was compared: its commit or name."
    )
    machine: str = Field(
        description="The machine, described by its CPU, number of CPUs and memory. Only results from equal "
        "machines make a series."
    )
    pgtrial: str = Field(description="The version of pgtrial that planned the study.")
    measure: str
    load: str
    blocks: int
    margin: float
    verdict: Word
    difference: Estimate | None = Field(
        description="The difference from the reference; None if the study has no interval, or if it has one "
        "interval before and another one after a change of speed within trials."
    )
    setup: dict[str, Any] = added({}, "The keys of the arm as its study file has them, without passwords.")

    @field_validator("difference")
    @classmethod
    def _is_of_a_ratio(cls, difference: Estimate | None) -> Estimate | None:
        if difference is not None and difference.value < -1:
            raise ValueError("a difference below -1 would be a negative speed")
        return difference

    @property
    def has_level(self) -> bool:
        """True if the entry has an estimate that is a ratio above zero. Only then can the speed relative to the
        reference be computed from it."""
        return self.difference is not None and self.difference.value > -1
