"""`pgtrial publish`: studies as a static site, by question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.output import line, warn
from pgtrial.model.errors import StoreError
from pgtrial.model.units import slug
from pgtrial.store.files import write_atomically, writing


def publish_command(
    paths: Annotated[list[Path], typer.Argument(help="Bundles, study directories, and folders that hold such.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the site.")] = Path("site"),
) -> int:
    """Write a static page of results by question, with the report of each study beside it.

    The pages need no server and no script but the charts of the reports. Pages of studies that are there are written
    anew; nothing is removed. The exit status is 2 if a study could not be read.
    """
    # other commands start sooner without its libraries
    from pgtrial.report import html  # noqa: PLC0415
    from pgtrial.report.sections import sections  # noqa: PLC0415
    from pgtrial.report.serve.catalogue import RUNNING, UNFINISHED, UNREADABLE, Catalogue, check_paths  # noqa: PLC0415
    from pgtrial.report.static_pages import index_page  # noqa: PLC0415

    check_paths(paths)
    catalogue = Catalogue(paths)
    studies, addresses, unread = catalogue.studies(), {"": "index.html"}, 0
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    for study in studies:
        addresses[study.key] = ""
        if study.words[0] in (RUNNING, UNFINISHED, UNREADABLE):
            unread += study.words == [UNREADABLE]
            continue
        try:
            data = catalogue.data(study)
            name = f"{slug(study.name)}.html"
            address = name if name not in addresses.values() else f"{study.key}.html"
            write_atomically(output / address, html.render(data, sections(data)))
            addresses[study.key] = address
        except StoreError as error:
            warn(str(error))
            unread += 1
    write_atomically(output / "index.html", index_page(studies, addresses))
    line(output / "index.html")
    return 2 if unread else 0
