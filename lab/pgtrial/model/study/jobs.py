"""The workload job:FILE.sql: statements that end by themselves, such as CREATE INDEX or VACUUM, run once in a trial."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from pydantic import Field, field_validator

from pgtrial.model import marks
from pgtrial.model.records import Record, added
from pgtrial.model.study.own_metrics import JobRead, objections_to_names
from pgtrial.model.tokens import without_tokens
from pgtrial.model.units import Seconds

JOB = "job:"
"""The prefix of the name of a workload that is a job. The path of an SQL file follows it, or nothing if the job is a
command."""

NOT_FOR_JOBS = {
    "values": "its statements are run once, as they are written",
    "clients": "one session runs it",
    "rate": "it is run once",
    "threads": "one session runs it",
    "warmup": "all of it counts",
    "duration": "it runs to its end; job.limit ends one that takes too long",
    "protocol": "its statements are sent one after the other",
    "max_tries": "a statement that fails ends it",
    "latency_limit": "job.limit ends one that takes too long",
    "interleave": "it has the machine to itself",
    "on_server_loss": "a job whose connection breaks has failed",
}
"""The keys of `[load]` that do not apply to a job, each with the reason."""

NOTHING = "none"
"""The value of `undo` for a job that leaves nothing behind."""

OF_THE_LOAD_BESIDE = ("clients", "rate", "threads", "protocol")
"""The keys of `[load]` that apply to the load beside a job, if there is one."""

_SECRETS = re.compile(r"password\s*=|://[^/@\s:]*:[^/@\s]+@", re.IGNORECASE)


class JobSection(Record):
    """The load `workload = "job:FILE.sql"`: [a job](jobs.md), such as CREATE INDEX, that runs once in a trial on a
    fresh copy of the data. The verdict is about the time that it takes. The keys of `[load]` for times are refused;
    those for clients, rate and protocol are about the load `beside` the job.
    """

    limit: Seconds = Field(
        3600.0,
        gt=0,
        le=2_000_000,
        description="The time in seconds after which the job is ended. Its trial has then failed.",
    )
    command: str | None = Field(
        None,
        description='With `workload = "job:"`: a program that is the job, in place of an SQL file, `"pg_dump -f '
        '/dev/null"`. It finds the server by the environment variables PGHOST, PGPORT and so on. No '
        "shell interprets the command.",
    )

    reads: dict[str, JobRead] = added(
        {},
        "Numbers that the command prints, to compare in place of its time: `NOPM = { pattern = 'achieved (\\d+) NOPM' "
        "}` ([keys](#loadjobreadsname)).",
    )

    beside: str | None = Field(
        None,
        min_length=1,
        description="A load that runs [beside the job](jobs.md#beside-a-load) at `rate`: the name of a script of "
        "pgbench, or the path of a `.sql` file.",
    )

    undo: str | None = Field(
        None,
        min_length=1,
        description="On [given servers](jobs.md#given-servers): the SQL that undoes the job after each trial. "
        "`none`: the job leaves nothing behind.",
    )

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, command: str | None) -> str | None:
        if command is None:
            return None
        if _SECRETS.search(command) or without_tokens(command) != command:
            raise ValueError(
                "it holds a password or token, which other users see in the process list; leave it out, PGPASSWORD is "
                "set for it"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"it is no command ({error}); close the quotation") from None
        if not words:
            raise ValueError('it is empty; write a program with its options, "pg_dump -f /dev/null"')
        return command

    @property
    def undo_sql(self) -> str:
        """Returns the SQL that undoes the job; empty if nothing has to be undone."""
        return "" if self.undo is None or self.undo == NOTHING else self.undo

    @property
    def expected_s(self) -> float:
        """Returns 0, since how long the job takes is not known before it has run."""
        return 0.0

    @property
    def longest_s(self) -> float:
        """Returns how long the job may take, seconds."""
        return self.limit


def is_job(workload: str) -> bool:
    """True if a workload is a job."""
    return workload.startswith(JOB)


def file_of(workload: str) -> str:
    """Returns the path of the script or of the job's file that a workload names."""
    return workload.removeprefix(JOB)


def objections_to_job(workloads: list[str], section: JobSection) -> Iterator[str]:
    """Yields an objection, as the rest of a sentence, for each contradiction in a load that is a job, or that has keys
    for a job without being one."""
    if not any(map(is_job, workloads)):
        if section != JobSection():
            job = marks.short_key("load", "job")
            yield f"{job} is for the workload job:FILE.sql; set it, or remove {job}"
        return
    if len(workloads) > 1:
        yield "a job is judged by its own time, and the others are not; give it a study of its own"
    file = workloads[0].removeprefix(JOB)
    if file and section.command is not None:
        workload = marks.short_key("load", "workload", JOB)
        yield f"a job is either a file or a command; write {workload} to run the command"
    yield from objections_to_names(section.reads, marks.short_key("load", "job.reads"))
    if section.reads and section.command is None:
        yield f"{marks.short_key('load', 'job.reads')} is for a command, and SQL prints nothing; remove it"
    if not file and section.command is None:
        yield f'{JOB} names no file; write "{JOB}index.sql", or what is to run as {marks.key_in("load.job", "command")}'
