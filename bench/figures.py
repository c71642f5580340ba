"""Figures of a campaign: a JSON list with a line for each record, which is committed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Protocol, TypeVar

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Word
from pgtrial.model.units import format_duration, percent

Kind = TypeVar("Kind", bound=Record)


def read_figures(path: Path, kind: type[Kind]) -> list[Kind]:
    """Returns the records that were taken until now; none if there is no file."""
    return [kind.model_validate(record) for record in json.loads(path.read_text())] if path.exists() else []


def write_figures(path: Path, records: Sequence[Record]) -> None:
    """Replaces the file by these records."""
    lines = ",\n".join(record.model_dump_json() for record in records)
    path.write_text(f"[\n{lines}\n]\n")


class OfEqualArms(Protocol):
    """A study of two equal arms."""

    @property
    def verdict(self) -> Word:
        """The verdict of the primary claim."""

    @property
    def difference(self) -> float | None:
        """The estimate; None: the study has no estimate."""

    @property
    def seconds(self) -> float:
        """The wall time of the study's blocks, seconds."""


EQUAL_ARMS = "studies | called different | differences, median size | largest | median time"
"""The heads of the cells of `equal_arms`."""


def equal_arms(studies: Sequence[OfEqualArms]) -> list[str]:
    """Returns the cells of a table on studies of equal arms; none if no study has an estimate."""
    sizes = [abs(study.difference) for study in studies if study.difference is not None]
    if not sizes:
        return []
    return [
        str(len(studies)),
        str(sum(study.verdict in ("better", "worse") for study in studies)),
        percent(median(sizes), 2),
        percent(max(sizes), 2),
        format_duration(round(median(study.seconds for study in studies))),
    ]


def rounded(share: float | None) -> float | None:
    """Returns a share rounded to four decimals, as it is stored in the files of figures."""
    return None if share is None else round(share, 4)
