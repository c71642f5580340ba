"""Finds earlier gates of the same set-ups, both gates that ended and gates that the user stopped. A gate is a
comparison whose exit status decides whether a change passes. This module looks for gates in the results directory, and
in the bundle (the packed study, or studies) that the new gate will replace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from pgtrial.store.directory import STUDIES, StudyDirectory
from pgtrial.store.files import record_at
from pgtrial.store.gate_bundle import is_gate, open_gate
from pgtrial.store.gate_directory import OUTCOME, GateDirectory
from pgtrial.verdict.grid import Grid

_ATTEMPT = "GITHUB_RUN_ATTEMPT"
"""An environment variable of GitHub's runners: the number of this attempt of the workflow run, counted from 1."""


@dataclass(frozen=True)
class Bundled:
    """The content of the bundle of an earlier gate; empty if there is none."""

    studies: Sequence[StudyDirectory] = ()
    """The studies of the gate: a single one, or those that had begun of a gate of several studies."""
    gate: GateDirectory | None = None
    """The gate in the bundle if it has several studies; otherwise None."""


@contextmanager
def bundled_studies(path: Path | None) -> Iterator[Bundled]:
    """A context manager that opens the bundle at `path` and yields its content. The studies can be read until the
    context ends. If there is no readable bundle of a gate at `path`, the content is empty."""
    with ExitStack() as stack:
        content = Bundled()
        if path is not None and path.is_file() and path.stat().st_size:
            with suppress(StoreError):
                if is_gate(path):
                    gate = stack.enter_context(open_gate(path))
                    content = Bundled(gate.studies(), gate)
                else:
                    study = stack.enter_context(open_study(path))
                    content = Bundled([study] if (study.path / OUTCOME).is_file() else [])
        yield content


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
        return tries_before(self.known, None if standing is None else standing.plan.created)


def tries_before(known: Sequence[EarlierGate], begun: str | None) -> Tries:
    """Returns the tries of which the present gate is the last one. `begun` is the time at which the gate began whose
    verdict the present one repeats; None if the present gate measures."""
    if begun is None:
        return Tries(tuple(known), attempt=_attempt())
    return Tries(tuple(gate for gate in known if gate.created < begun), stands=begun)


def earlier_gates(
    spec: StudySpec, rules: Rules, results: Path | None, bundled: Sequence[StudyDirectory], *, anew: bool
) -> EarlierGates:
    """Returns the gates of the same set-ups that were run before the gate of `spec`, whose directory is `results`.
    `bundled` has the studies in the bundle that the new gate will replace.

    A gate that the user stopped counts as an earlier gate, unless the new gate continues it. With `anew` the new gate
    starts from the beginning, so that every stopped gate counts. Raises StoreError if the directory `results` holds
    another study.
    """
    here = _ended_in(spec, results)
    known: dict[str, EarlierGate] = {}
    standing = []
    for past in [*_beside(results), *(_Past(study, None, bundled=True) for study in bundled)]:
        ours = cut(spec)[0] if past.bundled else spec
        if not asks_the_same(ours, past.study.spec):
            continue
        # in a bundle, marks replace values that may be secrets, so that it is not known whether these values were the
        # same
        same = is_same(spec, past.study.spec)
        try:
            known |= past.tries(continued=same and not anew)
            if past.gate is None and past.ended and same:
                data = read_measured(past.study)
                if outcome(data.result, data.plan, rules).decided:
                    standing.append(past.study)
        except (StoreError, StudyError):
            continue
    return EarlierGates(
        here,
        min(standing, key=lambda study: study.plan.created, default=None),
        tuple(known[created] for created in sorted(known)),
    )


def tries_of_studies(
    specs: Sequence[StudySpec], results: Path | None, bundled: Bundled, *, continued: Path | None
) -> tuple[EarlierGate, ...]:
    """Returns the earlier gates of at least one of these studies, the oldest first. The gate in the directory
    `continued` is not an earlier one, since the new gate continues it."""
    known: dict[str, EarlierGate] = {}
    of_bundle = [_Past(study, bundled.gate, bundled=True) for study in bundled.studies]
    for past in [*_beside(results), *of_bundle]:
        if continued is not None and past.gate is not None and past.gate.path.resolve() == continued.resolve():
            continue
        if any(asks_the_same(cut(spec)[0] if past.bundled else spec, past.study.spec) for spec in specs):
            with suppress(StoreError, StudyError):
                known |= past.tries(continued=False)
    return tuple(known[created] for created in sorted(known))


@dataclass(frozen=True)
class _Past:
    """A study that may belong to an earlier gate."""

    study: StudyDirectory
    gate: GateDirectory | None
    """The gate to which the study belongs, if this gate has several studies; otherwise None."""
    bundled: bool = False
    """True if the study comes from a bundle."""

    @property
    def ended(self) -> bool:
        """True if the gate has ended."""
        return (self._path / OUTCOME).is_file()

    @property
    def _path(self) -> Path:
        return self.study.path if self.gate is None else self.gate.path

    def tries(self, *, continued: bool) -> dict[str, EarlierGate]:
        """Returns the gate and the gates before it, by the times at which they began. A gate that was stopped counts
        unless it is `continued`. Raises StoreError."""
        created = self.study.plan.created if self.gate is None else self.gate.record.created
        record = record_at(self._path / OUTCOME, GateRecord, "remove it")
        if record is None:
            if continued or not _was_stopped(self.study):
                return {}
            return {created: EarlierGate(created=created, status=ERROR_STATUS, stopped=True)}
        before = {gate.created: gate for gate in record.earlier}
        return {**before, created: EarlierGate(created=created, status=record.status)}


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
    return study.spec.verdict.final and any(Grid(study.plan, study.trials()).counted)


def _beside(results: Path | None) -> Iterator[_Past]:
    """Yields the studies that can be read and that may be earlier gates: the studies in results/, and the studies next
    to the directory `results`, and the studies of gates there that have several."""
    for file in sorted(file for folder in _folders(results) for file in folder.glob("*/study.toml")):
        with suppress(StoreError, StudyError):
            yield _Past(StudyDirectory.open(file.parent), None)
    for gate in gates_beside(results):
        for study in gate.record.studies:
            with suppress(StoreError, StudyError):
                if (begun := gate.begun(study)) is not None:
                    yield _Past(begun, gate)


def gates_beside(results: Path | None) -> Iterator[GateDirectory]:
    """Yields the gates of several studies in results/ and next to the directory `results`, in the order of their
    paths."""
    for file in sorted(file for folder in _folders(results) for file in folder.glob(f"*/{STUDIES}")):
        with suppress(StoreError):
            yield GateDirectory.open(file.parent)


def _folders(results: Path | None) -> list[Path]:
    """Returns results/ and the directory in which the directory `results` lies; if both are the same, only one."""
    beside = [RESULTS] if results is None else [RESULTS, results.absolute().parent]
    return list({folder.resolve(): folder for folder in reversed(beside)}.values())


def _attempt() -> int:
    text = os.environ.get(_ATTEMPT, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else 1
