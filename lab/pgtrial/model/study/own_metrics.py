"""Metrics that the user defines: numbers that a benchmark program of the user prints, or that SQL or a program finds
after each trial."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from pgtrial.model.metrics import METRICS
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.model.study.programs import known_command
from pgtrial.model.units import Seconds

_NAME = re.compile(r"[^\W_][\w .%/()-]{0,39}")
_NAMES = "use 1 to 40 letters, digits, spaces, or any of . _ - % / ( ), and begin with a letter or a digit"


class Printed(Record):
    """The rule by which pgtrial finds a number in the output of a program."""

    pattern: str | None = Field(
        None,
        min_length=1,
        description="A regular expression of Python that finds the number. The number is the expression's group or, "
        "if it has no group, everything that the expression matches. It must match exactly once.",
    )
    json_path: str | None = Field(
        None,
        min_length=1,
        description="For a program that prints JSON, in place of `pattern`: the keys that lead to the number, such "
        "as `metrics.latency.0`. A whole number stands for an item of a list, counted from 0.",
    )
    unit: str = Field(
        "",
        max_length=20,
        description="The unit of the number, for reports. If it is a unit of time or size, such as `ms` or `MB`, "
        "pgtrial refuses a number that another unit follows in the output.",
    )

    @field_validator("pattern")
    @classmethod
    def _has_one_group(cls, pattern: str | None) -> str | None:
        if pattern is None:
            return None
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise ValueError(
                f"it is not a regular expression ({error}); correct it, or write \\ before its special characters"
            ) from None
        if groups > 1:
            raise ValueError(f"it has {groups} groups, and only one can find the number; write the others as (?:...)")
        return pattern

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.pattern is not None and self.json_path is not None:
            raise ValueError("it has a pattern and a json_path; leave one of the two out")
        return self


class JobRead(Printed):
    """A number that the program of a job prints, for example the result of [a harness of your own](own-harness.md). The
    number is a metric called NAME. The verdict is about the first of these metrics, unless `[verdict] metrics` says
    otherwise."""

    better: Literal["more", "less"] = Field(
        "more", description="`more` if larger numbers are better, `less` if smaller numbers are better."
    )
    file: str | None = Field(
        None,
        min_length=1,
        description="The file that contains the number, if the program does not print it. The program must write "
        "the file in each trial.",
    )

    @model_validator(mode="after")
    def _is_found(self) -> Self:
        if self.pattern is None and self.json_path is None:
            raise ValueError("it does not say where the number is; write pattern = '...' or json_path = \"...\"")
        return self


class MetricSection(Printed):
    """[A metric of your own](own-metrics.md) called NAME: a number that SQL or a program finds after each trial, or in
    each second of its measured part. pgtrial gives a verdict on it. Metrics of your own follow those in `[verdict]
    metrics`, unless they are listed there. Each arm then has a server of its own."""

    sql: str | None = Field(
        None,
        min_length=1,
        description="SQL that returns one row with one number. If it has several statements, the last one returns "
        "the number. It runs as the role of the load, in a read-only transaction.",
    )
    command: Annotated[str, AfterValidator(known_command)] | None = Field(
        None,
        description="In place of `sql`, a program that prints the number. It finds the server by the environment "
        "variables PGHOST, PGPORT and so on. No shell interprets the command. Without `pattern` and `json_path`, the "
        "program must print nothing but the number.",
    )
    better: Literal["more", "less"] = Field(
        description="`more` if larger numbers are better, `less` if smaller numbers are better."
    )
    each_second: Literal["mean", "max", "min"] | None = Field(
        None,
        description="Set this key to read the number in each second of the measured part. The number of the trial "
        "is then the `mean`, the largest (`max`) or the smallest (`min`) of these numbers. Default: the number is "
        "read once, after the load.",
    )
    limit: Seconds = Field(
        60.0,
        gt=0,
        le=3600,
        description="The longest time in seconds that reading the number may take. If it takes longer, the number "
        "is unknown.",
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.sql is None) == (self.command is None):
            raise ValueError("write sql or command, and not both, to say what finds the number")
        if self.sql is not None and (self.pattern is not None or self.json_path is not None):
            raise ValueError("pattern and json_path are for a command, and sql returns the number itself; remove them")
        return self


def objections_to_names(names: Iterable[str], where: str) -> Iterator[str]:
    """Yields an objection, as a sentence, for each name that a metric of the user's own cannot have. `where` is the
    mark of the table that defines the metrics."""
    for name in names:
        if name in METRICS:
            yield f"{where}: {name} is a metric of pgtrial's own; give yours another name, such as 'my {name}'"
        elif not _NAME.fullmatch(name):
            yield f"{where}: {quoted(name)} cannot be the name of a metric; {_NAMES}"


def metrics_of_reads(reads: Mapping[str, JobRead]) -> dict[str, OwnMetric]:
    """Returns the metrics that the program of a job prints, by name."""
    return {name: OwnMetric(unit=read.unit, better=read.better, source=_of_read(read)) for name, read in reads.items()}


def metrics_of_sections(sections: Mapping[str, MetricSection]) -> dict[str, OwnMetric]:
    """Returns the metrics that SQL or programs find, by name."""
    return {
        name: OwnMetric(unit=section.unit, better=section.better, source=section.sql or section.command or "")
        for name, section in sections.items()
    }


def _of_read(read: JobRead) -> str:
    how = f"pattern {read.pattern}" if read.pattern is not None else f"JSON path {read.json_path}"
    return f"{how} in {read.file or 'the output of the job'}"
