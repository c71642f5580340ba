"""`pgtrial verdict`: the verdict for people and for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pgtrial.report.data import read_data
from pgtrial.report.terminal import summary
from pgtrial.store.bundle import open_study


def command(
    study: Annotated[Path, typer.Argument(help="A study directory, or a bundle.")],
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> int:
    """Print the verdict of a study. Exit status: 0 no regression, 1 an arm is worse than the baseline, 2 no verdict.

    A loss that is established to be smaller than the margin is no regression. Writes nothing.
    """
    with open_study(study) as opened:
        result = read_data(opened).result
    if json:
        print(result.model_dump_json(indent=1))
    else:
        Console().print(summary(result))
    return result.exit_status
