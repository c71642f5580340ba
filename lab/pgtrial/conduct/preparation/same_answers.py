"""Compares the answers of arms that differ in their scripts, or in SQL that they run on their data. Before the first
trial, pgtrial executes the script of each arm with the same values, and compares the rows that its statements return,
regardless of their order.

The values are those that a client of the baseline draws. Changes that a statement makes are rolled back. On given
servers only scripts that do not change data are executed. Scripts that get values from the server or a shell, or that
have branches, are not compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.conduct.preparation.own_scripts import commands_of
from pgtrial.conduct.preparation.rehearsal_failures import AT_TIMES, MOST_TRIES, RehearsalFailure, cure_of
from pgtrial.loads.command_lines.pgbench import scripts_of
from pgtrial.loads.parsed_statements import TRANSACTION, changes_data, first_word
from pgtrial.loads.script_answers import TOO_SLOW, Answer, AnswerRefused, Bound, answers_of, in_words
from pgtrial.loads.script_commands import ScriptCommand, ScriptFailure, script_commands
from pgtrial.loads.target import Session, Target
from pgtrial.model.records.answers import ArmAnswers, OtherAnswer
from pgtrial.model.records.facts import Facts, Finding
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.kinds.transactions import scripts_of_arms
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec, have_own_setup, load_points
from pgtrial.servers.arm import Arm
from pgtrial.verdict.rules.case import Case
from pgtrial.verdict.rules.scripts import other_answers

_FEW, _MANY = 20, 100
"""The number of draws of values that are compared: `_FEW` if these take longer than `_MOMENT_S`, otherwise `_MANY`."""
_MOMENT_S = 3.0
_REPEATED = 5
"""The number of draws that are executed twice. The first draw always is, the others only until the comparison has
taken `_MOMENT_S`. If two executions of a draw on the same arm return different rows, these depend on chance or on the
time."""
_LIMIT_S = 30.0
"""The time that all draws of one arm may take together, in seconds. After this time, only the draws that were executed
until then are compared."""
_HARMLESS = re.compile(r"\\(set|sleep|startpipeline|syncpipeline|endpipeline)\b")
"""Matches the meta-commands of pgbench that do not affect the comparison: they neither choose which statements run, nor
set variables to values that the lab does not know."""
_NOT_EXECUTED = ("25001", "25006")
"""The SQLSTATEs of statements that cannot run within a transaction, or that change data in a read-only transaction."""


def compares_answers(spec: StudySpec) -> bool:
    """True if the study demands that all arms return the same rows, and its arms may return different rows, since they
    have scripts, data, values or preparing SQL of their own."""
    if spec.load.answers != "same" or not load_points(spec)[0].kind.repeats:
        return False
    differ = have_own_setup(spec) or spec.has_arm_data or any(keys.values for keys in spec.arms.values())
    return bool(scripts_of_arms(spec.arms)) or (differ and bool(_common_scripts(spec)))


def _common_scripts(spec: StudySpec) -> list[str]:
    """Returns the names of the user's pgbench scripts and queries that all arms run; empty if the load has none."""
    points = [point for point in load_points(spec) if point.pack is None and not point.sysbench]
    names = dict.fromkeys(name for point in points for name in point.mix or [point.workload])
    return [name for name in names if name in spec.scripts]


@dataclass(frozen=True)
class _Drawn:
    """The statements of a script with one draw of values for its variables."""

    values: Mapping[str, str]
    """The value of each variable, as text."""
    statements: Sequence[Bound]


