"""Reads and writes the records of interruptions of a study. The verdict does not use trials that were interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pgtrial.model.records.interruptions import InterruptedTrial, Interruption
from pgtrial.store.files import read_record, write_in_folder

KILLED = "killed"


def read_interruptions(root: Path) -> list[Interruption]:
    """Returns all interruptions of the study at `root`, in the order in which they happened. Raises StoreError if the
    file is damaged."""
    return [read_record(path, Interruption, f"restore {path} from a copy") for path in _notes(root)]


def _notes(root: Path) -> list[Path]:
    return sorted((root / "interruptions").glob("[0-9]*.json"), key=lambda path: (len(path.stem), path.stem))


def note_interruption(root: Path, how: str, trials: Sequence[InterruptedTrial]) -> None:
    """Stores the record of an interruption that has just happened, or that was noticed when the study was continued.
    Raises StoreError if the record cannot be written."""
    notes = _notes(root)
    # numbers are not counted but taken from the last record, since a record may have been removed
    number = int(notes[-1].stem) + 1 if notes else 1
    noted = datetime.now(UTC).isoformat(timespec="milliseconds")
    interruption = Interruption(number=number, noted=noted, how=how, trials=list(trials))
    path = root / "interruptions" / f"{number:04d}.json"
    write_in_folder(path, interruption.model_dump_json(indent=1))
