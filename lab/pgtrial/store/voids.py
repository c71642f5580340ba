"""Trials that do not count: those of voided blocks are set aside, of those that were interrupted a note is kept.

A voided block's trials move from trials/ to voided/bNN-K/, after a crash at the next start. The judgement, which is on
disk with its canary before anything moves, says what is to be done. Nothing else is run and no other canary is taken
until that is finished, so only the newest judgement can wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pgtrial.model.records.disturbances import Canary, InterruptedTrial, Interruption, Judgement, Void
from pgtrial.store.files import hidden, read_record, sync_directory, write_atomically, write_in_folder, writing

VOIDED = "voided"


def unfinished_void(root: Path, canaries: Sequence[Canary]) -> Judgement | None:
    """The judgement whose block is not yet, or not wholly, set aside in the study at `root`."""
    newest = canaries[-1].judged if canaries else None
    if newest is None or newest.outcome != "void" or _final(root, newest).exists():
        return None
    return newest


def set_aside(root: Path, judgement: Judgement, canaries: Sequence[Canary], trials: Iterable[Path]) -> None:
    """Move the directories of the block's trials, those that are still there. Raises StoreError.

    Any step may be the last one before a crash; the same call then goes on from there.
    """
    final = _final(root, judgement)
    temporary = hidden(final)
    with writing(final):
        temporary.mkdir(parents=True, exist_ok=True)
        for trial in trials:
            if trial.exists():
                trial.rename(temporary / trial.name)
        concerned = [canary for canary in canaries if canary.number == judgement.before or canary.judged == judgement]
        void = Void(reason=judgement.reason, judgement=judgement, canaries=concerned)
        write_atomically(temporary / "void.json", void.model_dump_json(indent=1))
        sync_directory(root / "trials")
        temporary.rename(final)
        sync_directory(final.parent)


def _final(root: Path, judgement: Judgement) -> Path:
    return root / VOIDED / f"b{judgement.block:02d}-{judgement.attempt}"


KILLED = "killed"


def read_interruptions(root: Path) -> list[Interruption]:
    """All interruptions of the study at `root`, in order. Raises StoreError."""
    return [read_record(path, Interruption, f"restore {path} from a copy") for path in _notes(root)]


def _notes(root: Path) -> list[Path]:
    return sorted((root / "interruptions").glob("[0-9]*.json"), key=lambda path: (len(path.stem), path.stem))


def note_interruption(root: Path, how: str, trials: Sequence[InterruptedTrial]) -> None:
    """Record an interruption that has just happened, or was just noticed. Raises StoreError."""
    notes = _notes(root)
    # a note may have been removed: the number of one that is there is not used again
    number = int(notes[-1].stem) + 1 if notes else 1
    noted = datetime.now(UTC).isoformat(timespec="milliseconds")
    interruption = Interruption(number=number, noted=noted, how=how, trials=list(trials))
    path = root / "interruptions" / f"{number:04d}.json"
    write_in_folder(path, interruption.model_dump_json(indent=1))
