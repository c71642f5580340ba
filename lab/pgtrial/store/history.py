"""Histories on disk: a directory with a file of JSON lines for each study, one line for each commit."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from pgtrial.model.errors import StoreError
from pgtrial.model.records.history import Entry
from pgtrial.store.files import check_listed, first_line, reading, write_atomically, writing

SUFFIX = ".jsonl"
_FORMAT = 1
_LOCK = ".lock"


def histories(directory: Path) -> list[Path]:
    """The files of a directory, by name. Raises StoreError if it is not there."""
    if not directory.is_dir():
        raise StoreError(f"there is no history in {directory}; `pgtrial history add BUNDLE` begins one")
    check_listed(directory)
    return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))


def read_history(path: Path) -> list[Entry]:
    """The entries of a file, the earliest first; entries of one moment as they were added. Raises StoreError."""
    with reading(path):
        lines = path.read_bytes().splitlines()
    entries = [_entry(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return sorted(entries, key=_moment)


def add_entries(path: Path, entries: Sequence[Entry]) -> tuple[int, int]:
    """Add entries to a file, which is made if it is not there; returns how many are new, and how many replace others.

    The entry of the same arm of the same study is replaced. A crash leaves the file as it was. Raises StoreError.
    """
    with _locked(path.parent):
        known = read_history(path) if path.exists() else []
        by_key = {_key(entry): entry for entry in known}
        new = [entry for entry in entries if _key(entry) not in by_key]
        other = [entry for entry in entries if by_key.get(_key(entry), entry) != entry]
        if new or other:
            by_key |= {_key(entry): entry for entry in entries}
            ordered = sorted(by_key.values(), key=_moment)
            write_atomically(path, "".join(f"{entry.model_dump_json()}\n" for entry in ordered))
    return len(new), len(other)


def _moment(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry.at)


def _key(entry: Entry) -> tuple[str, str]:
    return entry.study, entry.arm


def _entry(path: Path, number: int, line: bytes) -> Entry:
    where = f"{path}, line {number}"
    try:
        content = from_json(line)
        version = content.get("format") if isinstance(content, dict) else None
        if isinstance(version, int) and version > _FORMAT:
            raise StoreError(f"{where} was written by a newer pgtrial (format {version}); upgrade")
        return Entry.model_validate(content)
    except ValueError as error:
        why = first_line(error) if isinstance(error, ValidationError) else "it is no JSON"
        raise StoreError(f"{where} is damaged ({why}); remove the line, and add its bundle again") from error


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Until the block ends, no other pgtrial adds to the directory."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / _LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
