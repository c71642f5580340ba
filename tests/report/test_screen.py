"""The report of a screening study: its factors come first, and nothing compares the two arms of its blocks."""

from __future__ import annotations

import re

from rich.console import Console

from pgtrial.cli.verdict import in_full, in_short
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.report.sections import draw, sections
from pgtrial.report.what_ran import what_ran

from .conftest import Studies


def test_the_page_shows_a_bar_with_its_interval_for_each_factor(reports: Studies):
    data = read_data(reports("screening"))
    (figure,) = draw("factors", data)
    assert figure.alt.startswith(
        "The effect of each factor, margin 1%. shared_buffers=1GB against shared_buffers=128MB: "
    )
    for name in ("jit=off", "work_mem=64MB", "wal_compression=pglz"):
        assert f"{name} against" in figure.alt
    rows = figure.spec["datasets"]["rows1"]
    assert rows[0]["verdict"] == "better"
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


def test_sections_that_compare_arms_are_left_out(reports: Studies):
    keys = [section.topic.key for section in sections(read_data(reports("screening")))]
    assert keys[0] == "factors"
    assert set(keys) <= {"factors", "facts", "failures", "method", "trials"}


def test_the_reports_name_the_factors_their_levels_and_the_pairs(reports: Studies):
    page = (reports("screening").path / "report.html").read_text()
    text = (reports("screening").path / "report.md").read_text()
    for part in (page, text):
        assert re.search(r"shared_buffers=1GB is [\d.]+% faster than shared_buffers=128MB", part.replace("\\", ""))
        assert "Pairs of factors that seem to interact" in part
    assert re.search(r"shared_buffers=(128MB|1GB), jit=(on|off), work_mem=", page)
    assert "for each block a coin chose the level of each factor" in page


def test_the_mail_begins_with_the_levels_and_not_with_the_arms_that_drew_them(reports: Studies):
    settings = list(what_ran(read_data(reports("screening"))))[-1]
    assert settings.startswith("settings: shared_buffers = 128MB or 1GB, jit = on or off, work_mem = 4MB or 64MB")


def test_the_terminal_has_a_headline_for_each_factor_that_matters_and_a_table_of_all(reports: Studies):
    data = read_data(reports("screening"))
    console = Console(width=120, record=True, file=None)
    with console.capture() as capture:
        console.print(in_short(brief(data.result, data.plan)))
        console.print(in_full(data.result))
    printed = capture.get()
    assert re.search(r"BETTER  shared_buffers=1GB is [\d.]+% faster than shared_buffers=128MB", printed)
    assert re.search(r"a hint +jit=off has a further effect of \+\d+% with work_mem=64MB", printed)
    assert re.search(r"wal_compression +off or pglz +[+-]", printed)
