"""Types for everything that pgtrial stores about a study. This module has the base class of all records.

Times are in seconds and latencies in microseconds, unless a field says otherwise.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

FORMAT = 1
"""The version of the format of study directories. pgtrial refuses to read a directory that has a higher version."""


class Record(BaseModel):
    """The base class of all records. A record refuses unknown keys, so that pgtrial notices a file that is damaged or
    is not its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def added(default: Any, description: str) -> Any:
    """Returns a pydantic field for a key that a later version of pgtrial introduced. The key is not written while it
    has its default, so that files from before the key existed stay the same when they are written again."""
    return Field(default, exclude_if=lambda value: value == default, description=description)


def _with_offset(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time must have an offset from UTC, such as 2026-11-29T12:00:00+00:00")
    return text


Moment = Annotated[str, AfterValidator(_with_offset), Field(description="A moment in UTC, in the format of ISO 8601.")]
