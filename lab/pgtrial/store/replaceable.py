"""Files that a command writes anew each time: they replace what the same command wrote before, and no other file."""

from __future__ import annotations

from pathlib import Path

from pgtrial.files.reading import open_file
from pgtrial.model.errors import StudyError
from pgtrial.store.files import reading

_FIRST = 4096
"""Bytes in which the mark of a file stands."""

PAGE = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"
"""What every page of pgtrial has in its head."""


def check_replaceable(path: Path, option: str, *marks: str) -> None:
    """Raise StudyError if something is there that is not empty and has not all of these marks near its beginning."""
    if not path.exists():
        return
    if not path.is_file():
        raise not_replaced(path, option)
    with reading(path), open_file(path) as file:
        head = file.read(_FIRST).decode(errors="replace")
    if head and not all(mark in head for mark in marks):
        raise not_replaced(path, option)


def not_replaced(path: Path, option: str) -> StudyError:
    """Returns the sentence for a file that is somebody's."""
    return StudyError(
        f"{option} {path}: what is there was not written by an earlier pgtrial of this kind, and is not replaced; name "
        "another file, or remove it"
    )
