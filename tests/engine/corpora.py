"""Corpora: directories of TOML files, each of which holds one or more cases for the original and ours."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from pgtrial.loads.target import Target

_Run = TypeVar("_Run")

Database = tuple[Target, psycopg.Connection[tuple[Any, ...]]]
"""A database of the runs, and a connection to it."""


@dataclass(frozen=True)
class CorpusCase:
    """A run of a file, with all that the file says."""

    name: str
    details: dict[str, Any] = field(repr=False)

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.name.partition("-")[0]

    @property
    def words(self) -> list[str]:
        """The words that the original must print."""
        says: str | list[str] = self.details.get("says", [])
        return [says] if isinstance(says, str) else says


def read_corpus(directory: Path, keys: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields name and content of every file, which must have no other keys than these."""
    for path in sorted(directory.glob("*.toml")):
        details = tomllib.loads(path.read_text())
        assert set(details) <= keys, f"{path.name}: {set(details) - keys}"
        yield path.stem, details


def named(file: str, runs: Sequence[_Run]) -> Iterator[tuple[str, _Run]]:
    """Yields the runs of a file with a name for each: that of the file, and a number where there are several."""
    for number, run in enumerate(runs, 1):
        yield file if len(runs) == 1 else f"{file}-{number}", run
