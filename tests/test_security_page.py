"""SECURITY.md names tests that there are, one or more for each input."""

from __future__ import annotations

import re

from tests.test_reliability_page import ROOT, functions_of

PAGE = (ROOT / "SECURITY.md").read_text()
INPUTS = ("study file", "data", "bundle", "given server", "log", "history", "repository", "comment", "environment")


def rows() -> list[list[str]]:
    """Returns the cells of each row of the table, without its head."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_names_a_test_that_is_there():
    assert rows()
    for row in rows():
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[-1])
        assert named, row[0]
        assert [f"{file}::{name}" for file, name in named if name not in functions_of(ROOT / file)] == []


def test_each_kind_of_input_has_a_row_with_an_answer():
    inputs = [row[0].lower() for row in rows()]
    assert [kind for kind in INPUTS if not any(kind in name for name in inputs)] == []
    assert [row[0] for row in rows() if len(row) != 5 or not row[1] or not row[3]] == []
