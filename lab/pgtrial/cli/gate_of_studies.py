"""Runs a gate of several studies: one after the other, with one budget and one error of 5% for all, and with one result
and one exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

import pgtrial
from pgtrial.cli.conduct import Conclusion, start
from pgtrial.cli.earlier_gates import Bundled, gates_beside, tries_before, tries_of_studies
from pgtrial.cli.gate_files import Files
from pgtrial.cli.gated_study import (
    STOPPED,
    details,
    end_too_short,
    ended_study,
    in_json,
    in_options,
    in_text,
    junit_of,
    rules_for,
    write_error,
    write_outcome,
)
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import json_line, print_message
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.trust import warn_of_cut_values
from pgtrial.conduct.planning.stopping import time_spent
from pgtrial.conduct.shared_budget import shares, time_for
from pgtrial.conduct.study_directory import RESULTS, fresh_path
from pgtrial.model import marks
from pgtrial.model.errors import ERROR_STATUS, BudgetError, PgtrialError, StoreError, StudyError
from pgtrial.model.records.gate import GatedStudy, GateOfStudies
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration
from pgtrial.report.build import build_report
from pgtrial.report.gate.junit import Case
from pgtrial.report.gate.outcome import Outcome, Rules
from pgtrial.report.gate.studies import GatedResult, outcome_of_studies, summary_of_studies
from pgtrial.report.gate.tries import Tries
from pgtrial.store.directory import STUDIES, StudyDirectory
from pgtrial.store.files import check_safe_to_write
from pgtrial.store.gate_bundle import write_gate_bundle
from pgtrial.store.gate_directory import GateDirectory, digest_of, directory_for
from pgtrial.store.running import locked


def run_gate_of_studies(
    specs: Mapping[str, StudySpec],
    budget_s: float | None,
    rules: Rules,
    files: Files,
    results: Path | None,
    *,
    anew: bool,
    as_json: bool,
    bundled: Bundled,
) -> int:
    """Runs the studies of a gate, given by their names, writes the files of the gate, and returns the exit status.

    `budget_s` is the time of all studies together in seconds; None for the sum of their budgets. `results` is the
    directory of the gate. An unfinished gate of the same studies is continued, and one that has a verdict is repeated,
    unless `anew` is true. `bundled` is the content of the bundle of an earlier gate. Raises PgtrialError if the gate
    cannot begin.
    """
    total_s = sum(spec.verdict.budget for spec in specs.values()) if budget_s is None else budget_s
    arms = list(next(iter(specs.values())).arms)
    try:
        gated = [
            _Gated(name, spec.with_verdict(budget=total_s), rules_for(spec, rules))
            for name, spec in _sharing_the_error(specs).items()
        ]
        gate, tries = _find(gated, total_s, results, bundled, anew=anew)
        run = _Run(gate, gated, arms, files, tries, as_json=as_json)
        return run.repeat() if tries.stands is not None else run.run()
    except BudgetError as error:
        return end_too_short(files, in_options(f"{error}"), arms)
    except PgtrialError as error:
        write_error(files, error, arms)
        raise


@dataclass(frozen=True)
class _Gated:
    """A study as the gate's file and options give it."""

    name: str
    spec: StudySpec
    """The study with the budget of the whole gate."""
    rules: Rules


def _sharing_the_error(specs: Mapping[str, StudySpec]) -> dict[str, StudySpec]:
    """Returns the studies changed so that all their claims together share the error of 5%. Raises StudyError if two of
    them have the same seed, since the order of one would then follow from that of the other."""
    seeds: dict[int, str] = {}
    questions = [spec.study.question for spec in specs.values()]
    changed = {}
    for name, spec in specs.items():
        section = spec.study
        if (seed := section.seed) is not None and (other := seeds.setdefault(seed, name)) != name:
            raise StudyError(
                f"{other} and {name} have the same seed ({marks.key('study', 'seed')} = {seed}), and the random orders "
                "of a gate's studies must not follow from each other; leave it out of one of them"
            )
        if questions.count(section.question) > 1:
            section = section.model_copy(update={"question": f"{name}: {section.question}"})
        sharing = spec.with_verdict(studies=max(len(specs), spec.verdict.studies or 1))
        changed[name] = sharing.model_copy(update={"study": section})
    return changed


