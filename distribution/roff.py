"""Writes manual pages in man's macros."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pgtrial import __version__

_CODE = re.compile(r"`([^`]+)`")


def title(name: str, summary: str) -> list[str]:
    """Returns the head of a page of section 1."""
    return [
        f'.TH {_text(name.upper())} 1 "" "pgtrial {__version__}" "User Commands"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary)}",
    ]


def section(heading: str) -> list[str]:
    """Returns a section, which is named in capitals by custom."""
    return [f'.SH "{_text(heading.upper())}"']


def subsection(heading: str) -> list[str]:
    """Returns the heading of a subsection."""
    return [f'.SS "{_text(heading)}"']


def paragraph(words: str) -> list[str]:
    """Returns a paragraph, whose lines the reader's terminal wraps. The parts between backquotes become bold."""
    return [".PP", prose(words)]


def verbatim(lines: Iterable[str]) -> list[str]:
    """Returns the lines as a block without wrapping."""
    return [".PP", ".nf", *map(_text, lines), ".fi"]


def option(names: str, words: str) -> list[str]:
    """Returns an option with its description."""
    return [".TP", f".B {_text(names)}", prose(words) or "\\&"]


def prose(words: str) -> str:
    """Returns the words of a paragraph, with line breaks where the text has them."""
    lines = [_CODE.sub(r"\\fB\1\\fR", _text(line)) for line in words.splitlines()]
    return "\n.br\n".join(lines)


def page(lines: Iterable[str]) -> str:
    """Returns the text of a page."""
    return "\n".join(lines) + "\n"


def _text(words: str) -> str:
    """Words in which nothing is taken for a macro, an escape or a hyphen that may be typeset."""
    safe = words.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
