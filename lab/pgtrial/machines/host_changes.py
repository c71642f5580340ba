"""Makes changes of a machine and undoes them. Until a change is undone, its record is in the journal of undo, which
lies on the machine that is changed."""

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
"""Every kind of change, by the name that its records have in the field `kind`."""

_DIRECTORY = "changes"


@dataclass(frozen=True)
class HostChange(UndoRecord):
    """The record of one change of a machine. The records are numbered, and pgtrial undoes the last change first."""

    of_what = "a change"
    holds_up = True

    change: Change
    boot: str | None
    """The ID of the boot during which the change was made, as `boot_id` returns it."""

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
        """Returns the record in a file. Raises HostError if the file cannot be read, if another account could have
        written it, or if its change touches an object that no change of this kind may touch, such as a file outside of
        the run directory."""
        run = path.parent.parent
        with refused(f"read {path}"):
            check_own(machine, [run, path.parent])
            check_own(machine, [path], kind="-")
        record = super().read(path, machine)
        if not record.change.is_of(run):
            raise NoRecord(
                f"the change in {path} would touch what a change of its kind never touches, so pgtrial does not undo it"
            )
        return record

    @property
    def what(self) -> str:
        return str(self.change)

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Restores the state before the change. Does nothing if the machine was restarted in between and the change was
        lost by that. A value that somebody else has changed in the meantime stays as it is."""
        if self.boot != boot_id(machine) and not self.change.survives_reboot:
            return []
        try:
            self.change.undo(machine)
        except ChangedMeanwhile as error:
            return [f"{error}."]
        except HostError as error:
            raise NotUndone(
                f"The {self.what}, made by a pgtrial that ended abruptly, could not be undone ({error}); correct the "
                "cause and run pgtrial cleanup as the same user",
                "if you have undone it by hand or there is nothing to undo",
            ) from None
        return []


@dataclass(frozen=True)
class HostJournal:
    """Makes the changes of one run of pgtrial on one machine, writes their records, and undoes the changes. `run` is
    the run's directory on the machine that is changed."""

    run: Path
    machine: Machine

    @property
    def journal(self) -> Journal[HostChange]:
        """The journal with the records of the changes."""
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
        """Makes a change that lasts until `undo` is called with the path that this method returns. Raises HostError if
        the change fails, after undoing the part that was made."""
        entry = self._write(change)
        try:
            change.make(self.machine)
        except BaseException:
            self._undo(change, entry)
            raise
        return entry

    def undo(self, entry: Path) -> None:
        """Undoes one change and removes its record.

        Raises HostError if the change cannot be undone; its record is kept then. Raises ChangedMeanwhile if somebody
        else has changed the value in the meantime; the value stays, and the record is removed.
        """
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