def _find(
    gated: Sequence[_Gated], budget_s: float, results: Path | None, bundled: Bundled, *, anew: bool
) -> tuple[GateDirectory, Tries]:
    """Returns the directory of the gate, and the earlier tries. It is that of an earlier gate whose verdict stands, or
    of an unfinished gate of the same studies that is continued, or a new one.

    Raises StoreError if `results` has something else than this gate, and BudgetError if the budget is too short.
    """
    asked, specs = [digest_of(study.spec) for study in gated], [study.spec for study in gated]
    here = GateDirectory.open(results) if results is not None and (results / STUDIES).is_file() else None
    if here is not None and not here.record.asks(asked, budget_s):
        raise StoreError(f"{here.path} has another gate than the one to run; choose another directory with --results")
    alike = [gate for gate in gates_beside(results) if gate.record.asks(asked, budget_s)]
    from_bundle = [bundled.gate] if bundled.gate is not None and bundled.gate.record.asks(asked, budget_s) else []
    possible = [here] if here is not None else [] if anew else [*alike, *from_bundle]
    standing = [gate for gate in possible if _stands(gate, gated, ended_here=gate is here)]
    if standing:
        chosen = min(standing, key=lambda gate: gate.record.created)
        known = tries_of_studies(specs, results, bundled, continued=None)
        return chosen, tries_before(known, chosen.record.created)
    unfinished = [gate for gate in alike if gate.outcome() is None] if results is None and not anew else []
    going_on = here or max(unfinished, key=lambda gate: gate.record.created, default=None)
    known = tries_of_studies(specs, results, bundled, continued=going_on.path if going_on is not None else None)
    if going_on is not None:
        print_message(f"going on with the gate in {going_on.path}")
        return going_on, tries_before(known, None)
    check_safe_to_write(results or RESULTS)
    record = _planned(gated, asked, budget_s)
    return GateDirectory.create(results or fresh_path("gate"), record), tries_before(known, None)


def _planned(gated: Sequence[_Gated], asked: Sequence[str], budget_s: float) -> GateOfStudies:
    """Returns the plan of a gate that begins now. `asked` has the digests of its studies. Raises BudgetError if the
    budget is too short."""
    of_each = zip(gated, shares({study.name: study.spec for study in gated}, budget_s), asked, strict=True)
    return GateOfStudies(
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        pgtrial=pgtrial.__version__,
        budget_s=budget_s,
        studies=[
            GatedStudy(name=study.name, directory=directory_for(number, study.name), share_s=share_s, asked=digest)
            for number, (study, share_s, digest) in enumerate(of_each, start=1)
        ],
    )


def _stands(gate: GateDirectory, gated: Sequence[_Gated], *, ended_here: bool) -> bool:
    """True if a gate has ended and has a verdict that a new gate of the same studies repeats. In the directory that the
    user has named (`ended_here`), each result is repeated. A damaged gate does not stand."""
    with suppress(StoreError, StudyError):
        if gate.outcome() is not None:
            return ended_here or outcome_of_studies(list(_ended_results(gate, gated))).decided
    return False


def _ended_results(gate: GateDirectory, gated: Sequence[_Gated]) -> Iterator[GatedResult]:
    """Yields the results of the studies of a gate that have ended. Raises StoreError."""
    for study, ours in zip(gate.record.studies, gated, strict=True):
        if gate.ended(study) and (begun := gate.begun(study)) is not None:
            ended = ended_study(begun, ours.rules)
            yield GatedResult(study.name, ended.of_gate, ended.data)


