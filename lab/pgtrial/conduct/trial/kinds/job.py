"""Observes a trial whose load is a job: reads the server's counters before and after the job, reports the job's
progress, and finds out why a job failed."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict

import psycopg

from pgtrial.conduct.progress import JobProgress
from pgtrial.conduct.trial.beside import LoadBeside
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.results import ServerResult, sentence
from pgtrial.conduct.trial.start_load import remembered
from pgtrial.evidence.observe.job import PeakMemory, Progress, ProgressViews
from pgtrial.loads.command_lines.job import job_options
from pgtrial.loads.engine import NotInTime
from pgtrial.loads.events import Error, Event
from pgtrial.loads.job_command import CommandRun, JobProgram
from pgtrial.loads.job_reads import JobReads
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.script_commands import script_commands
from pgtrial.loads.target import Session, Target
from pgtrial.machines.cpus import running_on
from pgtrial.model import marks
from pgtrial.model.errors import NameTaken, StudyError, TrialError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.trial import JobSummary, Phase
from pgtrial.model.study.servers import Made
from pgtrial.model.units import format_duration
from pgtrial.servers.arm import Arm
from pgtrial.store.directory import JOB_PROGRESS
from pgtrial.store.programs import check_programs_unchanged

_WAL_BEFORE_10 = "SELECT pg_xlog_location_diff(pg_current_xlog_insert_location(), '0/0')"
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
_SIZE = "SELECT pg_database_size(current_database())"


class JobWatch(LoadWatch):
    """The lab's work while a job runs: it reports the progress, measures how much the job writes, and runs the load
    beside the job."""

    def __init__(self, order: TrialOrder, session: Session) -> None:
        super().__init__(order)
        self._session = session
        self._memory = PeakMemory(order.arm.machine, order.arm.data_directory)
        self._views: ProgressViews | None = None
        self._shown: Progress | None = None
        self._shown_at = order.directory / JOB_PROGRESS
        """The file with the progress of the job, which the page of a running study (`pgtrial serve`) reads."""
        self._phase_began = 0.0
        self._wal: float | None = None
        self._written: float | None = None
        self._size = 0.0
        self._beside: LoadBeside | None = None
        self._served: Phase | None = None
        self._reads = JobReads({})
        self._program: CommandRun | None = None
        """The program of the job, if the job is a program and was started."""

    def begin(self, load: ExitStack, target: Target) -> None:
        """Reads the size of the database and the position in the WAL before the job. Starts the load beside the job and
        the measurement of the server's memory; both end when `load` is closed."""
        self._views = ProgressViews(self._session)
        load.callback(self._shown_at.unlink, missing_ok=True)
        self._size = database_size(self._session)
        load.enter_context(self._memory)
        job = self._order.point.job
        if job is not None and (beside := job.beside) is not None:
            self._beside = load.enter_context(LoadBeside(self._order, target, beside))
        self._wal = wal_position(self._session)

    def started(self, target: Target) -> AbstractContextManager[LoadRun]:
        arm = self._order.arm
        program = program_of(self._order.point, arm)
        if program is None:
            return super().started(target)
        check_programs_unchanged(arm.name, arm.setup)
        return remembered(self._order.directory, self._command(target, program))

    @contextmanager
    def _command(self, target: Target, program: JobProgram) -> Iterator[LoadRun]:
        order = self._order
        prepared = CommandRun(
            program,
            target,
            events_file=order.directory / "engine.jsonl",
            inbox=order.inbox,
            keeps_output=bool(order.load.job.reads),
        )
        self._reads = JobReads(order.load.job.reads)
        with running_on(order.load.cpus), prepared as self._program:
            yield self._program

    def on_event(self, event: Event) -> bool:
        """Reports the progress of the job once a second. Raises psycopg.OperationalError."""
        if event["event"] != "tick":
            return False
        if self._views is None:
            return True
        progress = self._views.look()
        now = time.monotonic()
        if progress is None or self._shown is None or progress.phase != self._shown.phase:
            self._phase_began = now
        self._shown = progress
        with suppress(OSError):  # if this fails, the page shows no progress, and the trial continues
            self._shown_at.write_text(json.dumps(asdict(progress) if progress is not None else None))
        left_s = None
        if progress is not None and progress.share and now > self._phase_began:
            left_s = (now - self._phase_began) * (1 - progress.share) / progress.share
        self._order.listener(
            JobProgress(
                self._order.planned.arm,
                event["second"] + 1,
                progress.command if progress else None,
                progress.phase if progress else None,
                progress.share if progress else None,
                left_s,
            )
        )
        return True

    def ended(self, outcome: Outcome, failed: str | None, status: int, last_words: str) -> ServerResult:
        """If the job has failed, returns the reason. Otherwise reads how much WAL the job has written, waits until the
        load beside the job has ended, and reads the metrics that the job prints."""
        end = ServerResult(refusal(self._order, outcome, status, last_words) or failed)
        if end.failed is not None:
            return end
        try:
            wal = wal_position(self._session)
        except psycopg.OperationalError as error:
            end.lost = sentence(error)
            return end
        self._written = None if wal is None or self._wal is None else max(0.0, wal - self._wal)
        if self._beside is not None:
            self._served, note = self._beside.end()
            end.note(note)
        if self._program is not None and self._order.load.job.reads:
            with end.failing():
                end.own_metrics = self._reads.numbers(self._program.output(), self._order.point.workload)
        return end

    def reported(self, error: TrialError) -> TrialError:
        """Returns an error that names the job's time limit if the job was ended because it exceeded this limit. Returns
        any other error unchanged."""
        job = self._order.point.job
        if job is None or not isinstance(error, NotInTime):
            return error
        limit = format_duration(job.limit_s)
        return TrialError(
            f"the job had not ended after {limit}, its limit ({marks.key('load.job', 'limit')}), and pgtrial ended it"
        )

    def name_taken(self, reason: str | None, refused: Error | None) -> NameTaken | None:
        if reason is None:
            return None
        if not is_program(self._order.point):
            is_taken = refused is not None and refused.get("sqlstate") in _TAKEN
        else:
            is_taken = "already exists" in reason
        return NameTaken(reason) if is_taken else None

    def end(self) -> JobSummary:
        return JobSummary(
            wal_bytes=self._written,
            size_before_bytes=self._size,
            size_bytes=database_size(self._session),
            peak_memory_bytes=self._memory.bytes,
            beside=self._served,
        )


