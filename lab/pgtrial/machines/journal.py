"""The record of changes under way. Each change has a file on its machine's disk, which is written before the change is
made and removed when it is undone."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pgtrial.machines.kernel import HugePages, KernelValue, Parameter
from pgtrial.machines.machine import Change, ChangedMeanwhile, HostError, Machine, refused
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
class HostJournal:
    """The changes of one run, undone in the opposite order. `run` is a directory on the machine that is changed."""

    run: Path
    machine: Machine

    @contextmanager
    def made(self, change: Change) -> Iterator[None]:
        """Makes a change, keeps it within the context, and undoes it on exit, also if making it failed. Raises
        HostError."""
        entry = self._write(change)
        try:
            change.make(self.machine)
            yield
        finally:
            _undo(change, entry, self.machine)

    def make(self, change: Change) -> Path:
        """Makes a change that lasts until `undo` is called with the value returned here. Raises HostError; nothing of
        the change is left then."""
        entry = self._write(change)
        try:
            change.make(self.machine)
        except BaseException:
            _undo(change, entry, self.machine)
            raise
        return entry

    def undo(self, entry: Path) -> None:
        """Undoes one change and removes its record. Raises HostError; the record is then kept, unless others have
        altered the changed value since (ChangedMeanwhile), which is left to them."""
        _undo(_read(entry, self.machine)[0], entry, self.machine)

    def _write(self, change: Change) -> Path:
        numbers = [int(path.stem) for path in _entries(self.run, self.machine)]
        entry = self.run / _DIRECTORY / f"{max(numbers, default=0) + 1:06}.json"
        content = {
            "kind": type(change).__name__,
            "boot": boot_id(self.machine),
            "change": change.model_dump(mode="json"),
        }
        with refused(f"write down the {change} in {entry.parent}, so it is not made"):
            self.machine.mkdir(entry.parent, 0o700, parents=True)
            check_own(self.machine, [self.run, entry.parent])
            self.machine.write_text(entry, json.dumps(content), durable=True)
        return entry


def pending(run: Path, machine: Machine) -> list[str]:
    """Returns descriptions of the changes of a run that are not undone, the latest first, which is the order of
    undoing.

    A record that another account could have written is only described, and never obeyed.
    """
    return [_words(entry, machine) for entry in _entries(run, machine)]


def undo_all(run: Path, machine: Machine) -> list[str]:
    """Undoes what the run of a crashed lab changed. Returns a sentence for each change that could not be undone.

    After a reboot only changes that survive one are left to undo. A change that cannot be undone keeps earlier ones
    waiting, since it may be built on them. What others have changed since is left to them.
    """
    said = []
    for entry in _entries(run, machine):
        try:
            change, same_boot = _read(entry, machine)
            if same_boot or change.survives_reboot:
                _undo(change, entry, machine)
            else:
                _remove(entry, machine)
        except ChangedMeanwhile as error:
            said.append(f"{error}.")
        except HostError as error:
            return [
                *said,
                f"The {_words(entry, machine)}, made by a pgtrial that ended abruptly, could not be undone ({error}); "
                "put it right and run pgtrial cleanup as the same user.",
            ]
    return said


def _undo(change: Change, entry: Path, machine: Machine) -> None:
    """Puts a change back and removes its record; a change that others have altered since keeps their value. Raises
    HostError."""
    try:
        change.undo(machine)
    except ChangedMeanwhile:
        _remove(entry, machine)
        raise
    _remove(entry, machine)


def _entries(run: Path, machine: Machine) -> list[Path]:
    return sorted(machine.glob(f"{glob.escape(str(run / _DIRECTORY))}/*.json"), reverse=True)


def _read(entry: Path, machine: Machine) -> tuple[Change, bool]:
    """Returns a recorded change, and whether it was made since the machine started.

    Raises HostError, also for a record that another account could have written, and for a change outside of what its
    kind is allowed to touch, such as a file outside of the run directory.
    """
    run = entry.parent.parent
    try:
        check_own(machine, [run, entry.parent])
        check_own(machine, [entry], kind="-")
        content = json.loads(machine.read_text(entry))
        change = KINDS[content["kind"]].model_validate(content["change"])
        same_boot = content["boot"] == boot_id(machine)
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        raise HostError(f"{entry} is no record of a change that this pgtrial knows") from None
    if not change.is_of(run):
        raise HostError(f"{entry} names what a change of its kind never touches, so it is not obeyed")
    return change, same_boot


def _remove(entry: Path, machine: Machine) -> None:
    with refused(f"remove the record {entry}"):
        machine.unlink(entry)


def _words(entry: Path, machine: Machine) -> str:
    try:
        return str(_read(entry, machine)[0])
    except HostError:
        return f"change recorded in {entry}"


@dataclass(frozen=True)
class Leftover:
    """Something on this machine that no running lab holds."""

    path: Path
    what: str
