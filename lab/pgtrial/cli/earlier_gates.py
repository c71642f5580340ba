"""Finds earlier gates of the same set-ups, both gates that ended and gates that the user stopped. A gate is a
comparison whose exit status decides whether a change passes. This module looks for gates in the results directory, and
in the bundle (the packed study) that the new gate will replace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgtrial.conduct.study_directory import RESULTS, asks_the_same, is_same, same_study
from pgtrial.model.errors import ERROR_STATUS, StoreError, StudyError
from pgtrial.model.records.gate import EarlierGate, GateRecord
from pgtrial.model.study.cut_values import cut
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.report.gate.outcome import Rules, outcome
from pgtrial.report.gate.tries import Tries
from pgtrial.store.bundle import open_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import read_record
from pgtrial.verdict.grid import Grid

OUTCOME = "gate.json"
"""The file with the result of a gate. It lies in the directory of the gate's study, so that it is also in the bundle of
the study."""

_ATTEMPT = "GITHUB_RUN_ATTEMPT"
"""An environment variable of GitHub's runners: the number of this attempt of the workflow run, counted from 1."""


@contextmanager
def bundled_gate(path: Path | None) -> Iterator[StudyDirectory | None]:
    """A context manager that opens the bundle (the packed study) at `path` and yields the study of the gate in it. The
    study can be read until the context ends. Yields None if there is no readable bundle of a gate at `path`."""
    with ExitStack() as stack:
        study = None
        if path is not None and path.is_file() and path.stat().st_size:
            with suppress(StoreError):
                study = stack.enter_context(open_study(path))
        yield study if study is not None and (study.path / OUTCOME).is_file() else None


@dataclass(frozen=True)
class EarlierGates:
    """The gates that compared the same set-ups before a new gate. A gate is a comparison whose exit status decides
    whether a change passes."""

    here: StudyDirectory | None
    """The study in the directory that the user named for the new gate, if a gate has already ended in this directory;
    otherwise None."""
    standing: StudyDirectory | None
    """The oldest study that has a verdict on exactly the same set-ups, load and budget; None if there is no such study.
    The new gate repeats the verdict of this study and measures nothing."""
    known: tuple[EarlierGate, ...]
    """All earlier gates that were found, the oldest first."""

    def tries(self, standing: StudyDirectory | None) -> Tries:
        """Returns the earlier gates, from which the report computes the number of the present try (the third gate of
        the same set-ups is try 3).

        `standing` is an earlier study whose verdict the new gate repeats without measuring. Only gates before that
        study are then returned. If `standing` is None, the new gate measures, and all earlier gates are returned.
        """
        if standing is None:
            return Tries(self.known, attempt=_attempt())
        begun = standing.plan.created
        return Tries(tuple(gate for gate in self.known if gate.created < begun), stands=begun)


def earlier_gates(
    spec: StudySpec, rules: Rules, results: Path | None, bundled: StudyDirectory | None, *, anew: bool
) -> EarlierGates:
    """Returns the gates of the same set-ups that were run before the gate of `spec`, whose directory is `results`.
    `bundled` is the study in the bundle that the new gate will replace.

    A gate that the user stopped counts as an earlier gate, unless the new gate continues it. With `anew` the new gate
    starts from the beginning, so that every stopped gate counts. Raises StoreError if the directory `results` holds
    another study.
    """
    here = _ended_in(spec, results)
    beside = [study for study in _beside(results) if asks_the_same(spec, study.spec)]
    found = [study for study in beside if (study.path / OUTCOME).is_file()]
    if bundled is not None and asks_the_same(cut(spec)[0], bundled.spec):
        found.append(bundled)
    known: dict[str, EarlierGate] = {}
    for study in beside:
        if study not in found and _was_stopped(study) and (anew or not is_same(spec, study.spec)):
            created = study.plan.created
            known[created] = EarlierGate(created=created, status=ERROR_STATUS, stopped=True)
    standing = []
    for study in found:
        try:
            record = read_record(study.path / OUTCOME, GateRecord, "remove it")
            data = read_measured(study)
        except (StoreError, StudyError):
            continue
        created = study.plan.created
        known.update({gate.created: gate for gate in record.earlier})
        known[created] = EarlierGate(created=created, status=record.status)
        # in a bundle, marks replace values that may be secrets, so that it is not known whether these values were the
        # same
        if is_same(spec, study.spec) and outcome(data.result, data.plan, rules).decided:
            standing.append(study)
    return EarlierGates(
        here,
        min(standing, key=lambda study: study.plan.created, default=None),
        tuple(known[created] for created in sorted(known)),
    )


def _ended_in(spec: StudySpec, results: Path | None) -> StudyDirectory | None:
    """Returns the study in the directory `results` if a gate has ended there that compares exactly what `spec` says;
    otherwise None."""
    if results is None or not (results / OUTCOME).is_file():
        return None
    return same_study(spec, results)


def _was_stopped(study: StudyDirectory) -> bool:
    """True if the study belongs to a gate that was stopped after its first complete block. pgtrial had then already
    shown an estimate, so that the user may have stopped the gate because of it. Such a gate therefore counts as a
    try."""
    with suppress(StoreError, StudyError):
        return study.spec.verdict.final and any(Grid(study.plan, study.trials()).counted)
    return False


def _beside(results: Path | None) -> Iterator[StudyDirectory]:
    """Yields the studies that can be read and that may be earlier gates: the studies in results/, and the studies next
    to the directory `results`."""
    folders = {folder.resolve() for folder in (RESULTS, *(() if results is None else (results.absolute().parent,)))}
    for file in sorted(file for folder in folders for file in folder.glob("*/study.toml")):
        with suppress(StoreError, StudyError):
            yield StudyDirectory.open(file.parent)


def _attempt() -> int:
    text = os.environ.get(_ATTEMPT, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else 1
