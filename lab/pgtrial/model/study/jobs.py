"""The workload job:FILE.sql: statements that end by themselves, such as CREATE INDEX or VACUUM, and run once in a
trial."""

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
"""The prefix of the name of a workload that is a job. The path of an SQL file follows the prefix, or nothing if the job
is a command."""

NOT_FOR_JOBS = {
    "values": "its statements run once, as they are written",
    "clients": "one session runs the job",
    "rate": "the job runs once",
    "threads": "one session runs the job",
    "warmup": "all of the job counts",
    "duration": "the job runs to its end; job.limit ends a job that takes too long",
    "protocol": "its statements are sent one after the other",
    "max_tries": "a statement that fails ends the job",
    "latency_limit": "job.limit ends a job that takes too long",
    "interleave": "a job has the machine to itself",
    "on_server_loss": "a job whose connection breaks has failed",
}
"""The keys of `[load]` that do not apply to a job, each with the reason."""

NOTHING = "none"
"""The value of the key `undo` for a job that leaves nothing behind."""

OF_THE_LOAD_BESIDE = ("clients", "rate", "threads", "protocol")
"""The keys of `[load]` that apply to the load which runs at the same time as a job, if there is such a load."""

_SECRETS = re.compile(r"password\s*=|://[^/@\s:]*:[^/@\s]+@", re.IGNORECASE)


class JobSection(Record):
    """The load `workload = "job:FILE.sql"`: [a job](jobs.md), such as CREATE INDEX, that runs once in a trial on a
    fresh copy of the data. The verdict is about the time that the job takes. The keys of `[load]` for times are
    refused; the keys for clients, rate and protocol apply to the load `beside` the job."""

    limit: Seconds = Field(
        3600.0,
        gt=0,
        le=2_000_000,
        description="The time in seconds after which pgtrial ends the job. The trial then counts as failed.",
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
        description="A load that runs [at the same time as the job](jobs.md#beside-a-load), at `rate`: the name of "
        "a script of pgbench, or the path of a `.sql` file.",
    )

    undo: str | None = Field(
        None,
        min_length=1,
        description="On [given servers](jobs.md#given-servers): the SQL that undoes the job after each trial. "
        "`none`: the job leaves nothing behind that must be undone.",
    )

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, command: str | None) -> str | None:
        if command is None:
            return None
        if _SECRETS.search(command) or without_tokens(command) != command:
            raise ValueError(
                "the command has a password or token, which other users see in the process list; leave the "
                "password or token out: pgtrial sets PGPASSWORD for the command"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"the command cannot be parsed ({error}); close the quotation") from None
        if not words:
            raise ValueError('the command is empty; write a program with its options, such as "pg_dump -f /dev/null"')
        return command

    @property
    def undo_sql(self) -> str:
        """Returns the SQL that undoes the job; empty if nothing has to be undone."""
        return "" if self.undo is None or self.undo == NOTHING else self.undo

    @property
    def expected_s(self) -> float:
        """Returns 0, which stands for an unknown time: how long the job takes is not known before it has run."""
        return 0.0

    @property
    def longest_s(self) -> float:
        """Returns the longest time that the job may take, in seconds."""
        return self.limit


def is_job(workload: str) -> bool:
    """True if a workload is a job."""
    return workload.startswith(JOB)


def file_of(workload: str) -> str:
    """Returns the path of the script, or of the SQL file of the job, that a workload names."""
    return workload.removeprefix(JOB)


def objections_to_job(workloads: list[str], section: JobSection) -> Iterator[str]:
    """Yields a message for each contradiction in a load that is a job, and for each key for a job in a load that is not
    a job. Each message is a part of a sentence, which the caller completes with its beginning."""
    if not any(map(is_job, workloads)):
        if section != JobSection():
            job = marks.short_key("load", "job")
            yield f"{job} is for the workload job:FILE.sql; set this workload, or remove {job}"
        return
    if len(workloads) > 1:
        yield "a job is judged by the time that it takes, and other workloads are not; give the job a study of its own"
    file = workloads[0].removeprefix(JOB)
    if file and section.command is not None:
        workload = marks.short_key("load", "workload", JOB)
        yield f"a job is either a file or a command; write {workload} to run the command"
    yield from objections_to_names(section.reads, marks.short_key("load", "job.reads"))
    if section.reads and section.command is None:
        yield f"{marks.short_key('load', 'job.reads')} is for a command, and SQL prints nothing; remove the key"
    if not file and section.command is None:
        yield (
            f'{JOB} names no file; write "{JOB}index.sql", or the program to run as '
            f"{marks.key_in('load.job', 'command')}"
        )
