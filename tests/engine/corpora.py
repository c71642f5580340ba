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
    """One run that a corpus file describes, with the whole content of the file."""

    name: str
    details: dict[str, Any] = field(repr=False)

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.name.partition("-")[0]

    @property
    def words(self) -> list[str]:
        """The texts that the original's output must contain."""
        says: str | list[str] = self.details.get("says", [])
        return [says] if isinstance(says, str) else says


def read_corpus(directory: Path, keys: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name and the content of each corpus file; a file must have no keys other than these."""
    for path in sorted(directory.glob("*.toml")):
        details = tomllib.loads(path.read_text())
        assert set(details) <= keys, f"{path.name}: {set(details) - keys}"
        yield path.stem, details


def named(file: str, runs: Sequence[_Run]) -> Iterator[tuple[str, _Run]]:
    """Yields the runs of a corpus file with their names: the name of the file, with a number added if the file has
    several runs.
    """
    for number, run in enumerate(runs, 1):
        yield file if len(runs) == 1 else f"{file}-{number}", run
