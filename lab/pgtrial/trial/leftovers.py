"""What a lab that was killed leaves in a study: an unfinished trial, and perhaps an engine that still makes load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil

from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import cannot_write

_ENGINE = "engine.pid"
_END_S = 5.0


def remember(trial: Path, pid: int) -> None:
    """Note the engine of the running trial, so that the next lab can end it if this one dies."""
    try:
        created = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return
    (trial / _ENGINE).write_text(json.dumps({"pid": pid, "created": created}))


def forget(trial: Path) -> None:
    """The engine has ended."""
    (trial / _ENGINE).unlink(missing_ok=True)


def discard_unfinished(study: StudyDirectory) -> int:
    """End the engines and remove the directories of interrupted trials; returns how many. Raises StoreError."""
    unfinished = study.unfinished()
    for trial in unfinished:
        _end_engine(trial / _ENGINE)
        try:
            shutil.rmtree(trial)
        except OSError as error:
            raise cannot_write(trial, error) from error
    return len(unfinished)


def _end_engine(file: Path) -> None:
    try:
        noted = json.loads(file.read_text())
        process = psutil.Process(int(noted["pid"]))
        # the same number may have gone to another process since
        if abs(process.create_time() - float(noted["created"])) > 0.1:
            return
        process.kill()
        process.wait(_END_S)
    except (OSError, ValueError, KeyError, psutil.Error):
        # no note, a half-written one, or no such process: nothing is left to end
        return
