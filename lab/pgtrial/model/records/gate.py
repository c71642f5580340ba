"""Types for gate.json: the result of one run of `pgtrial gate`, and the earlier gates of the same set-ups that it
found."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Moment, Record, added


class EarlierGate(Record):
    """An earlier run of `pgtrial gate` with the same set-ups, which had ended or was stopped before the gate of the
    record began."""

    created: Moment
    status: int = Field(ge=0, le=3, description="The exit status of the earlier gate.")
    stopped: bool = added(False, "True if the earlier gate was stopped after some blocks and never continued.")


class GateRecord(Record):
    """The result of a gate, which is a comparison whose exit status decides whether a change passes."""

    status: int = Field(ge=0, le=3, description="The exit status of the gate.")
    outcome: str = Field(description="The sentence that the gate printed as its result.")
    earlier: list[EarlierGate] = added([], "The earlier gates of the same set-ups, the oldest one first.")
