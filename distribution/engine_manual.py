"""The engine's description of its front ends and their options, as data: `pgtrial-engine manual`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distribution.running import run


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a front end, below a heading."""

    group: str
    short: str | None
    long: str
    argument: str | None
    argument_is_optional: bool
    help: str


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A front end. Texts are paragraphs with empty lines between them."""

    name: str
    summary: str
    about: str
    usage: Sequence[str]
    description: str
    options: Sequence[Option]
    notes: str


@dataclass(frozen=True, slots=True)
class EngineManual:
    """The engine with its front ends."""

    name: str
    about: str
    usage: Sequence[str]
    notes: str
    front_ends: Sequence[FrontEnd]


def engine_manual(engine: Path) -> EngineManual:
    """Returns the description that this engine prints of itself."""
    found: dict[str, Any] = json.loads(run([engine, "manual"]))
    front_ends = [
        FrontEnd(**{**front_end, "options": [Option(**option) for option in front_end["options"]]})
        for front_end in found.pop("front_ends")
    ]
    return EngineManual(**found, front_ends=front_ends)
