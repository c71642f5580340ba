"""Checks for files that a command writes again each time: they replace what the same command wrote before, and no other
file."""

from __future__ import annotations

from pathlib import Path

from pgtrial.files.reading import open_file
from pgtrial.model.errors import StudyError
from pgtrial.store.files import reading

_FIRST = 4096
"""The number of bytes at the beginning of a file that must contain its marks."""

PAGE = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"
"""The beginning of a tag that every HTML page of pgtrial has in its head."""


def check_replaceable(path: Path, option: str, *marks: str) -> None:
    """Raises StudyError if `path` exists, is not empty, and does not have all of these marks near its beginning."""
    if not path.exists():
        return
    if not path.is_file():
        raise not_replaced(path, option)
    with reading(path), open_file(path) as file:
        head = file.read(_FIRST).decode(errors="replace")
    if head and not all(mark in head for mark in marks):
        raise not_replaced(path, option)


def not_replaced(path: Path, option: str) -> StudyError:
    """Returns the error for a file that pgtrial did not write, and does not replace."""
    return StudyError(
        f"{option} {path}: the existing file was not written by an earlier pgtrial of this kind, and is not replaced; "
        "name another file, or remove it"
    )
