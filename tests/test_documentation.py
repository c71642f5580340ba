"""Tests that a page of the documentation begins by saying for whom it is, and shows an example early."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "examples" not in path.parts
}
OTHERWISE = ("README.md", "docs/index.md", "docs/decisions/")
"""The pages and folders to which the rules for the beginning of a page do not apply."""


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith(OTHERWISE)])
def test_a_page_begins_with_its_readers(name):
    assert re.match(r"# .+\n+For ", PAGES[name])


@pytest.mark.parametrize("name", [name for name in PAGES if name.count("/") == 1 and not name.startswith(OTHERWISE)])
def test_a_page_has_an_example_before_its_first_part(name):
    """But for tutorials, which are examples, and tables of evidence."""
    assert "```" in re.split(r"^## ", PAGES[name], maxsplit=1, flags=re.MULTILINE)[0]
