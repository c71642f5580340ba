"""Everything that is stored of a study, as types; here the base of all records.

All times in seconds, latencies in us.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

FORMAT = 1
"""The version of the format of study directories. A reader refuses a higher one."""


class Record(BaseModel):
    """The base of all records. Unknown keys are an error, so that a damaged or foreign file is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def added(default: Any, description: str) -> Any:
    """Returns a field that is left out of the file while it has its default, so that files written before the field
    existed stay the same."""
    return Field(default, exclude_if=lambda value: value == default, description=description)


def _with_offset(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a moment needs its offset from UTC")
    return text


Moment = Annotated[str, AfterValidator(_with_offset), Field(description="UTC, ISO 8601.")]
