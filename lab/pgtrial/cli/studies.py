"""`pgtrial studies`: the bundled studies."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from pgtrial.study.load import bundled_studies


def command() -> None:
    """List the bundled studies; run one with `pgtrial run @NAME`."""
    table = Table(box=None, pad_edge=False)
    table.add_column("study", style="bold")
    table.add_column("question")
    for name, question in bundled_studies().items():
        table.add_row(f"@{name}", question)
    Console().print(table)
