"""Everything that is stored of a study, as types; here the base of all records."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """Base: unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def added(default: Any, description: str) -> Any:
    """A field that is left out of the file while it has its default, so that files from before it stay the same."""
    return Field(default, exclude_if=lambda value: value == default, description=description)
