"""`pgtrial report`: write a study's report anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory


def command(directory: Annotated[Path, typer.Argument(help="A study directory.")]) -> int:
    """Write verdict.json, report.md and report.html of a study anew from its stored trials, finished or not."""
    study = StudyDirectory.open(directory)
    build_report(study)
    print(study.path / "report.html")
    return 0
