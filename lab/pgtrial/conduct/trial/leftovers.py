"""Removes what a killed lab has left in a study directory: an unfinished trial, temporary files, and possibly an engine
that still runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from pgtrial.machines.machine import LOCAL, read_of_others
from pgtrial.machines.posix import boot_id
from pgtrial.model.records.interruptions import InterruptedTrial
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import writing
from pgtrial.store.interruptions import KILLED, note_interruption
from pgtrial.store.temporary import remove_abandoned_files

_ENGINE, _BESIDE = "engine.pid", "beside.pid"
_END_S = 5.0
_SAME_S = 0.1


def remember(trial: Path, pid: int, *, beside: bool = False) -> None:
    """Records the process of the engine in the directory of a running trial, so that the next lab can end the engine if
    this lab is killed.

    With `beside`, it is the engine of the load beside a job.
    """
    with suppress(psutil.NoSuchProcess):
        (trial / (_BESIDE if beside else _ENGINE)).write_text(
            json.dumps({"pid": pid, "born": _born(psutil.Process(pid)), "boot": boot_id(LOCAL)})
        )


def forget(trial: Path, *, beside: bool = False) -> None:
    """Removes the record of the engine's process, which has ended."""
    (trial / (_BESIDE if beside else _ENGINE)).unlink(missing_ok=True)


def discard_unfinished(study: StudyDirectory) -> int:
    """Ends the engines and removes the directories of unfinished trials that a killed lab has left. Returns the number
    of these trials.

    The trials are recorded as interrupted, except for those of a preliminary block, which never count. Trials whose
    directories are complete and were only not renamed yet are kept. Temporary files that a killed process has left
    beside other files are removed as well. Raises StoreError.
    """
    remove_abandoned_files(study.path)
    study.finish_trials()
    unfinished = study.unfinished()
    for trial in unfinished:
        for note in (_ENGINE, _BESIDE):
            _end_engine(trial / note)
    remove(unfinished)
    names = {path.name for path in unfinished}
    killed = [
        InterruptedTrial.model_validate(trial, from_attributes=True)
        for trial in study.plan.trials
        if study.hidden_path(trial).name in names
    ]
    if killed and not study.plan.awaits_lengths:
        note_interruption(study.path, KILLED, killed)
    return len(unfinished)


def remove(unfinished: Iterable[Path]) -> None:
    """Removes the directories of unfinished trials. Raises StoreError."""
    for trial in unfinished:
        with writing(trial), suppress(FileNotFoundError):
            shutil.rmtree(trial)


def _end_engine(file: Path) -> None:
    # if the record is missing or incomplete, or the process does not exist, there is nothing to end
    with suppress(OSError, ValueError, KeyError, TypeError, psutil.Error):
        noted = json.loads(read_of_others(file))
        process = psutil.Process(int(noted["pid"]))
        # another process may have this number by now, even with the same start time if the machine was restarted
        if (
            noted["boot"] == boot_id(LOCAL)
            and any(abs(now - float(then)) <= _SAME_S for now, then in zip(_born(process), noted["born"], strict=True))
            and _may_end(file, process)
        ):
            process.kill()
            process.wait(_END_S)


def _may_end(file: Path, process: psutil.Process) -> bool:
    """True if root or this account has written the record, or if its writer is the account of the process. Otherwise an
    account could make root end a process of somebody else."""
    writer = file.lstat().st_uid
    return writer in LOCAL.trusted or process.uids().real == writer


def _born(process: psutil.Process) -> tuple[float, float]:
    """Returns the time at which a process began: in seconds since 1970, and in seconds since this machine was booted.

    If somebody sets the clock, the first value changes on Linux and the second on other systems, but never both.
    """
    created = process.create_time()
    return created, created - psutil.boot_time()