def wal_position(session: Session) -> float | None:
    """Returns the number of bytes of WAL that were written since initdb; None if the role may not query this. Raises
    psycopg.Error."""
    query = _WAL if session.info.server_version >= 100000 else _WAL_BEFORE_10
    try:
        row = session.execute(query.encode()).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return None if row is None else float(row[0])


def database_size(session: Session) -> float:
    """Returns the disk space that the session's database takes, in bytes. Raises psycopg.Error."""
    row = session.execute(_SIZE).fetchone()
    return float(row[0]) if row is not None else 0.0


def is_program(point: LoadPoint) -> bool:
    """True if the load is a job that a program does, and not an SQL file."""
    return point.job is not None and point.job.is_program


def program_of(point: LoadPoint, arm: Arm) -> JobProgram | None:
    """Returns the program that is the job of an arm; None if the job is an SQL file, and for any other load."""
    command = point.job.command_of(arm.name) if point.job is not None else None
    if command is None:
        return None
    variables = arm.setup.environment if isinstance(arm.setup, Made) else {}
    of_arm = arm.setup.command is not None
    key = f"arms.{arm.name}.command" if of_arm else marks.key("load.job", "command")
    return JobProgram(shlex.split(command), key, variables)


_TAKEN = frozenset(("42P06", "42P07", "42701", "42710", "42723"))
"""The SQLSTATEs with which PostgreSQL refuses to create an object because its name exists already."""


def refusal(order: TrialOrder, outcome: Outcome, status: int, last_words: str) -> str | None:
    """Returns the reason why a job failed: for SQL the file, line and statement, with the server's message; for a
    program its exit status, with the last words that it printed.

    Returns None if neither PostgreSQL nor the program reported a failure.
    """
    if is_program(order.point) and status != 0:
        ended = f"ended with status {status}" if status > 0 else "did not end by itself"
        return f"{order.point.workload} {ended}: {last_words}"
    refused = outcome.refused
    if refused is None or order.script is None:
        return None
    words = refused["message"].splitlines()[0].removeprefix("ERROR:").strip()
    location, command = order.script.name, refused.get("command")
    if command is not None:
        with suppress(StudyError, IndexError):
            location = script_commands(job_options(order.script, order.point))[command].location_in(location)
    return f"{location}: PostgreSQL says: {words}"
