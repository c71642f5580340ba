"""The figures: as JSON, and as the table in docs/reliability.md."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.reliability.kind import Figure
from pgtrial.model.units import format_duration
from pgtrial.store.files import write_atomically

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures of bench.reliability -->", "<!-- end of the figures -->"


def read(path: Path) -> list[Figure]:
    """Returns the figures of earlier runs."""
    return [Figure.model_validate(each) for each in json.loads(path.read_text())] if path.exists() else []


def write(path: Path, figures: Sequence[Figure], page: Path) -> None:
    """Store the figures, and put a table of them between the marks of the page."""
    lines = ",\n".join(figure.model_dump_json() for figure in figures)
    write_atomically(path, f"[\n{lines}\n]\n")
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(_table(figures))
    write_atomically(page, f"{before}{BEGIN}\n{table}\n{END}{after}")


def _table(figures: Sequence[Figure]) -> Iterator[str]:
    """Yields a row for each kind of attack."""
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    yield f"Measured on a machine with {os.cpu_count()} CPUs, {system}."
    yield ""
    yield "| kind | attacks | time | defects |"
    yield "|---|---|---|---|"
    for kind in dict.fromkeys(figure.kind for figure in figures):
        made = [figure for figure in figures if figure.kind == kind]
        defects = "; ".join(defect for figure in made for defect in figure.defects) or "none"
        cells = (
            f"`{kind}`",
            f"{sum(figure.count for figure in made):,}",
            format_duration(sum(figure.seconds for figure in made)),
            defects.replace("|", "/").replace("\n", " "),
        )
        yield f"| {' | '.join(cells)} |"
