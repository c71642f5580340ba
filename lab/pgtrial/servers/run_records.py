"""Records in a run directory of what has to be put back on given servers.

A record is on disk before the change, and is removed when the change is undone. No password is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError


class Described(Protocol):
    """A record that can be described to people."""

    @property
    def what(self) -> str:
        """A description of the record for messages."""


Kind = TypeVar("Kind", bound=Described)


def write_record(
    run: Path, prefix: str, arm: str, target: Target, content: Mapping[str, Any], *, durable: bool = True
) -> Path:
    """Writes the record of one arm; a durable one is on disk on return."""
    path = run / f"{prefix}{arm.encode().hex()}.json"
    text = json.dumps({"arm": arm, "target": target.without_secrets(), **content})
    LOCAL.write_text(path, text, mode=0o600, durable=durable)
    return path


def read_record(path: Path, make: Callable[[str, Target, Mapping[str, Any]], Kind], of_what: str) -> Kind:
    """Reads a record; `make` gets the arm, the target and all that was written. Raises ArmError for a file that is no
    record."""
    try:
        content = json.loads(path.read_text())
        return make(content["arm"], Target.from_record(content["target"]), content)
    except (OSError, ValueError, KeyError, TypeError):
        raise ArmError(f"{path} is no record of {of_what} that this pgtrial knows") from None


def record_files(run: Path, prefix: str) -> list[Path]:
    """Returns the files of these records in a run directory."""
    return sorted(run.glob(f"{prefix}*.json"))


def what_of(path: Path, read: Callable[[Path], Described]) -> str:
    """Returns a description of a record for messages, or why its file cannot be read. Connects to no server."""
    try:
        return read(path).what
    except ArmError as error:
        return str(error)
