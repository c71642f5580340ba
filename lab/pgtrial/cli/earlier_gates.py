"""The gates of the same set-ups before one, ended or stopped: in the results directory, and in the bundle that it
replaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgtrial.conduct.place import RESULTS, asks_the_same, is_same, same_study
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
"""The file with the result of a gate. It lies in the directory of the gate's study, and so in the bundle of the
study."""

_ATTEMPT = "GITHUB_RUN_ATTEMPT"
"""Environment variable of GitHub's runners: which attempt of its workflow run this is, from 1."""


@contextmanager
def bundled_gate(path: Path | None) -> Iterator[StudyDirectory | None]:
    """Returns a context with the study of the gate whose bundle is at `path`. The study is None if no bundle of a gate
    can be read there."""
    with ExitStack() as stack:
        study = None
        if path is not None and path.is_file() and path.stat().st_size:
            with suppress(StoreError):
                study = stack.enter_context(open_study(path))
        yield study if study is not None and (study.path / OUTCOME).is_file() else None


@dataclass(frozen=True)
class EarlierGates:
    """The gates of the same set-ups that ended before."""

    here: StudyDirectory | None
    """The ended study in the directory that was named for this one."""
    standing: StudyDirectory | None
    """The first study of these very set-ups, load and budget that gave a verdict."""
    known: tuple[EarlierGate, ...]
    """All earlier gates that are known, the oldest first."""

    def tries(self, standing: StudyDirectory | None) -> Tries:
        """Returns which try a gate is: one that measures, or one that repeats what a study has said."""
        if standing is None:
            return Tries(self.known, attempt=_attempt())
        begun = standing.plan.created
        return Tries(tuple(gate for gate in self.known if gate.created < begun), stands=begun)


def earlier_gates(
    spec: StudySpec, rules: Rules, results: Path | None, bundled: StudyDirectory | None, *, anew: bool
) -> EarlierGates:
    """Returns the gates before one of this study in `results`; `bundled` is the study of the bundle that it replaces.

    A gate that was stopped is one of them unless this one goes on with it, which one that begins `anew` does not.
    Raises StoreError if the directory `results` holds another study.
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
        # a bundle has marks in place of values that may be secrets: whether they were the same is not known then
        if is_same(spec, study.spec) and outcome(data.result, data.plan, rules).decided:
            standing.append(study)
    return EarlierGates(
        here,
        min(standing, key=lambda study: study.plan.created, default=None),
        tuple(known[created] for created in sorted(known)),
    )


def _ended_in(spec: StudySpec, results: Path | None) -> StudyDirectory | None:
    """Returns this study if its gate has ended in the directory."""
    if results is None or not (results / OUTCOME).is_file():
        return None
    return same_study(spec, results)


def _was_stopped(study: StudyDirectory) -> bool:
    """True if the study is that of a gate which had measured a block, and so could be seen, before it was stopped."""
    with suppress(StoreError, StudyError):
        return study.spec.verdict.final and any(Grid(study.plan, study.trials()).counted)
    return False


def _beside(results: Path | None) -> Iterator[StudyDirectory]:
    """Yields the studies in results/ and beside the directory of this one."""
    folders = {folder.resolve() for folder in (RESULTS, *(() if results is None else (results.absolute().parent,)))}
    for file in sorted(file for folder in folders for file in folder.glob("*/study.toml")):
        with suppress(StoreError, StudyError):
            yield StudyDirectory.open(file.parent)


def _attempt() -> int:
    text = os.environ.get(_ATTEMPT, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else 1
