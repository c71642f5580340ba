"""Reads and checks the lines of a history's file, and adds entries to those that the file has."""

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
    """All entries of a history after some were added. `new` is the number of entries that were added, and `replaced`
    the number of entries that replaced an older entry."""

    entries: list[Entry]
    new: int
    replaced: int

    @property
    def text(self) -> bytes:
        """The content of the whole file."""
        return "".join(f"{entry.model_dump_json()}\n" for entry in self.entries).encode()

    @property
    def changes(self) -> bool:
        """True if the added entries change the file."""
        return bool(self.new or self.replaced)


def read_lines(text: bytes, file: str) -> list[Entry]:
    """Returns the entries in a history's file, the earliest first. Entries of the same time stay in the order in which
    they were added. `file` is the name of the file in messages. Raises StoreError if a line is not a valid entry."""
    lines = text.splitlines()
    entries = [_entry(line, f"{file}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    return sorted(entries, key=_moment)


def joined(known: Sequence[Entry], entries: Sequence[Entry]) -> Joined:
    """Adds `entries` to the entries in `known`, those that a history has already. An entry replaces an earlier entry
    with the same study and arm."""
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
            raise StoreError(f"{where} was written by a newer pgtrial (format {version}); upgrade pgtrial")
        return Entry.model_validate(content)
    except ValueError as error:
        why = first_line(error) if isinstance(error, ValidationError) else "it is not JSON"
        raise StoreError(
            f"{where} is damaged ({why}); remove the line, and add its bundle again with `pgtrial history add`"
        ) from error
