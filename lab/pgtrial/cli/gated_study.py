"""What gates of one study and of several have in common: how a study becomes that of a gate, and what its end says."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from pgtrial.cli.by_options import by_options
from pgtrial.cli.gate_files import Files
from pgtrial.cli.invocation import same_command
from pgtrial.cli.output import print_message, warn
from pgtrial.cli.study_options import parsed, read
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.planning.outlook import in_words, outlook
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model import marks
from pgtrial.model.errors import ERROR_STATUS, BudgetError, PgtrialError, StudyError
from pgtrial.model.records.gate import EarlierGate, GateRecord
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import format_duration, parse_duration
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData, read_measured
from pgtrial.report.gate.junit import Case, junit
from pgtrial.report.gate.outcome import Outcome, Rules, outcome
from pgtrial.report.gate.summary import summary_without_study
from pgtrial.report.gate.tries import Tries
from pgtrial.report.instructions import instruction_sentences
from pgtrial.servers.configured_values import why_equal
from pgtrial.store.certificates import study_certificate
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import write_in_folder
from pgtrial.store.gate_directory import OUTCOME
from pgtrial.store.study_file import Change

in_options = by_options(
    {"verdict.budget": "--budget", "study.seed": "--seed", "load.instructions": "--instructions"},
    ("load.instructions",),
)
"""Rewords a message so that it names the options of `pgtrial gate` in place of keys of the study file."""

STOPPED = Outcome(ERROR_STATUS, "the gate was stopped; run the same command again to continue it")
"""The outcome of a gate that a signal has ended."""


def study_of(
    study: str, change: Change, budget_s: float | None, *, profile: str | None = None, seed: int | None = None
) -> StudySpec:
    """Returns the study with the arms and the budget of the gate, in seconds; without one it has that of the study
    file. Only the budget decides the number of blocks; if the study file sets a number of blocks, it is ignored with a
    warning. A gate fails if a single query of a suite, or statement of a replay, is slower, so all claims share one
    error there."""
    spec = read(study, profile, seed, change)
    if spec.verdict.blocks is not None:
        named = marks.in_toml(marks.key("verdict", "blocks"))
        warn(f"a gate runs as many blocks as its budget holds, so {named} of the study is not used")
    error = "all" if spec.load.kind.parts(spec.load) else spec.verdict.error
    budget_s = spec.verdict.budget if budget_s is None else budget_s
    return spec.with_verdict(budget=budget_s, blocks=None, final=True, error=error)


def budget_of(text: str | None) -> float | None:
    """Returns the value of `--budget` in seconds; None if the option is not given. Raises StudyError."""
    if text is None:
        return None
    budget_s = parsed("--budget", parse_duration, text)
    if budget_s <= 0:
        raise StudyError(f"--budget {text} must be longer than 0; write for example --budget 10min")
    return budget_s


def rules_for(spec: StudySpec, rules: Rules) -> Rules:
    """Returns the rules of a gate as they apply to a study: with the reason why its two arms have the same effect, if
    they have."""
    return replace(rules, equal=why_equal(Design(spec), *list(spec.arms)[:2]))


def too_short(error: BudgetError, spec: StudySpec) -> str:
    """Returns the message for a budget that is too short for a verdict. The message states the shortest budget that
    suffices for a verdict. If the noise of this machine is known, it also states which difference a gate with that
    budget would find."""
    known = None
    with suppress(BudgetError):
        enough = spec.with_verdict(budget=error.needed_s)
        plan = plan_now(enough)
        known = outlook(Design.planned(enough, plan), plan)
    within = f"with {format_duration(error.needed_s)} a gate"
    words = in_options(f"{error}")
    if known is None or known.precision is None:
        return (
            f"{words}; which difference a gate of that length finds is not known, since no similar study ran on "
            "this machine"
        )
    return f"{words}; {within} {in_words(known.precision)}"


@dataclass(frozen=True)
class EndedStudy:
    """A study of a gate that has run to its end."""

    data: StudyData
    of_gate: Outcome

    def in_short(self, path: Path, gate: Path) -> RenderableType:
        """Returns the short result as the terminal shows it. `path` is the directory of the study, and `gate` that of
        the gate, which the same command continues."""
        run = f"pgtrial run {shlex.quote(str(path))} goes on"
        again = f"{same_command(gate)} goes on"
        short = brief(self.data.result, self.data.plan, path, self.data.trials)
        return in_short(short, lambda text: text.replace(run, again))


def ended_study(study: StudyDirectory, rules: Rules) -> EndedStudy:
    """Returns the result of a study of a gate from its stored trials. Raises StoreError."""
    data = replace(read_measured(study), certificate=study_certificate(study))
    return EndedStudy(data, outcome(data.result, data.plan, rules))


def write_outcome(directory: Path, of_gate: Outcome, earlier: Sequence[EarlierGate] = ()) -> None:
    """Writes gate.json into the directory of a gate, or of one of its studies. Raises StoreError."""
    record = GateRecord(status=of_gate.status, outcome=of_gate.sentence, earlier=list(earlier))
    write_in_folder(directory / OUTCOME, record.model_dump_json() + "\n")


def details(data: StudyData, of_gate: Outcome, tries: Tries | None = None) -> str:
    """Returns the outcome and the results of a study as plain text. The sentence about earlier tries comes between
    them."""
    of_tries = [] if tries is None or tries.sentence is None else [tries.sentence]
    counted = instruction_sentences(data.result, data.plan.arms[1])
    return "\n".join([of_gate.sentence, *of_tries, *data.result.sentences, *counted])


def junit_of(
    arms: Sequence[str],
    of_gate: Outcome,
    cases: Sequence[Case],
    *,
    created: str | None = None,
    tries: Tries | None = None,
) -> str:
    """Returns the JUnit file of a gate that ran on this machine. The first two `arms` are BASE and HEAD. The gate was
    created now unless `created` says when."""
    base, head = arms[:2]
    when = created or datetime.now(UTC).isoformat(timespec="seconds")
    return junit(base, head, of_gate, cases, created=when, host=platform.node(), tries=tries)


def write_without_study(files: Files, of_gate: Outcome, arms: Sequence[str] = ("base", "head")) -> None:
    """Writes the files of a gate that has measured nothing. It writes no bundle, since there is no study to pack. The
    first two `arms` are BASE and HEAD."""
    base, head = arms[:2]
    files.write(summary_without_study(base, head, of_gate), junit_of(arms, of_gate, [Case(of_gate, 0.0)]))


def write_error(files: Files, error: PgtrialError, arms: Sequence[str] = ("base", "head")) -> None:
    """Writes the files of a gate that has measured nothing because of an error. The first two `arms` are BASE and
    HEAD."""
    write_without_study(files, Outcome(ERROR_STATUS, str(error).removesuffix(".")), arms)


def end_too_short(files: Files, reason: str, arms: Sequence[str]) -> int:
    """Writes the files of a gate whose budget is too short for a verdict, prints the reason, and returns the exit
    status. The first two `arms` are BASE and HEAD."""
    of_gate = Outcome(2, reason)
    write_without_study(files, of_gate, arms)
    print_message(of_gate.sentence)
    return of_gate.status


def in_text(of_gate: Outcome, tries: Tries) -> list[Text]:
    """Returns the lines with which the terminal shows the outcome of a gate."""
    of_tries = [] if tries.sentence is None else [Text(tries.sentence)]
    return [Text(f"gate: {of_gate.sentence}", "bold"), *of_tries]


def in_json(of_gate: Outcome, tries: Tries) -> dict[str, Any]:
    """Returns the outcome of a gate in the form in which `--json` prints it."""
    return {
        "status": of_gate.status,
        "outcome": of_gate.sentence,
        "try": tries.number,
        "measured": tries.stands or "now",
        "earlier": [gate.model_dump() for gate in tries.earlier],
    }
