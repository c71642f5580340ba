"""The journals of undo of this machine: what runs of the lab have to put back, and what pgtrial has made on servers.

The lists here name every kind of record. Whatever is said of pending changes, undone or forgotten goes through them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgtrial.machines.host_changes import HostChange
from pgtrial.machines.journal import Journal, UndoRecord
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.job_undo import JobRecord
from pgtrial.servers.rooms import RoomLocation
from pgtrial.servers.settings_record import SettingsRecord

_HERE: tuple[type[UndoRecord], ...] = (SettingsRecord, JobRecord, HostChange)
"""The kinds that a run's own process puts back at its end. Settings go first: those of a study may keep the sessions
from starting that undo its jobs."""


def of_run_here(run: Path) -> Journal[UndoRecord]:
    """Returns the journal of a run without its rooms on other hosts."""
    return Journal(run, _HERE)


def of_run(run: Path) -> Journal[UndoRecord]:
    """Returns the journal of a run: all that is put back when the next lab starts, or by `pgtrial cleanup`."""
    return Journal(run, (RoomLocation, *_HERE))


def of_state(state: Path) -> Journal[Any]:
    """Returns the journal of what outlives runs, and is undone by `pgtrial cleanup` alone."""
    return data_journal(state)
