"""Reads the numbers of a job from the output of its program, or from files that the program wrote, after the program
has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgtrial.files.reading import read_text
from pgtrial.loads.printed_numbers import number_in
from pgtrial.model import marks
from pgtrial.model.errors import TrialError
from pgtrial.model.study.own_metrics import JobRead

Stamp = tuple[int, int, int]
"""The inode, the length and the modification time of a file. At least one of the three changes when a program writes
the file."""


class JobReads:
    """Reads the numbers of one run of a job. The object must be created before the program starts: it records when each
    file was last written, so that an old file, which the program did not write in this run, is not taken for its
    result."""

    def __init__(self, reads: Mapping[str, JobRead]) -> None:
        self._reads = reads
        self._before = {read.file: _stamp(read.file) for read in reads.values() if read.file is not None}

    def numbers(self, output: str, program: str) -> dict[str, float]:
        """Returns the numbers by name. `output` is the text that the program printed. Raises TrialError if a number
        cannot be read."""
        numbers = {}
        for name, read in self._reads.items():
            text = output if read.file is None else self._written(read.file, name, program)
            who = program if read.file is None else f"{read.file} of {program}"
            numbers[name] = number_in(text, read, name, who)
        return numbers

    def _written(self, file: str, name: str, program: str) -> str:
        now = _stamp(file)
        if now is None or now == self._before[file]:
            has = "the file does not exist" if now is None else "the file is older than the trial"
            raise TrialError(
                f"{program} did not write {file} in this trial, from which {name} is read ({has}); correct the "
                f"command, or {marks.key('load.job', 'reads')}"
            )
        try:
            return read_text(Path(file), errors="replace")
        except OSError as error:
            raise TrialError(f"cannot read {file}, from which {name} is read: {error.strerror}") from None


def _stamp(file: str) -> Stamp | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