@dataclass
class SameAnswers:
    """Collects the answers of the scripts of all arms, one arm after the other, and compares them."""

    spec: StudySpec
    seed: int
    drawn: list[dict[str, str]] = field(default_factory=list)
    """The values of each draw, by the variable's name, as a client of the baseline draws them."""
    by_arm: dict[str, list[list[Answer]]] = field(default_factory=dict)
    """The answers of each arm. For each draw of values, they are the rows of those statements that return rows."""
    changing: set[str] = field(default_factory=set)
    """The arms whose statements return different rows at each execution, for example because of now()."""
    obstacles: dict[str, str] = field(default_factory=dict)
    """For each arm whose script was not executed, the reason as a clause."""

    def take(
        self, arm: Arm, point: LoadPoint, target: Target, folder: Path, values: Mapping[str, Path]
    ) -> RehearsalFailure | None:
        """Executes the script of an arm and collects the rows that its statements return. Returns a failure if the
        server refuses a statement. Has to be called for the first arm, the baseline, before all other arms.

        `point` is the load point with the script of this arm. `values` has the files from which variables take values.
        Raises StudyError and psycopg.OperationalError.
        """
        first = next(iter(self.spec.arms))
        if arm.name in self.by_arm or not self.obstacles.keys().isdisjoint({arm.name, first}):
            return None
        is_given = isinstance(arm.setup, Given)
        if (name := next(iter(self.spec.arms[arm.name].values or ()), None)) is not None:
            self.obstacles[arm.name] = f"the variable {name} has values of its own in {arm.name}"
            return None
        draws = self._draws(arm.name, point, folder, values)
        texts = [bound.sql for draw in draws for bound in draw.statements]
        if is_given and any(map(_changes, texts)):
            self.obstacles[arm.name] = f"the script of {arm.name} changes data, which a given server keeps"
        if arm.name in self.obstacles:
            return None
        began = time.monotonic()
        ends = began + _LIMIT_S
        found: list[list[Answer]] = []
        with target.connect_as_load() as session:
            for number, draw in enumerate(draws):
                if number >= _FEW and time.monotonic() > began + _MOMENT_S:
                    break
                try:
                    found.append(_taken(session, draw, ends, read_only=is_given))
                    if number == 0 or (number < _REPEATED and time.monotonic() < began + _MOMENT_S):
                        self._repeated(arm.name, found[-1], _taken(session, draw, ends, read_only=is_given))
                except AnswerRefused as refused:
                    if refused.sqlstate == TOO_SLOW:
                        break
                    if refused.sqlstate is not None and refused.sqlstate not in (*_NOT_EXECUTED, *AT_TIMES):
                        self.obstacles[arm.name] = f"the script of {arm.name} fails"
                        return self._failure(draw, refused, folder / point.workload, target.owner)
                    how = "fails at times" if refused.sqlstate in AT_TIMES else "cannot be executed apart"
                    self.obstacles[arm.name] = f"the script of {arm.name} {how} ({refused.words})"
                    return None
        if not found:
            self.obstacles[arm.name] = f"one execution of the script of {arm.name} takes more than {_LIMIT_S:.0f}s"
        self.by_arm[arm.name] = found
        return None

    def _repeated(self, arm: str, first: Sequence[Answer], second: Sequence[Answer]) -> None:
        """Notes what differs between the answers of two executions of the same draw."""
        if [answer.rows for answer in first] != [answer.rows for answer in second]:
            self.obstacles[arm] = f"the script of {arm} finds another number of rows each time that it is executed"
        elif first != second:
            self.changing.add(arm)

    def _draws(self, arm: str, point: LoadPoint, folder: Path, values: Mapping[str, Path]) -> list[_Drawn]:
        """Returns the statements of an arm's script for each draw of values. If the script cannot be executed for the
        comparison, returns an empty list and stores the reason in `obstacles`."""
        options = [*scripts_of(point, folder / point.workload), "-M", point.protocol]
        options += [f"--values={name}={path}" for name, path in values.items()]
        of_seeds: list[list[ScriptCommand]] = []
        is_text = point.protocol == "simple"  # in this protocol, the values are part of the statements' text
        takes_drawn = bool(self.drawn) and not is_text
        while sum(map(_listed, of_seeds)) < _MANY and len(of_seeds) < _MANY:
            seed = (self.seed + len(of_seeds)) % 2**62
            of_seeds.append(script_commands([*options, "--random-seed", str(seed)]))
            if takes_drawn or not any(command.variables for command in of_seeds[0]):
                break
        meta = next((one.text for one in of_seeds[0] if one.sql is None and not _HARMLESS.match(one.text)), None)
        if meta is not None:
            self.obstacles[arm] = f"the script of {arm} has {meta.split()[0]}"
            return []
        own = [one for commands in of_seeds for one in _own_draws(commands)][:_MANY]
        if not own:
            self.obstacles[arm] = f"the script of {arm} has values that only its server knows"
            return []
        if not self.drawn:
            self.drawn = [{**draw.values} for draw in own if draw.values] or [{}]
        variables = {name for command in of_seeds[0] for name in command.variables}
        unknown = variables - self.drawn[0].keys()
        if unknown or (is_text and not _agree(self.drawn, own)):
            what = f"the variable {min(unknown)}" if unknown else "other values"
            self.obstacles[arm] = f"the script of {arm} has {what}, which the script of the first arm does not draw"
            return []
        if is_text:
            return own[: len(self.drawn)]
        named = [(number, one) for number, one in enumerate(of_seeds[0]) if one.sql is not None]
        return [
            _Drawn(draw, [Bound(n, one.sql or "", [draw[name] for name in one.variables]) for n, one in named])
            for draw in self.drawn
        ]

    def _failure(self, draw: _Drawn, refused: AnswerRefused, script: Path, owner: str | None) -> RehearsalFailure:
        """Returns the failure for a statement that the server has refused. `owner` is the role of the load on a server
        that pgtrial makes; None on a given server."""
        location = commands_of(self.spec, script.parent, script.name)[refused.number].location_in(
            self.spec.origin(script.name)
        )
        with_values = f" with {in_words(draw.values)}" if draw.values else ""
        failure = ScriptFailure(refused.words, refused.sqlstate, refused.number)
        text = f"{location}: PostgreSQL says: {refused.words}{with_values}"
        return RehearsalFailure(text, cure_of(self.spec, failure, owner))

    def compared(self) -> dict[str, ArmAnswers]:
        """Returns, for each arm except the first, the comparison of its answers with those of the first arm. Arms whose
        scripts return no rows are left out."""
        first, *others = list(self.spec.arms)
        return {arm: answers for arm in others if (answers := self._compared(first, arm)) is not None}

    def _compared(self, first: str, arm: str) -> ArmAnswers | None:
        obstacle = self.obstacles.get(first) or self.obstacles.get(arm)
        if obstacle is not None:
            return ArmAnswers(obstacle=obstacle)
        pairs = list(zip(self.by_arm.get(first, []), self.by_arm.get(arm, []), strict=False))
        silent = [name for name, answers in zip((first, arm), pairs[0], strict=True) if not answers] if pairs else []
        if len(silent) == 1:
            return ArmAnswers(obstacle=f"no statement of the script of {silent[0]} returns rows")
        if not pairs or silent:
            return None  # scripts that return no rows have no answers to compare
        counts_alone = bool(self.changing & {first, arm})
        found = [_difference(base, other, counts_alone=counts_alone) for base, other in pairs]
        differing = [(number, pair) for number, pair in enumerate(found) if pair is not None]
        if not differing:
            return ArmAnswers(draws=len(pairs), counts_alone=counts_alone)
        number, (statement, base, other) = differing[0]
        return ArmAnswers(
            draws=len(pairs),
            other=len(differing),
            counts_alone=counts_alone,
            first=OtherAnswer(
                values=in_words(self.drawn[number]), statement=statement, baseline_rows=base.rows, rows=other.rows
            ),
        )


