"""Types for the files interruptions/NUMBER.json, which record when and how a study was interrupted."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record


class InterruptedTrial(Record):
    """A trial that was in progress when the study was interrupted. pgtrial runs the trial again, and its measurements
    do not count."""

    index: int
    block: int
    arm: str
    load_point: int = Field(description="The index of the load point in Plan.load_points, counted from 0.")
    under_way_s: float | None = Field(
        None,
        description="The time from the start of the trial to the interruption, in seconds; None if pgtrial was killed.",
    )
    tps: float | None = Field(
        None,
        description="The tps of the measured part up to the interruption; None if the measured part had not begun, "
        "or if the tps is not known.",
    )


class Interruption(Record):
    """The content of interruptions/0001.json: one interruption of the study. If trials alternate in slices, the record
    lists all trials that were in progress."""

    format: int = FORMAT
    number: int = Field(description="The number of the interruption, counted from 1 in the order of time.")
    noted: Moment
    how: str = Field(
        description="The signal that interrupted the study: SIGINT (Ctrl-C), SIGTERM or SIGHUP; `killed` if pgtrial "
        "noticed the interruption only when it started the next time."
    )
    trials: list[InterruptedTrial]
