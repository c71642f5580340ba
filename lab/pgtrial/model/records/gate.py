"""Types for gate.json and studies.json: the result of one run of `pgtrial gate` with the earlier gates of the same
set-ups that it found, and the studies of a gate that has several."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pgtrial.model.records import Moment, Record, added


class EarlierGate(Record):
    """An earlier run of `pgtrial gate` with the same set-ups, which had ended or was stopped before the gate of the
    record began."""

    created: Moment
    status: int = Field(ge=0, le=3, description="The exit status of the earlier gate.")
    stopped: bool = added(False, "True if the earlier gate was stopped after some blocks and never continued.")


class GateRecord(Record):
    """The result of a gate, which is a comparison whose exit status decides whether a change passes. For one study of a
    gate that has several, it is the result of that study, and `earlier` is empty."""

    status: int = Field(ge=0, le=3, description="The exit status of the gate.")
    outcome: str = Field(description="The sentence that the gate printed as its result.")
    earlier: list[EarlierGate] = added([], "The earlier gates of the same set-ups, the oldest one first.")


class GatedStudy(Record):
    """One of several studies of a gate, as it was planned before the first study began."""

    name: str = Field(description="The name of the study in the gate: its file as the gate's file names it.")
    directory: str = Field(
        pattern=r"^\d+-[A-Za-z0-9._=-]+$", description="The name of the study's directory within that of the gate."
    )
    share_s: float = Field(gt=0, description="The part of the gate's budget that this study has at least, in seconds.")
    asked: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="The SHA-256 of the study file and its scripts, by which a later gate recognises the same study. "
        "A bundle from which values were removed that may be secrets does not have it.",
    )


class GateOfStudies(Record):
    """A gate that runs several studies one after the other. It is fixed before the first of them begins."""

    created: Moment
    pgtrial: str = Field(description="The version of pgtrial.")
    budget_s: float = Field(gt=0, description="The time for the blocks of all studies together, in seconds.")
    studies: list[GatedStudy] = Field(min_length=2)

    def asks(self, asked: Sequence[str], budget_s: float) -> bool:
        """True if the gate has the studies with these digests, in this order, and this budget in seconds."""
        return self.budget_s == budget_s and [study.asked for study in self.studies] == list(asked)
