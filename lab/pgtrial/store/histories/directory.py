"""Keeps histories (the results of commits, one file of JSON lines for each study) in a directory."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgtrial.files.reading import read_bytes
from pgtrial.files.writing import make_directory, open_own
from pgtrial.model.errors import StoreError
from pgtrial.model.records.history import Entry
from pgtrial.store.files import check_listed, reading, write_atomically, writing
from pgtrial.store.histories.lines import SUFFIX, Joined, joined, read_lines

_LOCK = ".lock"


class HistoryDirectory:
    """A directory with a file for each history."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def repository(self) -> Path:
        """The directory of the histories, which may be within the git repository whose commits they are about."""
        return self._path

    def file(self, name: str) -> str:
        """Returns the path of a history's file for messages."""
        return str(self._of(name))

    def names(self) -> list[str]:
        """Returns the sorted names of all histories in the directory. Raises StoreError if the directory does not
        exist."""
        if not self._path.is_dir():
            raise StoreError(f"there is no history in {self._path}; `pgtrial history add BUNDLE` starts one")
        check_listed(self._path)
        paths = (path for path in self._path.iterdir() if path.suffix == SUFFIX and not path.name.startswith("."))
        return sorted(path.stem for path in paths)

    def read(self, name: str) -> bytes:
        """Returns the content of a history's file. Raises StoreError if the file is missing or cannot be read."""
        with reading(self._of(name)):
            return read_bytes(self._of(name))

    def add(self, name: str, entries: Sequence[Entry]) -> Joined:
        """Adds entries to a history, whose file is created if it does not exist. A crash leaves the file as it was.

        Raises StoreError if the file is damaged or cannot be written.
        """
        with self._locked():
            path = self._of(name)
            known = read_lines(self.read(name), self.file(name)) if path.exists() else []
            result = joined(known, entries)
            if result.changes:
                write_atomically(path, result.text, "--in")
        return result

    def _of(self, name: str) -> Path:
        return self._path / f"{name}{SUFFIX}"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A context in which no other pgtrial can add entries to the directory."""
        with writing(self._path, "--in"):
            make_directory(self._path)
            with open(self._path / _LOCK, "a", opener=open_own) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
