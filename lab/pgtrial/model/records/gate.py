"""gate.json: what a gate said of its study, and which earlier gates of the same set-ups were known to it."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Moment, Record, added


class EarlierGate(Record):
    """A gate of the same set-ups that ended, or was stopped, before this one."""

    created: Moment
    status: int = Field(ge=0, le=3, description="Its exit status.")
    stopped: bool = added(False, "Whether it was stopped after some blocks, and not gone on with.")


class GateRecord(Record):
    """What a gate said."""

    status: int = Field(ge=0, le=3, description="Exit status.")
    outcome: str = Field(description="The sentence that was printed.")
    earlier: list[EarlierGate] = added([], "The gates of the same set-ups before this one, the oldest first.")
