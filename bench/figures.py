"""Figures of a campaign: a JSON list with a line for each record, which is committed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pgtrial.model.records import Record

Kind = TypeVar("Kind", bound=Record)


def read_figures(path: Path, kind: type[Kind]) -> list[Kind]:
    """The records that were taken until now; none where there is no file."""
    return [kind.model_validate(record) for record in json.loads(path.read_text())] if path.exists() else []


def write_figures(path: Path, records: Sequence[Record]) -> None:
    """Replace the file."""
    lines = ",\n".join(record.model_dump_json() for record in records)
    path.write_text(f"[\n{lines}\n]\n")
