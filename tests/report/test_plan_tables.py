"""The plans in the report: their indentation is kept in every form."""

from __future__ import annotations

from pgtrial.report.markdown import table_lines
from pgtrial.report.tables.plans import side_by_side

PLAN = ["Sort", "  Sort Key: a_b", "  ->  Seq Scan on t", "        Filter: (note = '```'::text)"]


def test_markdown_keeps_the_indentation_of_both_plans():
    lines = "\n".join(table_lines(side_by_side("Plans of one", ("off_1", "on"), (PLAN, ["Result"])))).splitlines()
    shown = ["Plans of one", "off\\_1:", "````", *PLAN, "````", "on:", "```", "Result", "```"]
    assert [line for line in lines if line] == shown


def test_a_line_cannot_end_the_block_it_stands_in():
    text = "\n".join(table_lines(side_by_side("", ("a", "b"), (["````", "x"], ["\x1b[31m"]))))
    assert "`````\n````\nx\n`````" in text
    assert "\x1b" not in text
