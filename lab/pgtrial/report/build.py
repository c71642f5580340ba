"""Writes a study's report: verdict.json, report.md and report.html."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from pgtrial.model.records.results import StudyResult
from pgtrial.report.data import StudyData, read_data
from pgtrial.report.published import beside
from pgtrial.store.directory import StudyDirectory

Form = Literal["md", "html"]


def render(directory: StudyDirectory, form: Form) -> str:
    """The report of a study as one text, Markdown or a page; writes nothing. Raises StoreError."""
    return _writers(read_data(directory))[form]()


def build_report(directory: StudyDirectory) -> StudyResult:
    """Computes the result from the stored trials, writes the report into the study directory, and returns the result.

    The same files give the same report. Raises StoreError.
    """
    data = read_data(directory)
    writers = _writers(data)
    directory.write_file("verdict.json", data.result.model_dump_json(indent=1) + "\n")
    if (published := beside(data)) is not None:
        directory.write_file("published.json", published.model_dump_json(indent=1) + "\n")
    directory.write_file("report.md", writers["md"]())
    directory.write_file("report.html", writers["html"]())
    return data.result


def _writers(data: StudyData) -> dict[Form, Callable[[], str]]:
    # charts and templates of pages take a third of a second to import, which a first trial need not wait for
    from pgtrial.report import html, markdown  # noqa: PLC0415
    from pgtrial.report.sections import sections  # noqa: PLC0415

    parts = sections(data)
    return {"md": partial(markdown.render, data, parts), "html": partial(html.render, data, parts)}
