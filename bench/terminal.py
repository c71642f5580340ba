"""`python -m bench.terminal DIRECTORY` draws docs/images/demo.svg: how the demo in DIRECTORY ended in a terminal."""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pgtrial.cli.verdict import in_short
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.store.bundle import open_study

_PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
_COLUMNS = 80
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Matches the font faces in the SVG, which a browser would load from another site. They are removed, so that the
reader's own monospaced font is used."""


def main() -> None:
    """Draws the picture of a demo in a terminal as SVG."""
    parser = argparse.ArgumentParser(prog="bench.terminal", description=__doc__)
    parser.add_argument("directory", type=Path, help="the study directory of a demo")
    given = parser.parse_args()
    screen = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    screen.print(Text.assemble(("$ ", "dim"), "pgtrial demo"))
    with open_study(given.directory) as study:
        data = read_data(study)
        screen.print(in_short(brief(data.result, data.plan, None)))
    screen.print(Text(f"report: results/{given.directory.name}/report.html"))
    drawn = screen.export_svg(title="pgtrial demo", unique_id="demo")
    _PICTURE.write_text(_FONTS.sub("", drawn).replace("Fira Code, ", ""))


if __name__ == "__main__":
    main()
