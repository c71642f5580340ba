"""Reading the kernel's small text files; what is not there is None."""

from __future__ import annotations

import re
from pathlib import Path


def read(path: str | Path) -> str | None:
    """The text without surrounding space, or None."""
    try:
        return Path(path).read_text(errors="replace").strip() or None
    except OSError:
        return None


def chosen(path: str | Path) -> str | None:
    """The word in brackets of a kernel switch: `always [madvise] never` is madvise."""
    text = read(path)
    if text is None:
        return None
    found = re.search(r"\[([^]]+)\]", text)
    return found[1] if found else text


def fields(path: str | Path) -> dict[str, str]:
    """`name: value` lines; of a repeated name the first."""
    found: dict[str, str] = {}
    for line in (read(path) or "").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found
