"""Texts of users look in messages as they have written them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pgtrial
from pgtrial.model.quoting import quoted

SOURCES = Path(pgtrial.__file__).parent


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (r"NOPM=(\d+)", r"'NOPM=(\d+)'"),
        (r"C:\data", r"'C:\data'"),
        ("two\nlines\x1b[1m\udc80", r"'two\nlines\x1b[1m\udc80'"),
        ("it's", '"it\'s"'),
        ("Größe", "'Größe'"),
        ("", "''"),
        (5, "5"),
        (None, "None"),
    ],
)
def test_a_text_is_quoted_as_it_is_except_for_control_characters(value, shown):
    assert quoted(value) == shown


def test_no_message_quotes_a_text_as_python_would():
    """Python doubles the backslashes of a text. The one message for programmers is that of a missing attribute."""
    texts = {path: path.read_text() for path in sorted(SOURCES.rglob("*.py"))}
    found = [line for text in texts.values() for line in text.splitlines() if re.search(r"!r\}", line)]
    assert [line.strip() for line in found] == ["raise AttributeError(f\"module 'pgtrial' has no attribute {name!r}\")"]
