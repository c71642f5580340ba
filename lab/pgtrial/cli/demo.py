"""`pgtrial demo`: a study that anyone can run and check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.conduct import start
from pgtrial.store.study_file import read_study


def command(
    results: Annotated[
        Path | None, typer.Option(help="The study's directory; default: results/demo-DATE-TIME.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines.")] = False,
) -> int:
    """Compare synchronous_commit on with off on TPC-B-like transactions: 8 clients, 8 blocks, under three minutes."""
    return start(read_study("@demo"), results, as_json=json)
