"""The known word that a mistyped one is nearest to, for the error that names it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean 'quick'?`, or all known words after `otherwise` where none is near."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(names)}"
