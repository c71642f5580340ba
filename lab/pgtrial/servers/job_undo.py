"""What undoes a job on a given server: the user's SQL, run after each trial and after a lab that ended abruptly.

Its record is in the run's directory from before the job until it is undone. Sessions of the job that are left are ended
first: a job that goes on would change the data after the statements that undo it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.loads.target import Session, Target, value
from pgtrial.model.errors import ArmError, one_line
from pgtrial.servers.run_records import read_record, record_files, what_of, write_record

_PREFIX = "job-undo-"
_END_S = 60.0
_POLL_S = 0.05
_END_SESSIONS = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid()"""


@dataclass(frozen=True)
class UndoRecord:
    """What one job may have changed on one server, and what undoes it."""

    arm: str
    target: Target
    statements: Sequence[str]
    sessions: str
    """The application_name of the job's sessions."""

    @property
    def what(self) -> str:
        """For messages."""
        return f"job on {self.target.label}"

    def write_down(self, run: Path) -> Path:
        """Record this in a run's directory; the file, one per arm, is on disk on return. No password is written."""
        content = {"statements": list(self.statements), "sessions": self.sessions}
        return write_record(run, _PREFIX, self.arm, self.target, content)

    @classmethod
    def read(cls, path: Path) -> UndoRecord:
        """A record. Raises ArmError for a file that is none."""
        return read_record(path, cls._of, "a job")

    @classmethod
    def _of(cls, arm: str, target: Target, content: Mapping[str, Any]) -> UndoRecord:
        return cls(arm, target, content["statements"], content["sessions"])


@contextmanager
def undone_on_exit(record: UndoRecord, run: Path, connect: Callable[[], Session]) -> Iterator[None]:
    """Within it the job may run; on exit it is undone by a session that `connect` opens. Raises ArmError."""
    entry = record.write_down(run)
    try:
        yield
    finally:
        try:
            with closing(connect()) as session:
                _undo(session, record)
        except (psycopg.Error, ArmError) as error:
            reason = one_line(error).removeprefix(f"arms.{record.arm}: ")
            raise ArmError(
                f"arms.{record.arm}: the {record.what} could not be undone ({reason}); correct [load.job] undo, or "
                "what is in its way; pgtrial cleanup tries again"
            ) from None
        entry.unlink()


def paths(run: Path) -> list[Path]:
    """The records in a run's directory."""
    return record_files(run, _PREFIX)


def pending(run: Path) -> list[str]:
    """The jobs that the run of a crashed lab has not undone, in words; no server is asked."""
    return [what_of(path, UndoRecord.read) for path in paths(run)]


def undo(run: Path) -> tuple[list[str], list[str]]:
    """Undo what a run's jobs left: a sentence for each that was undone, and for each that could not be."""
    done, failures = [], []
    for path in paths(run):
        try:
            record = UndoRecord.read(path)
            with closing(record.target.connect()) as session:
                _undo(session, record)
        except (psycopg.Error, ArmError) as error:
            failures.append(
                f"The {what_of(path, UndoRecord.read)} could not be undone ({one_line(error)}); run pgtrial cleanup "
                f"once its SQL can run there, or undo it yourself and run pgtrial cleanup --forget {path}."
            )
        else:
            path.unlink()
            done.append(f"Undid the {record.what}.")
    return done, failures


def _undo(session: Session, record: UndoRecord) -> None:
    """End the job's sessions that are left, and run the statements. Raises psycopg.Error, and ArmError."""
    deadline = time.monotonic() + _END_S
    while value(session, _END_SESSIONS, record.sessions):
        if time.monotonic() > deadline:
            raise ArmError(f"sessions of the job did not end within {_END_S:.0f}s")
        time.sleep(_POLL_S)
    with closing(record.target.connect_as_load()) as of_study:  # whose names mean what they mean in the job
        for statement in record.statements:
            of_study.execute(statement.encode())
