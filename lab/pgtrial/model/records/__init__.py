"""Everything that is stored of a study, as types; here the base of all records."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base: unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
