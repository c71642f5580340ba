"""`pgtrial gate`: checks in continuous integration whether HEAD is slower than BASE."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from pgtrial.cli import study_options
from pgtrial.cli.by_options import by_options
from pgtrial.cli.conduct import Conclusion, start
from pgtrial.cli.earlier_gates import OUTCOME, bundled_gate, earlier_gates
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import json_line, print_message, warn
from pgtrial.cli.study_options import Profile, Seed, parsed, read
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.trust import warn_of_cut_values
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.outlook import in_words, outlook
from pgtrial.conduct.study_directory import plan_now
from pgtrial.files.writing import open_own
from pgtrial.model import marks
from pgtrial.model.errors import ERROR_STATUS, BudgetError, PgtrialError, StoreError, StudyError
from pgtrial.model.records.gate import GateRecord
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, parse_duration
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report
from pgtrial.report.data import StudyData, read_measured
from pgtrial.report.gate.junit import junit
from pgtrial.report.gate.outcome import FailOn, Outcome, Rules, outcome
from pgtrial.report.gate.summary import summary, summary_without_study
from pgtrial.report.gate.tries import Tries
from pgtrial.servers.configured_values import why_equal
from pgtrial.store.base_and_head import compared
from pgtrial.store.bundle import open_study, write_bundle
from pgtrial.store.certificates import study_certificate
from pgtrial.store.comparison import with_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import check_safe_to_write, new_file, write_atomically
from pgtrial.store.replaceable import check_replaceable, not_replaced
from pgtrial.store.study_file import Change

_by_options = by_options({"verdict.budget": "--budget", "study.seed": "--seed"})
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""An environment variable of GitHub's runners: the path of a file to which a step appends its summary in Markdown."""


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
        typer.Option(help="The study file or bundled study (@NAME) with the load and the data.", metavar="FILE"),
    ],
    profile: Profile = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help=(
                "The time for all blocks, e.g. 10min. Default: the budget in the study file, or 1h if the file has "
                "none."
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
            help="The file to which the bundle of the study is written. If the file already holds the bundle of an "
            "earlier gate with a verdict on the same set-ups, the gate repeats this verdict and runs nothing.",
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
    with bundled_gate(bundle) as bundled:
        files.remove()
        try:
            if head is None:
                found = compared(base, os.environ)
                base, head = found.base, found.head
                print_message(found.why)
            change = with_arms([base, head], again=base_twice)
            spec = study_of(study, change, budget, profile=profile, seed=seed)
            if fail_on == "worse" and not base_twice:
                spec = _one_sided(spec)
        except PgtrialError as error:
            files.write_without_study(Outcome(ERROR_STATUS, str(error).removesuffix(".")))
            raise
        rules = Rules(fail_on, accept_undecided)
        return run_gate(spec, rules, files, results, anew=new, as_json=json, bundled=bundled)


def run_gate(
    spec: StudySpec,
    rules: Rules,
    files: Files | None = None,
    results: Path | None = None,
    *,
    anew: bool = False,
    as_json: bool = False,
    bundled: StudyDirectory | None = None,
) -> int:
    """Runs a study whose first two arms are BASE and HEAD, writes the files of the gate, and returns the exit status.

    If an earlier gate has a verdict on the same study, the gate repeats that verdict and measures nothing, unless
    `anew` is true. `bundled` is the study in the bundle of an earlier gate.
    """
    base, head = list(spec.arms)[:2]
    files = replace(files or Files(), base=base, head=head)
    rules = replace(rules, equal=why_equal(Design(spec), base, head))
    try:
        earlier = earlier_gates(spec, rules, results, bundled, anew=anew)
        standing = earlier.here or (None if anew else earlier.standing)
        gate = _Gate(rules, files, earlier.tries(standing), as_json=as_json)
        return gate.repeat(standing) if standing is not None else gate.run(spec, results, anew=anew)
    except BudgetError as error:
        of_gate = Outcome(2, _too_short(error, spec))
        files.write_without_study(of_gate)
        print_message(of_gate.sentence)
        return of_gate.status
    except PgtrialError as error:
        files.write_without_study(Outcome(ERROR_STATUS, str(error).removesuffix(".")))
        raise


def study_of(
    study: str, change: Change, budget: str | None, *, profile: str | None = None, seed: int | None = None
) -> StudySpec:
    """Returns the study with the arms and the budget of the gate. Only the budget decides the number of blocks; if the
    study file sets a number of blocks, it is ignored with a warning."""
    spec = read(study, profile, seed, change)
    if spec.verdict.blocks is not None:
        named = marks.in_toml(marks.key("verdict", "blocks"))
        warn(f"a gate runs as many blocks as its budget holds, so {named} of the study is not used")
    budget_s = spec.verdict.budget if budget is None else parsed("--budget", parse_duration, budget)
    if budget_s <= 0:
        raise StudyError(f"--budget {budget} must be longer than 0; write for example --budget 10min")
    verdict = spec.verdict.model_copy(update={"budget": budget_s, "blocks": None, "final": True})
    return spec.model_copy(update={"verdict": verdict})


def _one_sided(spec: StudySpec) -> StudySpec:
    """Returns the study changed so that it only tests whether HEAD is worse than BASE."""
    return spec.model_copy(update={"verdict": spec.verdict.model_copy(update={"one_sided": True})})


def _too_short(error: BudgetError, spec: StudySpec) -> str:
    """Returns the message for a budget that is too short for a verdict. The message states the shortest budget that
    suffices for a verdict. If the noise of this machine is known, it also states which difference a gate with that
    budget would find."""
    enough = spec.model_copy(update={"verdict": spec.verdict.model_copy(update={"budget": error.needed_s})})
    known = None
    with suppress(BudgetError):
        plan = plan_now(enough)
        known = outlook(Design.planned(enough, plan), plan)
    within = f"with {format_duration(error.needed_s)} a gate"
    words = _by_options(f"{error}")
    if known is None or known.precision is None:
        return (
            f"{words}; which difference a gate of that length finds is not known, since no similar study ran on "
            "this machine"
        )
    return f"{words}; {within} {in_words(known.precision)}"


@dataclass
class _Gate:
    """One run of the command `pgtrial gate`, from its study to its files and its exit status. A gate decides whether a
    change passes in continuous integration."""

    rules: Rules
    files: Files
    tries: Tries
    as_json: bool
    ended: tuple[StudyData, Outcome] | None = None
    began: float = field(default_factory=monotonic)

    def run(self, spec: StudySpec, results: Path | None, *, anew: bool) -> int:
        """Runs the study, writes the files of the gate, and returns the exit status."""
        console = Terminal(file=sys.stderr) if self.as_json else None
        status = start(
            spec, results, anew=anew, conclude=self._conclude, console=console, reword=_by_options, again=same_command
        )
        if self.ended is None:
            # a signal has ended the study
            self.files.write_without_study(
                Outcome(ERROR_STATUS, "the gate was stopped; run the same command again to continue it")
            )
            return status
        return self._status()

    def repeat(self, standing: StudyDirectory) -> int:
        """Writes the files of the gate for a study that already has its verdict, and returns the exit status."""
        console = Terminal(file=sys.stderr) if self.as_json else Terminal()
        console.print(self._conclude(standing).shown)
        return self._status()

    def _conclude(self, study: StudyDirectory) -> Conclusion:
        result = build_report(study)
        data = replace(read_measured(study), certificate=study_certificate(study))
        of_gate = outcome(data.result, data.plan, self.rules)
        self.ended = data, of_gate
        self.files.write(study, data, of_gate, self.tries, monotonic() - self.began)
        run, gate = f"pgtrial run {shlex.quote(str(study.path))} goes on", f"{same_command(study.path)} goes on"
        short = in_short(brief(data.result, data.plan, study.path, data.trials), lambda text: text.replace(run, gate))
        of_tries = [] if self.tries.sentence is None else [Text(self.tries.sentence)]
        return Conclusion(result, Group(short, Text(f"gate: {of_gate.sentence}", "bold"), *of_tries))

    def _status(self) -> int:
        assert self.ended is not None
        data, of_gate = self.ended
        if self.as_json:
            of_json = {**json.loads(data.result.model_dump_json()), "gate": _record(of_gate, self.tries)}
            json_line(of_json, indent=1)
        return of_gate.status


def _record(of_gate: Outcome, tries: Tries) -> dict[str, Any]:
    """Returns the outcome of a gate in the form in which `--json` prints it."""
    return {
        "status": of_gate.status,
        "outcome": of_gate.sentence,
        "try": tries.number,
        "measured": tries.stands or "now",
        "earlier": [gate.model_dump() for gate in tries.earlier],
    }


_MARKS = {"--summary": ("### pgtrial gate: ",), "--junit": ('package="pgtrial"', 'name="pgtrial gate"')}
"""For each option, texts that stand near the beginning of every file that a gate writes for this option. A file without
them was not written by a gate."""


def _check_bundle(path: Path) -> None:
    """Raises StudyError if there is a file or directory at `path` that is not the bundle of a gate."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return
    if path.is_file():
        with suppress(StoreError), open_study(path, head=True) as study:
            if (study.path / OUTCOME).is_file():
                return
    raise not_replaced(path, "--bundle")


@dataclass(frozen=True)
class Files:
    """The files that `pgtrial gate` writes, and the names of the two arms in them."""

    summary: Path | None = None
    junit: Path | None = None
    bundle: Path | None = None
    base: str = "base"
    head: str = "head"

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

    def write(self, study: StudyDirectory, data: StudyData, of_gate: Outcome, tries: Tries, seconds: float) -> None:
        """Writes all files of a gate whose study has run. Raises StoreError."""
        record = GateRecord(status=of_gate.status, outcome=of_gate.sentence, earlier=list(tries.earlier))
        study.write_file(OUTCOME, record.model_dump_json() + "\n")
        if self.bundle is not None:
            with new_file(self.bundle, "--bundle", replace=True) as new:
                write_bundle(study, new.file, everything=False)
            warn_of_cut_values(study.spec)
        text = summary(data, of_gate, self.bundle.name if self.bundle is not None else None, tries)
        of_tries = [] if tries.sentence is None else [tries.sentence]
        details = "\n".join([of_gate.sentence, *of_tries, *data.result.sentences])
        self._write(text, of_gate, seconds=seconds, created=data.plan.created, details=details, tries=tries)

    def write_without_study(self, of_gate: Outcome) -> None:
        """Writes the files of a gate that has measured nothing. It writes no bundle, since there is no study to
        pack."""
        text = summary_without_study(self.base, self.head, of_gate)
        self._write(text, of_gate, seconds=0.0, created=datetime.now(UTC).isoformat(timespec="seconds"))

    def _write(
        self,
        text: str,
        of_gate: Outcome,
        *,
        seconds: float,
        created: str,
        details: str = "",
        tries: Tries | None = None,
    ) -> None:
        if self.summary is not None:
            write_atomically(self.summary, text, "--summary")
        if self.junit is not None:
            of_case = junit(
                self.base,
                self.head,
                of_gate,
                seconds=seconds,
                created=created,
                host=platform.node(),
                details=details,
                tries=tries,
            )
            write_atomically(self.junit, of_case, "--junit")
        if (step := os.environ.get(_STEP_SUMMARY)) is not None:
            try:
                with open(step, "a", encoding="utf-8", opener=open_own) as file:
                    file.write(f"{text}\n")
            except OSError as error:
                warn(
                    f"the summary could not be appended to the file of {_STEP_SUMMARY}={step}: "
                    f"{error.strerror or error}"
                )
