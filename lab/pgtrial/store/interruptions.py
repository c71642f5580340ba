"""The record of interruptions: what was under way is removed, and noted for the reader of the report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pgtrial.model.records.interruption import InterruptedTrial, Interruption
from pgtrial.store.files import read_record, write_atomically, writing

KILLED = "killed"


def read_interruptions(root: Path) -> list[Interruption]:
    """All interruptions of the study at `root`, in order. Raises StoreError."""
    paths = sorted((root / "interruptions").glob("[0-9]*.json"))
    return [read_record(path, Interruption, f"restore {path} from a copy") for path in paths]


def note_interruption(root: Path, how: str, trials: Sequence[InterruptedTrial]) -> None:
    """Record an interruption that has just happened, or was just noticed. Raises StoreError."""
    number = len(read_interruptions(root)) + 1
    noted = datetime.now(UTC).isoformat(timespec="milliseconds")
    interruption = Interruption(number=number, noted=noted, how=how, trials=list(trials))
    path = root / "interruptions" / f"{number:04d}.json"
    with writing(path):
        path.parent.mkdir(exist_ok=True)
    write_atomically(path, interruption.model_dump_json(indent=1))
