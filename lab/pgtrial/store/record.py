"""What all records of a study directory have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base: unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