class AnswersOfScripts:
    """Collects and compares the answers of the scripts of all arms: of the arms' own scripts, or of each script that
    all arms run."""

    def __init__(self, spec: StudySpec, seed: int) -> None:
        names: list[str | None] = [None] if scripts_of_arms(spec.arms) else [*_common_scripts(spec)]
        self._of_scripts = {name: SameAnswers(spec, seed) for name in names}

    def take(
        self, arm: Arm, point: LoadPoint, target: Target, folder: Path, values: Mapping[str, Path]
    ) -> RehearsalFailure | None:
        """Executes the scripts of an arm, as `SameAnswers.take` does. Returns the first failure."""
        for name, answers in self._of_scripts.items():
            alone = point if name is None else point.model_copy(update={"workload": name, "mix": {}})
            if (failure := answers.take(arm, alone, target, folder, values)) is not None:
                return failure
        return None

    def compared(self) -> dict[str, ArmAnswers]:
        """Returns, for each arm except the first, the comparison of its answers with those of the first arm: the first
        difference, otherwise the first reason why a script was not compared."""
        found: dict[str, list[tuple[str | None, ArmAnswers]]] = {}
        for name, answers in self._of_scripts.items():
            for arm, of_arm in answers.compared().items():
                found.setdefault(arm, []).append((name, of_arm))
        return {arm: self._merged(of_scripts) for arm, of_scripts in found.items()}

    def _merged(self, of_scripts: Sequence[tuple[str | None, ArmAnswers]]) -> ArmAnswers:
        several = len(self._of_scripts) > 1
        for name, answers in of_scripts:
            if answers.first is not None:
                first = answers.first.model_copy(update={"script": name if several else None})
                return answers.model_copy(update={"first": first})
        for name, answers in of_scripts:
            if answers.obstacle is not None:
                return ArmAnswers(obstacle=f"{answers.obstacle}{f' ({name})' if several else ''}")
        return ArmAnswers(
            draws=sum(answers.draws for _, answers in of_scripts),
            counts_alone=any(answers.counts_alone for _, answers in of_scripts),
        )


