"""`pgtrial bisect`: finds the commit that made PostgreSQL, or an extension, slower or faster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.conduct import Conclusion, start
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import json_line, line, print_message
from pgtrial.cli.study_options import Profile, Seed, parsed, read
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.bisection.question import Question, ask, directory_of, two_of_the_first
from pgtrial.conduct.bisection.runner import Answer, BisectionRunner, DoesNotBuildError, Judged, Order, log_of
from pgtrial.conduct.study_directory import RESULTS
from pgtrial.model.errors import StoreError
from pgtrial.model.records.bisection import Bisection, BisectionStep
from pgtrial.model.units import format_duration, parse_duration, plural
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report
from pgtrial.report.data import StudyData, read_measured
from pgtrial.report.gate.summary import moved_costs
from pgtrial.report.words import cost_text
from pgtrial.servers.builds.kept import BuildError
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import make_folder, record_at, write_atomically
from pgtrial.verdict.family import counting

_RECORD, _LOG = "bisection.json", "bisect.log"


class _Stopped(Exception):
    """A signal has ended a study of the bisection. pgtrial then exits with the status `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def bisect_command(
    good: Annotated[
        str,
        typer.Argument(
            help="A commit, branch or tag that does not have the change of speed yet. It must be an ancestor of BAD."
        ),
    ],
    bad: Annotated[str, typer.Argument(help="A commit, branch or tag that is slower or faster than GOOD.")],
    *,
    study: Annotated[
        str,
        typer.Option(
            help="The study file with the load. It must name the repository to bisect, as git:PATH@REF in the key "
            "`postgres` or `extensions` of its first arm or of its section [server].",
            metavar="FILE",
        ),
    ],
    profile: Profile = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="The time for the blocks of each comparison of two commits, e.g. 10min. The last "
            "comparison, of the commit that was found with its parent, may take several times as long. Default: the "
            "budget of the study file.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    first_parent: Annotated[
        bool,
        typer.Option(
            "--first-parent", help="Follow only the first parent of merge commits, like `git bisect --first-parent`."
        ),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="The directory of the bisection. Default: results/bisect-NAME-GOOD-BAD.", show_default=False),
    ] = None,
    seed: Seed = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print all comparisons and the result as JSON at the end.")
    ] = False,
) -> int:
    """Find the commit that made PostgreSQL, or an extension, slower or faster.

    pgtrial first compares GOOD with BAD; if they do not differ, the bisection ends. Each further study compares GOOD
    with a commit between GOOD and BAD. A commit that does not build is skipped. A commit whose study shows neither a
    difference nor its absence is skipped as well, and compared once more if there is time. At the end the remaining
    commit is compared with its parent, which gives the size of its effect. If no commit changes the speed, at most 5%
    of bisections name a commit by mistake.

    Exit status: 0 GOOD and BAD do not differ, 1 a commit was found, 2 no answer, 3 an error. To continue an interrupted
    bisection, run the same command again. `git bisect replay` can read the file bisect.log in the directory of the
    bisection.

    Example: pgtrial bisect REL_17_0 REL_17_STABLE --study load.toml --budget 10min
    """
    spec = read(study, profile, seed, two_of_the_first)
    if budget is not None:
        spec = spec.with_verdict(budget=parsed("--budget", parse_duration, budget), blocks=None)
    question = ask(spec, good, bad, first_parent=first_parent, report=print_message)
    shell = _Shell(question, results or directory_of(question, RESULTS))
    known = shell.begin()
    runner = BisectionRunner(question.search, known, shell.judge, shell.keep)
    try:
        answer = runner.run()
    except _Stopped as stopped:
        print_message("run the same command again to continue the bisection")
        return stopped.status
    shell.conclude(answer, as_json=json)
    return answer.exit_status


@dataclass
class _Shell:
    """Runs the studies of a bisection, and stores their results in the directory of the bisection."""

    question: Question
    directory: Path

    def begin(self) -> Bisection:
        """Returns the results that earlier runs of the same command have stored, or an empty record for a new
        bisection.

        Raises StoreError if the directory belongs to another bisection.
        """
        beginning = self.question.beginning
        kept = record_at(self.directory / _RECORD, Bisection, "remove the directory, and bisect again")
        if kept is not None and kept.model_copy(update={"steps": []}) != beginning:
            raise StoreError(f"{self.directory} belongs to another bisection; choose another directory with --results")
        number = plural(beginning.commits, "commit")
        budget = format_duration(beginning.studies * self.question.spec.verdict.budget)
        print_message(
            f"{self.directory}: {number} between GOOD and BAD; at most "
            f"{plural(beginning.studies, 'study')}, at most about {budget} of load"
        )
        if kept is not None:
            for step in kept.steps:
                self._report(step)
            return kept
        make_folder(self.directory, mode=0o700)
        self._write(beginning)
        return beginning

    def judge(self, order: Order) -> Judged:
        """Runs the study that compares a commit with GOOD or with its parent, and returns its verdict. Raises
        DoesNotBuildError if the commit does not build, and _Stopped if a signal ended the study."""
        spec = self.question.study_of(order)
        alone = "-alone" if order.part == "culprit" else ""
        again = f"-{order.attempt}" if order.attempt > 1 else ""
        name = f"{order.commit.short}-against-{order.against[:10]}{alone}{again}"
        ended: list[StudyData] = []

        def conclude(study: StudyDirectory) -> Conclusion:
            result = build_report(study)
            data = read_measured(study)
            ended.append(data)
            return Conclusion(result, in_short(brief(data.result, data.plan, study.path, data.trials)))

        once_more = " once more" if order.attempt > 1 else ""
        print_message(f"comparing {order.commit.short} ({order.commit.subject}) with {order.against[:10]}{once_more}")
        try:
            status = start(
                spec,
                self.directory / name,
                conclude=conclude,
                console=Terminal(file=sys.stderr),
                again=lambda _: same_command(self.directory),
            )
        except BuildError as error:
            raise DoesNotBuildError(str(error)) from None
        if not ended:
            raise _Stopped(status)
        claim = ended[0].result.primary[0]
        return Judged(claim.verdict, claim.difference, name, list(counting(claim.ratios).values()))

    def keep(self, known: Bisection) -> None:
        """Stores the state of the bisection in its directory, and prints the latest step."""
        self._write(known)
        self._report(known.steps[-1])

    def conclude(self, answer: Answer, *, as_json: bool) -> None:
        """Prints the answer of the bisection: the commit, the size of its effect on the speed, and the costs per
        transaction (such as CPU time or WAL) that differ between the commit and its parent. Also writes the commit that
        was found into bisect.log, as git bisect does."""
        known = record_at(self.directory / _RECORD, Bisection, "remove the directory, and bisect again")
        if known is not None and answer.kind == "found":
            write_atomically(self.directory / _LOG, log_of(known, answer.step))
        if as_json:
            content = known.model_dump(mode="json") if known is not None else {}
            json_line({**content, "answer": answer.kind, "suspects": [commit.id for commit in answer.suspects]})
            return
        line(answer.sentence)
        if answer.kind == "open":
            for commit in answer.suspects:
                line(f"  {commit.id} {commit.subject}")
        if answer.kind == "found" and answer.step is not None and answer.step.study is not None:
            path = self.directory / answer.step.study
            data = read_measured(StudyDirectory.open(path))
            line(f"  commit: {answer.step.commit}")
            if answer.step.difference is not None:
                line(f"  effect on speed: {answer.step.difference.text()} (95% interval)")
            causes = [
                f"{cost.what} {text}" for cost in moved_costs(data, data.result.primary[0]) if (text := cost_text(cost))
            ]
            line(f"  per transaction: {'; '.join(causes) or 'no measured cost differs clearly'}")
            line(f"  report: {path / 'report.html'}")
        line(f"  log: {self.directory / _LOG}")

    def _write(self, known: Bisection) -> None:
        write_atomically(self.directory / _RECORD, known.model_dump_json(indent=1) + "\n")
        write_atomically(self.directory / _LOG, log_of(known))

    def _report(self, step: BisectionStep) -> None:
        interval = f", {step.difference.text()}" if step.difference is not None else ""
        print_message(f"{step.mark}: {step.commit[:10]} ({step.subject}): {step.verdict}{interval}")
