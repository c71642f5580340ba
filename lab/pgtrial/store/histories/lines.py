"""The lines of a history's file: reads and checks them, and adds further entries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from pgtrial.model.errors import StoreError
from pgtrial.model.records.history import Entry
from pgtrial.store.files import first_line

SUFFIX = ".jsonl"
_FORMAT = 1


class Joined(NamedTuple):
    """The entries of a file after others were added, with how many of them are new and how many replaced an older
    one."""

    entries: list[Entry]
    new: int
    replaced: int

    @property
    def text(self) -> bytes:
        """Returns the bytes of the whole file."""
        return "".join(f"{entry.model_dump_json()}\n" for entry in self.entries).encode()

    @property
    def changes(self) -> bool:
        """True if the file changes."""
        return bool(self.new or self.replaced)


def read_lines(text: bytes, file: str) -> list[Entry]:
    """Returns the entries of a file, the earliest first; entries of the same moment stay in the order in which they
    were added. Raises StoreError."""
    lines = text.splitlines()
    entries = [_entry(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    return sorted(entries, key=_moment)


def joined(known: Sequence[Entry], entries: Sequence[Entry]) -> Joined:
    """Adds entries to those of a file. An entry replaces that of the same arm of the same study."""
    by_key = {_key(entry): entry for entry in known}
    new = sum(_key(entry) not in by_key for entry in entries)
    replaced = sum(by_key.get(_key(entry), entry) != entry for entry in entries)
    by_key |= {_key(entry): entry for entry in entries}
    return Joined(sorted(by_key.values(), key=_moment), new, replaced)


def _moment(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry.at)


def _key(entry: Entry) -> tuple[str, str]:
    return entry.study, entry.arm


def _entry(line: bytes, where: str) -> Entry:
    try:
        content = from_json(line, allow_inf_nan=False)
        version = content.get("format") if isinstance(content, dict) else None
        if isinstance(version, int) and version > _FORMAT:
            raise StoreError(f"{where} was written by a newer pgtrial (format {version}); upgrade")
        return Entry.model_validate(content)
    except ValueError as error:
        why = first_line(error) if isinstance(error, ValidationError) else "it is not JSON"
        raise StoreError(f"{where} is damaged ({why}); remove the line, and add its bundle again") from error
