"""The base class of records of what a study has changed on a given server. They are in the journal of undo of the
study's run."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pgtrial.loads.target import Target
from pgtrial.machines.journal import Journal, UndoRecord
from pgtrial.machines.machine import HostError, Machine
from pgtrial.model.errors import ArmError


@dataclass(frozen=True)
class ServerRecord(UndoRecord):
    """The record of a change that an arm makes on a given server. Each kind of change has a subclass, with at most one
    record for each arm."""

    prefix: ClassVar[str]
    """The beginning of the names of the files of this kind in the run directory."""

    arm: str
    target: Target

    @classmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        return sorted(folder.glob(f"{cls.prefix}*.json"))

    def file(self, folder: Path, machine: Machine) -> Path:
        return folder / f"{self.prefix}{self.arm.encode().hex()}.json"

    def content(self) -> Mapping[str, Any]:
        return {"arm": self.arm, "target": self.target.without_secrets(), **self.changed()}

    @abc.abstractmethod
    def changed(self) -> Mapping[str, Any]:
        """Returns the fields of the record other than the arm and the server, as values that JSON can hold."""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        return cls.of_changed(content["arm"], Target.from_record(content["target"]), content)

    @classmethod
    @abc.abstractmethod
    def of_changed(cls, arm: str, target: Target, content: Mapping[str, Any]) -> Self:
        """Returns the record of an arm and a server with this content of its file. Raises ValueError, KeyError,
        TypeError or AttributeError if the content is not that of such a record."""


def write_down(record: ServerRecord, run: Path) -> Path:
    """Writes a record to the journal of a run, and returns its file. The file is on disk when the function returns.
    Raises ArmError if the record cannot be written; the caller must not make the change then."""
    try:
        return Journal(run, (type(record),)).write(record)
    except HostError as error:
        raise ArmError(f"arms.{record.arm}: {error}") from None
