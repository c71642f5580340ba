"""`pgtrial metrics`: import what the providers' monitoring has about a study's trials, and write its report anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.conduct import say, warn
from pgtrial.conduct.provider_metrics import import_metrics, measured_arms
from pgtrial.model.errors import StudyError
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory


def command(directory: Annotated[Path, typer.Argument(help="A study directory.")]) -> int:
    """Import the providers' metrics that a study's arms name and that are not stored yet, and write its report anew.

    A run imports what is there when it ends; the last trials' metrics come some minutes later. The exit status is 2
    while any are missing.
    """
    study = StudyDirectory.open(directory)
    if not measured_arms(study):
        raise StudyError(
            f'{directory}: no arm of this study has metrics; give one metrics = {{ cloudwatch = "..." }} and run it'
        )
    missing = import_metrics(study, say)
    for sentence in missing:
        warn(sentence)
    build_report(study)
    print(study.path / "report.html")
    return 2 if missing else 0
