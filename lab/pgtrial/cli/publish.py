"""`pgtrial publish`: writes a static web site with the results of studies, sorted by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgtrial.cli.output import line, warn
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.units import slug
from pgtrial.store.files import make_folder, write_atomically
from pgtrial.store.replaceable import PAGE, check_replaceable

if TYPE_CHECKING:  # only type checkers import this module; commands start sooner without its libraries
    from pgtrial.report.serve.catalogue import Glance

_INDEX = "index.html"


def publish_command(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Bundles, study directories, and folders that contain bundles or study directories."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to which the pages are written.")] = Path(
        "site"
    ),
) -> int:
    """Write static web pages with the results of studies, sorted by question, and the report of each study.

    The pages need no web server. The only scripts in them draw the charts. Existing pages of the same studies are
    replaced, and pages of other studies are kept. If a page would replace a file that pgtrial has not written, that is
    an error. If both a study and its bundle are given, the study is shown once. The exit status is 2 if a study could
    not be read.
    """
    from pgtrial.report import html  # noqa: PLC0415
    from pgtrial.report.sections import sections  # noqa: PLC0415
    from pgtrial.report.serve.catalogue import UNREADABLE, Catalogue, check_paths  # noqa: PLC0415
    from pgtrial.report.static_pages import index_page  # noqa: PLC0415

    check_paths(paths)
    catalogue = Catalogue(paths)
    if not (studies := list(_once(catalogue.studies()))):
        raise StudyError(
            f"there is no study in {', '.join(map(str, paths))}; name bundles, study directories, or folders that "
            "contain them"
        )
    make_folder(output, "-o")
    check_replaceable(output / _INDEX, "-o", PAGE)

    def render(study: Glance) -> str:
        data = catalogue.data(study)
        return html.render(data, sections(data))

    published, addresses = _published(studies, output, render)
    write_atomically(output / _INDEX, index_page(published, addresses), "-o")
    line(output / _INDEX)
    return 2 if any(study.words == [UNREADABLE] for study in published) else 0


def _published(
    studies: Sequence[Glance], output: Path, render: Callable[[Glance], str]
) -> tuple[list[Glance], dict[str, str]]:
    """Writes the page of each study that has a verdict. Returns the studies, and the file names of their pages by the
    key of the study. A study without a page has an empty file name."""
    from pgtrial.report.serve.catalogue import RUNNING, UNFINISHED, UNREADABLE  # noqa: PLC0415

    published, addresses = [], dict.fromkeys((study.key for study in studies), "")
    for study in studies:
        shown = study
        if study.words[0] not in (RUNNING, UNFINISHED, UNREADABLE):
            try:
                page = render(study)
            except StoreError as error:
                shown = study.unreadable(str(error))
            else:
                addresses[study.key] = _address(study, [_INDEX, *addresses.values()])
                check_replaceable(output / addresses[study.key], "-o", PAGE)
                write_atomically(output / addresses[study.key], page, "-o")
        if shown.words == [UNREADABLE]:
            warn(shown.sentences[0])
        published.append(shown)
    return published, addresses


def _address(study: Glance, taken: Sequence[str]) -> str:
    """Returns the file name of a study's page. The name contains a digest if another study has the same name."""
    name = slug(study.name)
    return f"{name}.html" if f"{name}.html" not in taken else f"{name}-{study.key.rpartition('-')[2]}.html"


def _once(studies: Sequence[Glance]) -> Iterator[Glance]:
    """Yields the studies without duplicates: a bundle (a packed study) is left out if the directory of the same study
    is there too."""
    there = {(study.identity, *study.arms) for study in studies if study.identity and not study.is_bundle}
    for study in studies:
        if not (study.is_bundle and (study.identity, *study.arms) in there):
            yield study
