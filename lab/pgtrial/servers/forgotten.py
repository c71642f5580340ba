"""Removes records of servers and hosts that are gone for good, so that no later cleanup asks for these."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.servers import given_data, job_undo, settings_record
from pgtrial.servers.rooms import record_paths
from pgtrial.servers.workspace import abandoned_runs, registry


def forget(state: Path, path: Path) -> str:
    """Removes the record, at `path`, of what pgtrial left on a server or a host. Returns a sentence on that for the
    user.

    Raises StudyError for a file that is no such record, or that belongs to a running lab.
    """
    wanted = path.absolute()
    with registry(state):
        known = given_data.paths(state)
        for run in abandoned_runs(state):
            known += [*settings_record.paths(run), *job_undo.paths(run), *record_paths(run)]
        if wanted not in {record.absolute() for record in known}:
            raise StudyError(
                f"--forget {path}: this is no record of what an ended lab left on a server or a host; `pgtrial "
                "cleanup` names the records that there are"
            )
        wanted.unlink()
    return f"Forgot {path}; what it names stays where it is."
