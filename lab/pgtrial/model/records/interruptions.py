"""Types for the interruptions of a study."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import FORMAT, Moment, Record


class InterruptedTrial(Record):
    """A trial that was in progress when the study was interrupted. It is run again, and does not count."""

    index: int
    block: int
    arm: str
    load_point: int = Field(description="Index into Plan.load_points.")
    under_way_s: float | None = Field(None, description="Since its start; None: the lab was killed.")
    tps: float | None = Field(None, description="In the measured part until then; None: it had not begun, or unknown.")


class Interruption(Record):
    """interruptions/0001.json: one interruption. Where trials take turns, all trials in progress are listed."""

    format: int = FORMAT
    number: int = Field(description="From 1, in the order of time.")
    noted: Moment
    how: str = Field(description="SIGINT (Ctrl-C), SIGTERM, SIGHUP, or `killed`, which the next start noticed.")
    trials: list[InterruptedTrial]
