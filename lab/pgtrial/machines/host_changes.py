"""The changes of a machine under way, and their records in the journal of undo, on the machine that is changed."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pgtrial.machines.journal import Journal, NoRecord, NotUndone, Occasion, UndoRecord
from pgtrial.machines.kernel import HugePages, KernelValue, Parameter
from pgtrial.machines.machine import LOCAL, Change, ChangedMeanwhile, HostError, Machine, refused
from pgtrial.machines.posix import boot_id
from pgtrial.machines.server import RunningServer
from pgtrial.machines.trust import check_own
from pgtrial.machines.volumes import BackingFile, LoopDevice, Mount, MountPoint, Pool, PrivateDirectory, Signature

KINDS: dict[str, type[Change]] = {
    kind.__name__: kind
    for kind in (
        KernelValue,
        HugePages,
        Parameter,
        Pool,
        BackingFile,
        LoopDevice,
        MountPoint,
        Mount,
        PrivateDirectory,
        Signature,
        RunningServer,
    )
}
"""Every kind of change, by the name that its records have."""

_DIRECTORY = "changes"


@dataclass(frozen=True)
class HostChange(UndoRecord):
    """The record of one change of a machine. Records are numbered, and the last change is undone first."""

    of_what = "a change"
    holds_up = True

    change: Change
    boot: str | None
    """The boot of the machine in which the change was made."""

    @classmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        return sorted(machine.glob(f"{glob.escape(str(folder / _DIRECTORY))}/*.json"), reverse=True)

    def file(self, folder: Path, machine: Machine) -> Path:
        numbers = [int(path.stem) for path in self.files(folder, machine)]
        return folder / _DIRECTORY / f"{max(numbers, default=0) + 1:06}.json"

    def content(self) -> Mapping[str, Any]:
        kind, change = type(self.change).__name__, self.change.model_dump(mode="json")
        return {"kind": kind, "boot": self.boot, "change": change}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        return cls(KINDS[content["kind"]].model_validate(content["change"]), content["boot"])

    @classmethod
    def read(cls, path: Path, machine: Machine = LOCAL) -> Self:
        """Returns a recorded change. Raises HostError, also for a record that another account could have written, and
        for a change outside of what its kind is allowed to touch, such as a file outside of the run directory."""
        run = path.parent.parent
        with refused(f"read {path}"):
            check_own(machine, [run, path.parent])
            check_own(machine, [path], kind="-")
        record = super().read(path, machine)
        if not record.change.is_of(run):
            raise NoRecord(f"{path} names what a change of its kind never touches, so it is not obeyed")
        return record

    @property
    def what(self) -> str:
        return str(self.change)

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Restores the state before the change, unless the machine has been started since and the change has not
        outlived that. A value that somebody else has altered since stays as it is."""
        if self.boot != boot_id(machine) and not self.change.survives_reboot:
            return []
        try:
            self.change.undo(machine)
        except ChangedMeanwhile as error:
            return [f"{error}."]
        except HostError as error:
            raise NotUndone(
                f"The {self.what}, made by a pgtrial that ended abruptly, could not be undone ({error}); put it right "
                "and run pgtrial cleanup as the same user",
                "if there is nothing left to put right",
            ) from None
        return []


@dataclass(frozen=True)
class HostJournal:
    """The changes of one run, undone in the opposite order. `run` is a directory on the machine that is changed."""

    run: Path
    machine: Machine

    @property
    def journal(self) -> Journal[HostChange]:
        """The journal that has the records of the changes."""
        return Journal(self.run, (HostChange,), self.machine)

    @contextmanager
    def made(self, change: Change) -> Iterator[None]:
        """Makes a change, keeps it within the context, and undoes it on exit, also if making it failed. Raises
        HostError."""
        entry = self._write(change)
        try:
            change.make(self.machine)
            yield
        finally:
            self._undo(change, entry)

    def make(self, change: Change) -> Path:
        """Makes a change that lasts until `undo` is called with the value returned here. Raises HostError; nothing of
        the change is left then."""
        entry = self._write(change)
        try:
            change.make(self.machine)
        except BaseException:
            self._undo(change, entry)
            raise
        return entry

    def undo(self, entry: Path) -> None:
        """Undoes one change and removes its record. Raises HostError; the record is then kept, unless others have
        altered the changed value since (ChangedMeanwhile), which is left to them."""
        self._undo(HostChange.read(entry, self.machine).change, entry)

    def _write(self, change: Change) -> Path:
        return self.journal.write(HostChange(change, boot_id(self.machine)))

    def _undo(self, change: Change, entry: Path) -> None:
        try:
            change.undo(self.machine)
        except ChangedMeanwhile:
            self.journal.remove(entry)
            raise
        self.journal.remove(entry)
