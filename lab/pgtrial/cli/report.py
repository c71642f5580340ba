"""`pgtrial report`: write a study's report anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.report.build import build_report, render
from pgtrial.store.bundle import SUFFIX, open_study
from pgtrial.store.files import new_file


def command(
    study: Annotated[Path, typer.Argument(help="A study directory, or a bundle.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write this page only, as Markdown if it ends in .md; default of a bundle: its name with .html.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Write verdict.json, report.md and report.html of a study anew from its stored trials, finished or not.

    They are written into the study directory. Of a bundle one page is written, beside the bundle; it replaces no other
    file.
    """
    with open_study(study) as opened:
        if output is None and study.is_dir():
            build_report(opened)
            print(opened.path / "report.html")
            return 0
        page = output or study.with_name(f"{study.name.removesuffix(SUFFIX)}.html")
        text = render(opened, "md" if page.suffix == ".md" else "html")
    with new_file(page) as temporary:
        temporary.write_text(text)
    print(page)
    return 0
