"""The sentences of a Markdown page, as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])[)\"'*_`]*\s+")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def sentences(page: str) -> Iterator[str]:
    """Those of paragraphs and list items; code blocks, tables, headings and pictures have none."""
    for paragraph in _paragraphs(page):
        yield from _END.split(_LINK.sub(r"\1", paragraph))


def words(sentence: str) -> list[str]:
    """What has a letter or a digit; a code span is one word."""
    return [word for word in re.sub(r"`[^`]*`", "code", sentence).split() if re.search(r"\w", word)]


def _paragraphs(page: str) -> Iterator[str]:
    lines: list[str] = []
    in_code = False
    for line in [*page.splitlines(), ""]:
        fence = line.lstrip().startswith("```")
        outside = fence or in_code or not line.strip() or line.lstrip().startswith(("|", "#", "!", "<"))
        in_code ^= fence
        item = _ITEM.match(line)
        if lines and (outside or item):
            yield " ".join(lines)
            lines = []
        if not outside:
            lines.append(line[item.end() if item else 0 :].strip())