def _changes(sql: str) -> bool:
    return first_word(sql) not in TRANSACTION and changes_data(sql)


def _taken(session: Session, draw: _Drawn, ends: float, *, read_only: bool) -> list[Answer]:
    """Executes the statements of a draw and returns their answers. Tries again if a statement fails with an error that
    can occur by chance, such as a deadlock. Raises AnswerRefused."""
    for _ in range(MOST_TRIES - 1):
        try:
            return answers_of(session, draw.statements, ends - time.monotonic(), read_only=read_only)
        except AnswerRefused as refused:
            if refused.sqlstate not in AT_TIMES or refused.sqlstate == TOO_SLOW:
                raise
    return answers_of(session, draw.statements, ends - time.monotonic(), read_only=read_only)


def _listed(commands: Sequence[ScriptCommand]) -> int:
    """Returns the number of transactions for which the engine has listed the values of variables."""
    return min((len(command.values) for command in commands if command.sql is not None), default=0)


def _own_draws(commands: Sequence[ScriptCommand]) -> list[_Drawn]:
    """Returns, for each transaction that the engine has listed, the statements of a script with the values of their
    variables."""
    named = [(number, command) for number, command in enumerate(commands) if command.sql is not None]
    draws = []
    for at in range(_listed(commands)):
        values: dict[str, str] = {}
        for _, command in named:
            values |= dict(zip(command.variables, command.values[at], strict=True))
        bound = [Bound(number, one.sent[at] if one.sent else one.sql or "", []) for number, one in named]
        draws.append(_Drawn(values, bound))
    return draws


def _agree(base: Sequence[Mapping[str, str]], own: Sequence[_Drawn]) -> bool:
    """True if each variable that occurs in the scripts of both arms has the same value in both, in every draw."""
    pairs = zip(base, own, strict=False)
    return all(one.get(name, value) == value for one, draw in pairs for name, value in draw.values.items())


def _difference(
    base: Sequence[Answer], other: Sequence[Answer], *, counts_alone: bool
) -> tuple[int | None, Answer, Answer] | None:
    """Returns the number of the first statement in a draw whose answers differ between two arms, with both answers;
    None if no answers differ.

    If the scripts of the arms have different numbers of answers, only their last answers are compared, and the number
    is None.
    """
    is_alike = len(base) == len(other)
    pairs = list(zip(base, other, strict=True)) if is_alike else [(base[-1], other[-1])] if base and other else []
    for number, (one, its) in enumerate(pairs, 1):
        if one.rows != its.rows or (not counts_alone and one.digest != its.digest):
            return number if is_alike else None, one, its
    return None


def findings_on_answers(plan: Plan, answers: Mapping[str, ArmAnswers]) -> list[Finding]:
    """Returns the findings on these answers that the audit, the check whether the comparison is fair, will have when
    the facts of all arms are complete."""
    facts = {
        arm: Facts(arm=arm, collected="", facts={"answers": answers[arm].as_facts()} if arm in answers else {})
        for arm in plan.arms
    }
    return [finding for finding, _ in other_answers.findings(Case(plan, facts))]
