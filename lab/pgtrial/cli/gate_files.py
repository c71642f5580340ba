"""The files that `pgtrial gate` writes: a summary in Markdown, JUnit XML and a bundle."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pgtrial.cli.output import warn
from pgtrial.files.writing import open_own
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.store.bundle import open_study
from pgtrial.store.files import check_safe_to_write, new_file, write_atomically
from pgtrial.store.gate_bundle import is_gate
from pgtrial.store.gate_directory import OUTCOME
from pgtrial.store.replaceable import check_replaceable, not_replaced

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""An environment variable of GitHub's runners: the path of a file to which a step appends its summary in Markdown."""

_MARKS = {"--summary": ("### pgtrial gate: ",), "--junit": ('package="pgtrial"', 'name="pgtrial gate"')}
"""For each option, texts that stand near the beginning of every file that a gate writes for this option. A file without
them was not written by a gate."""


@dataclass(frozen=True)
class Files:
    """The files that `pgtrial gate` writes. Those that the user has not named are None."""

    summary: Path | None = None
    junit: Path | None = None
    bundle: Path | None = None

    def check(self) -> None:
        """Raises StudyError for a file that cannot be written, or that exists and was not written by a gate. The
        command calls this method before it measures, so that the user learns of the error at once and not after ten
        minutes of load."""
        for option, path in self._given.items():
            if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
                raise StudyError(
                    f"{option} {path} cannot be written; name a file in an existing directory to which you may write"
                )
            check_safe_to_write(path.parent, option)
            if option == "--bundle":
                _check_bundle(path)
            else:
                check_replaceable(path, option, *_MARKS[option])

    def remove(self) -> None:
        """Removes the files of an earlier gate, since a reader could take them for the results of this gate."""
        for path in self._given.values():
            path.unlink(missing_ok=True)

    @property
    def _given(self) -> dict[str, Path]:
        named = [("--summary", self.summary), ("--junit", self.junit), ("--bundle", self.bundle)]
        return {option: path for option, path in named if path is not None}

    def write_bundle(self, write: Callable[[BinaryIO], object]) -> None:
        """Writes the bundle, if the user has named one. `write` writes its content. Raises StoreError."""
        if self.bundle is not None:
            with new_file(self.bundle, "--bundle", replace=True) as new:
                write(new.file)

    def write(self, summary: str, junit: str) -> None:
        """Writes the summary and the JUnit file, as far as the user has named them, and appends the summary to the file
        of GitHub's runner. Raises StoreError."""
        if self.summary is not None:
            write_atomically(self.summary, summary, "--summary")
        if self.junit is not None:
            write_atomically(self.junit, junit, "--junit")
        if (step := os.environ.get(_STEP_SUMMARY)) is not None:
            try:
                with open(step, "a", encoding="utf-8", opener=open_own) as file:
                    file.write(f"{summary}\n")
            except OSError as error:
                warn(
                    f"the summary could not be appended to the file of {_STEP_SUMMARY}={step}: "
                    f"{error.strerror or error}"
                )


def _check_bundle(path: Path) -> None:
    """Raises StudyError if there is a file or directory at `path` that is not the bundle of a gate."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    if path.is_file():
        if is_gate(path):
            return
        with suppress(StoreError), open_study(path, head=True) as study:
            if (study.path / OUTCOME).is_file():
                return
    raise not_replaced(path, "--bundle")
