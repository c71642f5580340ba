"""`pgtrial gate`: checks in continuous integration whether HEAD is slower than BASE."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Group

from pgtrial.cli import study_options
from pgtrial.cli.conduct import Conclusion, start
from pgtrial.cli.earlier_gates import bundled_studies, earlier_gates
from pgtrial.cli.gate_files import Files
from pgtrial.cli.gate_of_studies import run_gate_of_studies
from pgtrial.cli.gated_study import (
    STOPPED,
    EndedStudy,
    budget_of,
    details,
    end_too_short,
    ended_study,
    in_json,
    in_options,
    in_text,
    junit_of,
    rules_for,
    study_of,
    too_short,
    write_error,
    write_outcome,
    write_without_study,
)
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import json_line, print_message
from pgtrial.cli.study_options import Profile, Seed, with_instructions
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.trust import warn_of_cut_values
from pgtrial.model.errors import BudgetError, PgtrialError
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.build import build_report
from pgtrial.report.gate.junit import Case
from pgtrial.report.gate.outcome import FailOn, Rules
from pgtrial.report.gate.summary import summary
from pgtrial.report.gate.tries import Tries
from pgtrial.store.base_and_head import compared
from pgtrial.store.bundle import write_bundle
from pgtrial.store.comparison import with_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.gate_file import check_same_arms, studies_of_gate


def gate_command(
    base: Annotated[
        str,
        typer.Argument(
            help="The set-up without the change, in the form of an arm of `pgtrial compare`, or the name of an arm of "
            "the study. If HEAD is left out, BASE is a set-up with a repository but without a ref "
            "(postgres=git:.), and the gate finds both commits by itself."
        ),
    ],
    head: Annotated[
        str | None,
        typer.Argument(
            help="The set-up with the change, which has to pass the gate, in the same form as BASE.", show_default=False
        ),
    ] = None,
    *,
    study: Annotated[
        str,
        typer.Option(
            help="The study file or bundled study (@NAME) with the load and the data, or a file that lists several "
            "studies in [gate] studies.",
            metavar="FILE",
        ),
    ],
    profile: Profile = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help=(
                "The time for all blocks, e.g. 10min. Default: the budget in the study file, or 1h if the file has "
                "none; for several studies the sum of their budgets."
            ),
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="When to exit with status 1: worse (HEAD is slower) or not-equivalent (HEAD is slower or faster)."
        ),
    ] = "worse",
    accept_undecided: Annotated[
        bool,
        typer.Option(
            "--accept-undecided",
            help="Exit with status 0 in place of 2 if the budget ends before there is a verdict.",
        ),
    ] = False,
    base_twice: Annotated[
        bool,
        typer.Option(
            "--base-twice",
            help=(
                "Run BASE a second time as a third arm. If this arm differs from BASE, the measurement on this "
                "machine is not fair, and the gate exits with status 2."
            ),
        ),
    ] = False,
    instructions: study_options.Instructions = False,
    summary_file: Annotated[
        Path | None,
        typer.Option(
            "--summary", help="The file to which a summary is written as Markdown.", metavar="FILE", show_default=False
        ),
    ] = None,
    junit_file: Annotated[
        Path | None,
        typer.Option(
            "--junit", help="The file to which the result is written as JUnit XML.", metavar="FILE", show_default=False
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="The file to which the bundle of the study, or of the studies, is written. If the file already holds "
            "the bundle of an earlier gate with a verdict on the same set-ups, the gate repeats this verdict and runs "
            "nothing.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    results: study_options.Results = None,
    seed: Seed = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Start a new gate even if the same gate is unfinished or has a verdict already."),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the result as JSON: the content of verdict.json with the outcome of the gate."
        ),
    ] = False,
) -> int:
    """Compare HEAD with BASE under the load of a study. The exit status says whether HEAD passes.

    Exit status: 0 HEAD is not worse, 1 HEAD is worse than BASE, 2 no verdict, 3 an error. The status is also 2 if there
    is nothing to compare, if both set-ups are the same, or if the time is too short for any verdict. To continue an
    interrupted gate, run the same command again. If the gate already has a verdict, it prints this verdict again; with
    --new it measures again.

    If $GITHUB_STEP_SUMMARY is set, the summary is also appended to the file that it names. The gate replaces files that
    an earlier gate wrote; any other existing file of the same name is an error.

    With a single set-up whose repository has no ref, such as postgres=git:., HEAD is the commit that is checked out.
    BASE is the commit into which HEAD will be merged, the commit at which the branch of HEAD left its target branch, or
    the commit before the push.

    Examples: pgtrial gate postgres=git:. --study load.toml --junit gate.xml

    pgtrial gate postgres=git:.@main postgres=git:.@HEAD --study load.toml
    """
    files = Files(summary_file, junit_file, bundle)
    files.check()
    with bundled_studies(bundle) as bundled:
        files.remove()
        try:
            if head is None:
                found = compared(base, os.environ)
                base, head = found.base, found.head
                print_message(found.why)
            change = with_arms([base, head], again=base_twice)
            listed = studies_of_gate(study) or {study: study}
            check_same_arms(study, listed, [base, head])
            budget_s = budget_of(budget)
            of_each_s = budget_s if len(listed) == 1 else None
            specs = {
                name: study_of(path, change, of_each_s, profile=profile, seed=None if seed is None else seed + number)
                for number, (name, path) in enumerate(listed.items())
            }
            if fail_on == "worse" and not base_twice:
                specs = {name: spec.with_verdict(one_sided=True) for name, spec in specs.items()}
            if instructions:
                specs = {name: with_instructions(spec) for name, spec in specs.items()}
        except PgtrialError as error:
            write_error(files, error)
            raise
        rules = Rules(fail_on, accept_undecided)
        if len(specs) == 1:
            (spec,) = specs.values()
            return run_gate(spec, rules, files, results, anew=new, as_json=json, bundled=bundled.studies)
        return run_gate_of_studies(specs, budget_s, rules, files, results, anew=new, as_json=json, bundled=bundled)


def run_gate(
    spec: StudySpec,
    rules: Rules,
    files: Files | None = None,
    results: Path | None = None,
    *,
    anew: bool = False,
    as_json: bool = False,
    bundled: Sequence[StudyDirectory] = (),
) -> int:
    """Runs a study whose first two arms are BASE and HEAD, writes the files of the gate, and returns the exit status.

    If an earlier gate has a verdict on the same study, the gate repeats that verdict and measures nothing, unless
    `anew` is true. `bundled` has the studies in the bundle of an earlier gate.
    """
    files, rules, arms = files or Files(), rules_for(spec, rules), list(spec.arms)
    try:
        earlier = earlier_gates(spec, rules, results, bundled, anew=anew)
        standing = earlier.here or (None if anew else earlier.standing)
        gate = _Gate(rules, files, earlier.tries(standing), as_json=as_json)
        return gate.repeat(standing) if standing is not None else gate.run(spec, results, anew=anew)
    except BudgetError as error:
        return end_too_short(files, too_short(error, spec), arms)
    except PgtrialError as error:
        write_error(files, error, arms)
        raise


@dataclass
class _Gate:
    """One run of the command `pgtrial gate` on one study, from the study to its files and its exit status. A gate
    decides whether a change passes in continuous integration."""

    rules: Rules
    files: Files
    tries: Tries
    as_json: bool
    ended: EndedStudy | None = None
    began: float = field(default_factory=monotonic)

    def run(self, spec: StudySpec, results: Path | None, *, anew: bool) -> int:
        """Runs the study, writes the files of the gate, and returns the exit status."""
        console = Terminal(file=sys.stderr) if self.as_json else None
        status = start(
            spec, results, anew=anew, conclude=self._conclude, console=console, reword=in_options, again=same_command
        )
        if self.ended is None:
            # a signal has ended the study
            write_without_study(self.files, STOPPED, list(spec.arms))
            return status
        return self._status()

    def repeat(self, standing: StudyDirectory) -> int:
        """Writes the files of the gate for a study that already has its verdict, and returns the exit status."""
        console = Terminal(file=sys.stderr) if self.as_json else Terminal()
        console.print(self._conclude(standing).shown)
        return self._status()

    def _conclude(self, study: StudyDirectory) -> Conclusion:
        result = build_report(study)
        self.ended = ended = ended_study(study, self.rules)
        self._write(study, ended)
        short = ended.in_short(study.path, study.path)
        return Conclusion(result, Group(short, *in_text(ended.of_gate, self.tries)))

    def _write(self, study: StudyDirectory, ended: EndedStudy) -> None:
        """Writes all files of the gate. Raises StoreError."""
        data, of_gate, tries = ended.data, ended.of_gate, self.tries
        write_outcome(study.path, of_gate, tries.earlier)
        if (bundle := self.files.bundle) is not None:
            self.files.write_bundle(lambda file: write_bundle(study, file, everything=False))
            warn_of_cut_values(study.spec)
        case = Case(of_gate, monotonic() - self.began, details(data, of_gate, tries))
        self.files.write(
            summary(data, of_gate, None if bundle is None else bundle.name, tries),
            junit_of(data.plan.arms, of_gate, [case], created=data.plan.created, tries=tries),
        )

    def _status(self) -> int:
        assert self.ended is not None
        of_gate = self.ended.of_gate
        if self.as_json:
            of_json = {**json.loads(self.ended.data.result.model_dump_json()), "gate": in_json(of_gate, self.tries)}
            json_line(of_json, indent=1)
        return of_gate.status
