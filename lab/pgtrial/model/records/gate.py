"""gate.json: the result of a gate, and the earlier gates of the same set-ups that were known to it."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Moment, Record, added


class EarlierGate(Record):
    """A gate of the same set-ups that ended, or was stopped, before this one."""

    created: Moment
    status: int = Field(ge=0, le=3, description="The exit status of the earlier gate.")
    stopped: bool = added(False, "True if it was stopped after some blocks and never continued.")


class GateRecord(Record):
    """The result of a gate."""

    status: int = Field(ge=0, le=3, description="The exit status.")
    outcome: str = Field(description="The sentence that was printed.")
    earlier: list[EarlierGate] = added([], "The earlier gates of the same set-ups, the oldest one first.")
