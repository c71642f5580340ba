"""Writes a study's report: verdict.json, report.md and report.html."""

from __future__ import annotations

from typing import Literal

from pgtrial.model.records.results import StudyResult
from pgtrial.report import html, markdown
from pgtrial.report.data import read_data
from pgtrial.report.published import beside
from pgtrial.report.sections import sections
from pgtrial.store.directory import StudyDirectory


def render(directory: StudyDirectory, form: Literal["md", "html"]) -> str:
    """The report of a study as one text, Markdown or a page; writes nothing. Raises StoreError."""
    data = read_data(directory)
    return {"md": markdown.render, "html": html.render}[form](data, sections(data))


def build_report(directory: StudyDirectory) -> StudyResult:
    """Computes the result from the stored trials, writes the report into the study directory, and returns the result.

    The same files give the same report. Raises StoreError.
    """
    data = read_data(directory)
    parts = sections(data)
    directory.write_file("verdict.json", data.result.model_dump_json(indent=1) + "\n")
    if (published := beside(data)) is not None:
        directory.write_file("published.json", published.model_dump_json(indent=1) + "\n")
    directory.write_file("report.md", markdown.render(data, parts))
    directory.write_file("report.html", html.render(data, parts))
    return data.result
