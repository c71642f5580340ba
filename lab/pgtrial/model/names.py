"""Names as texts: the known one that a mistyped one is nearest to, and one that any filesystem takes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean 'quick'?`, or all known words after `otherwise` where none is near."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(names)}"


def slug(text: str) -> str:
    """A name that any filesystem takes: letters, digits, `.`, `_`, `=` and `-`, at most 40 characters."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-.")[:40] or "arm"
