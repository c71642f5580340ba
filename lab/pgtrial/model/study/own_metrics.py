"""Metrics that the user defines: numbers that a harness prints, or that SQL or a program finds after each trial."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from pgtrial.model.metrics import METRICS
from pgtrial.model.records import Record
from pgtrial.model.records.own_metrics import OwnMetric

_NAME = re.compile(r"[^\W_][\w .%/()-]{0,39}")
_NAMES = "use 1 to 40 letters, digits, spaces, or any of . _ - % / ( ), and begin with a letter or a digit"


class Printed(Record):
    """How a number is found in what a program prints."""

    pattern: str | None = Field(
        None,
        min_length=1,
        description="A regular expression of Python that finds the number: its group, or if it has none, all that "
        "matches. It must match exactly once.",
    )
    json_path: str | None = Field(
        None,
        min_length=1,
        description="In place of `pattern`, of a program that prints JSON: the keys that lead to the number, "
        "`metrics.latency.0`. A whole number is an item of a list.",
    )
    unit: str = Field(
        "",
        max_length=20,
        description="Its unit for reports. A unit of time or size, such as `ms` or `MB`, is compared with the one that "
        "follows the number.",
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
                f"it is no regular expression ({error}); correct it, or write \\ before its signs"
            ) from None
        if groups > 1:
            raise ValueError(f"it has {groups} groups, and one finds the number; write the others as (?:...)")
        return pattern

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.pattern is not None and self.json_path is not None:
            raise ValueError("it has a pattern and a json_path; leave one out")
        return self


class JobRead(Printed):
    """A number that the program of a job prints, [a harness of your own](own-harness.md): a metric called NAME. The
    first one is what the verdict is about, unless `[verdict] metrics` says otherwise.
    """

    better: Literal["more", "less"] = Field("more", description="Which of two numbers is better.")
    file: str | None = Field(
        None,
        min_length=1,
        description="The file that has it, if it is not the program's output; the program must write it in each trial.",
    )

    @model_validator(mode="after")
    def _is_found(self) -> Self:
        if self.pattern is None and self.json_path is None:
            raise ValueError("it says not where the number is; write pattern = '...' or json_path = \"...\"")
        return self


def objections_to_names(names: Iterable[str], where: str) -> Iterator[str]:
    """Yields an objection, as a sentence, for each name that a metric of the user's own cannot have. `where` is the
    mark of the table that defines them."""
    for name in names:
        if name in METRICS:
            yield f"{where}: {name} is a metric of pgtrial's own; give yours another name, such as 'my {name}'"
        elif not _NAME.fullmatch(name):
            yield f"{where}: {name!r} is no name for a metric; {_NAMES}"


def metrics_of_reads(reads: Mapping[str, JobRead]) -> dict[str, OwnMetric]:
    """Returns the metrics that the program of a job prints, by name."""
    return {name: OwnMetric(unit=read.unit, better=read.better, source=_of_read(read)) for name, read in reads.items()}


def _of_read(read: JobRead) -> str:
    how = f"pattern {read.pattern}" if read.pattern is not None else f"JSON path {read.json_path}"
    return f"{how} in {read.file or 'the output of the job'}"
