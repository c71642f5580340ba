"""The record of changes under way: a file for each, on disk before the change is made and gone when it is undone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pgtrial.discover import load_modules
from pgtrial.host.change import Change, HostError

_DIRECTORY = "changes"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class HostJournal:
    """The changes of one run directory, undone in the opposite order."""

    run: Path

    @contextmanager
    def made(self, change: Change) -> Iterator[None]:
        """The change is in force inside, and undone on the way out, also when making it failed. Raises HostError."""
        entry = self._write(change)
        try:
            change.make()
            yield
        finally:
            change.undo()
            entry.unlink()

    def make(self, change: Change) -> Path:
        """Make a change that stays until `undo` is given what this returns. Raises HostError; nothing is left then."""
        entry = self._write(change)
        try:
            change.make()
        except BaseException:
            change.undo()
            entry.unlink()
            raise
        return entry

    def undo(self, entry: Path) -> None:
        """Put one change back. Raises HostError; the record stays then."""
        _read(entry)[0].undo()
        entry.unlink()

    def _write(self, change: Change) -> Path:
        directory = self.run / _DIRECTORY
        directory.mkdir(mode=0o700, exist_ok=True)
        numbers = [int(path.stem) for path in directory.glob("*.json")]
        entry = directory / f"{max(numbers, default=0) + 1:06}.json"
        content = {"kind": type(change).__name__, "boot": boot_id(), "change": change.model_dump(mode="json")}
        with entry.open("x") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        _sync(directory)
        return entry


def pending(run: Path) -> list[str]:
    """The changes of a run that are not undone, in words, the latest first: the order in which they are undone."""
    return [_words(entry) for entry in _entries(run)]


def undo_all(run: Path) -> list[str]:
    """Undo what the run of a crashed lab changed; a sentence for each change that could not be undone.

    After a reboot only what outlives one is left to undo. A change that fails keeps those before it waiting: they may
    be what it stands on.
    """
    for entry in _entries(run):
        try:
            change, same_boot = _read(entry)
            if same_boot or change.survives_reboot:
                change.undo()
        except HostError as error:
            return [
                f"The {_words(entry)}, made by a pgtrial that ended abruptly, could not be undone ({error}); "
                "put it right and run pgtrial cleanup as the same user."
            ]
        entry.unlink()
    return []


def boot_id() -> str | None:
    """What is different after each start of the machine, where the system tells it."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


def _entries(run: Path) -> list[Path]:
    return sorted((run / _DIRECTORY).glob("*.json"), reverse=True)


def _read(entry: Path) -> tuple[Change, bool]:
    """A recorded change, and whether it was made since the machine started."""
    load_modules("pgtrial.host")
    try:
        content = json.loads(entry.read_text())
        change = Change.kinds[content["kind"]].model_validate(content["change"])
    except (OSError, ValueError, KeyError, ValidationError):
        raise HostError(f"{entry} is no record of a change that this pgtrial knows") from None
    return change, content["boot"] == boot_id()


def _words(entry: Path) -> str:
    try:
        return str(_read(entry)[0])
    except HostError:
        return f"change recorded in {entry}"


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
