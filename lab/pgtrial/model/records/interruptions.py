"""Types for the interruptions of a study."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record


class InterruptedTrial(Record):
    """A trial that was in progress when the study was interrupted. It is run again, and does not count."""

    index: int
    block: int
    arm: str
    load_point: int = Field(description="The index of the load point in Plan.load_points.")
    under_way_s: float | None = Field(
        None, description="The time since the start of the trial, in seconds; None if pgtrial was killed."
    )
    tps: float | None = Field(
        None,
        description="The tps in the measured part until then; None if the measured part had not begun, or is not "
        "known.",
    )


class Interruption(Record):
    """interruptions/0001.json: one interruption. Where trials take turns, all trials in progress are listed."""

    format: int = FORMAT
    number: int = Field(description="The number of the interruption, counted from 1 in the order of time.")
    noted: Moment
    how: str = Field(
        description="SIGINT (Ctrl-C), SIGTERM, SIGHUP, or `killed` if only the next start noticed the interruption."
    )
    trials: list[InterruptedTrial]