@dataclass
class _Run:
    """One run of a gate of several studies, from its directory to its files and its exit status."""

    gate: GateDirectory
    gated: Sequence[_Gated]
    arms: Sequence[str]
    files: Files
    tries: Tries
    as_json: bool
    results: dict[str, GatedResult] = field(default_factory=dict)

    def run(self) -> int:
        """Runs the studies that have not ended, writes the files of the gate, and returns the exit status. Raises
        StoreError if another process runs this gate."""
        with locked(self.gate.path):
            return self._run_locked()

    def _run_locked(self) -> int:
        self._read_ended()
        for number, (study, ours) in enumerate(zip(self.gate.record.studies, self.gated, strict=True), start=1):
            if study.name in self.results:
                continue
            status = self._run_study(number, study, ours)
            if study.name not in self.results:
                # a signal has ended the study
                self._write_stopped()
                return status
        return self._end()

    def repeat(self) -> int:
        """Writes the files of a gate that already has its verdict, and returns the exit status."""
        self._read_ended()
        return self._end()

    def _read_ended(self) -> None:
        self.results = {result.name: result for result in _ended_results(self.gate, self.gated)}

    def _run_study(self, number: int, study: GatedStudy, ours: _Gated) -> int:
        """Runs one study, or continues it, and returns the exit status. An error of the study is its result, and the
        gate goes on with the next study."""
        begun = self.gate.begun(study)
        budget_s = time_for(self.gate, study) if begun is None else begun.spec.verdict.budget
        of_all = f"study {number} of {len(self.gated)}"
        print_message(f"{of_all}: {study.name}, {format_duration(round(budget_s))} for its blocks")
        try:
            return start(
                ours.spec.with_verdict(budget=budget_s),
                self.gate.path_of(study),
                conclude=partial(self._conclude, study, ours.rules),
                console=self._console,
                reword=in_options,
                again=lambda _: same_command(self.gate.path),
            )
        except BudgetError as error:
            share = f"the gate gave this study {format_duration(round(budget_s))} of its budget"
            failed = Outcome(2, f"{in_options(f'{error}')}; {share}")
        except PgtrialError as error:
            failed = Outcome(ERROR_STATUS, in_options(f"{error}").removesuffix("."))
        self.results[study.name] = GatedResult(study.name, failed)
        print_message(f"{study.name}: {failed.sentence}")
        return failed.status

    @property
    def _console(self) -> Terminal:
        return Terminal(file=sys.stderr) if self.as_json else Terminal()

    def _conclude(self, study: GatedStudy, rules: Rules, directory: StudyDirectory) -> Conclusion:
        result = build_report(directory)
        ended = ended_study(directory, rules)
        write_outcome(directory.path, ended.of_gate)
        self.results[study.name] = GatedResult(study.name, ended.of_gate, ended.data)
        says = Text(f"{study.name}: {ended.of_gate.sentence}", "bold")
        return Conclusion(result, Group(ended.in_short(directory.path, self.gate.path), says))

    def _end(self) -> int:
        """Writes the result and the files of the gate, prints it, and returns the exit status."""
        results = [self.results[study.name] for study in self.gate.record.studies]
        of_gate = outcome_of_studies(results)
        if all(result.data is not None for result in results):
            # without this file the same command runs again those studies that had an error
            write_outcome(self.gate.path, of_gate, self.tries.earlier)
        if self.files.bundle is not None and (begun := self.gate.studies()):
            self.files.write_bundle(partial(write_gate_bundle, self.gate))
            for study in begun:
                warn_of_cut_values(study.spec)
        self._write(results, of_gate)
        lines = [Text(f"{result.name}: {result.of_gate.sentence}") for result in results]
        self._console.print(Group(*lines, *in_text(of_gate, self.tries)))
        if self.as_json:
            json_line({"gate": in_json(of_gate, self.tries), "studies": dict(map(_in_json, results))}, indent=1)
        return of_gate.status

    def _write_stopped(self) -> None:
        """Writes the files of a gate that a signal has stopped. Raises StoreError."""
        missing = Outcome(ERROR_STATUS, "the gate was stopped before this study ended")
        names = [study.name for study in self.gate.record.studies]
        self._write([self.results.get(name, GatedResult(name, missing)) for name in names], STOPPED)

    def _write(self, results: Sequence[GatedResult], of_gate: Outcome) -> None:
        """Writes the summary and the JUnit file. Raises StoreError."""
        bundle = self.files.bundle
        written = bundle if bundle is not None and bundle.exists() else None
        self.files.write(
            summary_of_studies(results, of_gate, None if written is None else written.name, self.tries),
            junit_of(
                self.arms,
                of_gate,
                list(map(_case, results)),
                created=self.gate.record.created,
                tries=self.tries,
            ),
        )


def _in_json(result: GatedResult) -> tuple[str, dict[str, Any]]:
    """Returns the name of a study and its result: the content of verdict.json, if it has one, and its outcome."""
    verdict = {} if result.data is None else json.loads(result.data.result.model_dump_json())
    return result.name, {**verdict, "gate": {"status": result.of_gate.status, "outcome": result.of_gate.sentence}}


def _case(result: GatedResult) -> Case:
    """Returns the test case of a study in the JUnit file."""
    if (data := result.data) is None:
        return Case(result.of_gate, 0.0, study=result.name)
    return Case(result.of_gate, time_spent(data.plan, data.trials), details(data, result.of_gate), result.name)
