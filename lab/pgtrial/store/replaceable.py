"""Checks before a command replaces an existing file: it may replace only files that the same command wrote earlier."""

from __future__ import annotations

from pathlib import Path

from pgtrial.files.reading import open_file
from pgtrial.model.errors import StudyError
from pgtrial.store.files import reading

_FIRST = 4096
"""The number of bytes at the beginning of a file that pgtrial searches for the texts by which it recognises its own
files."""

PAGE = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"
"""The beginning of a tag in the head of every HTML page that pgtrial writes, by which pgtrial recognises such a page
before it replaces it."""


def check_replaceable(path: Path, option: str, *marks: str) -> None:
    """Raises StudyError if `path` exists, is not empty, and does not contain all texts in `marks` near its beginning,
    by which a command recognises its own files."""
    if not path.exists():
        return
    if not path.is_file():
        raise not_replaced(path, option)
    with reading(path), open_file(path) as file:
        head = file.read(_FIRST).decode(errors="replace")
    if head and not all(mark in head for mark in marks):
        raise not_replaced(path, option)


def not_replaced(path: Path, option: str) -> StudyError:
    """Returns the error for an existing file that pgtrial did not write and therefore does not replace."""
    return StudyError(
        f"{option} {path}: pgtrial does not replace the existing file, because an earlier run of this command did not "
        "write it; name another file, or remove it"
    )
