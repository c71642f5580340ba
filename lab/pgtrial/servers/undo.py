"""The journals of undo on this machine. The journal of a run records the changes that the run has to undo. The journal
of the state directory records the data that pgtrial has made on given servers.

The lists in this module name every kind of record. All code that lists, undoes or forgets changes gets its journals
here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgtrial.machines.host_changes import HostChange
from pgtrial.machines.journal import Journal, UndoRecord
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.host_run_directory import HostRunRecord
from pgtrial.servers.job_undo import JobRecord
from pgtrial.servers.settings_record import SettingsRecord

_HERE: tuple[type[UndoRecord], ...] = (SettingsRecord, JobRecord, HostChange)
"""The kinds of changes that the run's own process undoes at its end. Settings come first, since settings of a study can
prevent the sessions from starting that undo its jobs."""


def of_run_here(run: Path) -> Journal[UndoRecord]:
    """Returns the journal of a run without the records of its run directories on other hosts."""
    return Journal(run, _HERE)


def of_run(run: Path) -> Journal[UndoRecord]:
    """Returns the journal of a run with all records. If the run's lab was killed, the next pgtrial or `pgtrial cleanup`
    undoes these changes."""
    return Journal(run, (HostRunRecord, *_HERE))


def of_state(state: Path) -> Journal[Any]:
    """Returns the journal with the records of data on given servers. This data stays after its run, and only `pgtrial
    cleanup` removes it."""
    return data_journal(state)
