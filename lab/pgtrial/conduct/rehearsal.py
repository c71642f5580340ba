"""The rehearsal: before the first trial, whatever the user has written is run once on every arm.

A server that pgtrial makes has a copy of the data for it, which is removed. On a given server nothing is executed: it
parses each statement, up to the first one that makes objects, which later statements may need.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgtrial.conduct.drawn_values import DrawnValues
from pgtrial.conduct.engine_options import job_options, pack_options, suite_options
from pgtrial.conduct.kinds.job import command_of
from pgtrial.conduct.load_statements import are_listed, listed_statements
from pgtrial.conduct.own_scripts import commands_of, scripts_at, written_scripts
from pgtrial.conduct.packs import check, held, measure
from pgtrial.conduct.rehearsal_failures import TOO_LONG, RehearsalFailure, RehearsalFailures, cure_of
from pgtrial.conduct.rehearsed_plans import RehearsedPlans
from pgtrial.conduct.rehearsed_programs import rehearse_program
from pgtrial.conduct.same_answers import SameAnswers
from pgtrial.conduct.settle import empty_tables, run_setup_sql
from pgtrial.loads.data.data import Data
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pack_tables import sql_files
from pgtrial.loads.engine import PAUSE
from pgtrial.loads.job_command import command_environment, missing_program
from pgtrial.loads.parsed_statements import changes_data, first_refusal, first_word
from pgtrial.loads.process import lua_environment
from pgtrial.loads.query_runs import failed_queries
from pgtrial.loads.sampled_values import sample_values
from pgtrial.loads.script_commands import ScriptCommand, ScriptFailure, run_once
from pgtrial.loads.sql_files import statements
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError, TrialError, one_line
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.study.own_data import QUERY, is_query
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.model.study.suites import QUERY_ENDING
from pgtrial.servers.arm import Arm

SHORTEST_LIMIT_S = 60.0
"""A script may take so long in a rehearsal, or as long as the load of a trial if that is longer."""
_NOT_FOR_WANT_OF_ROWS = ("0A", "25", "3F", "42", "58")
"""Classes of SQLSTATEs that a statement has on empty tables as on full ones."""
_READ_ONLY = {"default_transaction_read_only": "on"}
_WRITES = "25006"
"""SQLSTATE of a statement that a read-only transaction refuses."""

Say = Callable[[str], None]


def rehearse(
    spec: StudySpec,
    arms: Mapping[str, Arm],
    seed: int,
    values_folder: Path,
    say: Say,
    *,
    shared: bool,
    plans: RehearsedPlans | None = None,
    answers: SameAnswers | None = None,
    passes_s: list[float] | None = None,
) -> dict[str, Path]:
    """Rehearse the load on every arm; the files with values for variables, by variable. Raises StudyError and ArmError.

    `shared`: the arms are sessions of one server. Values are sampled on the first arm, and looked for on the others.
    `plans` takes the plans of the
    statements, of pgbench's own scripts, too; `answers` the rows that scripts of the arms find, before any of them has
    changed what arms share; `passes_s` how long all queries of a suite took on each arm, seconds.
    """
    values = DrawnValues(spec, seed, values_folder)
    if not has_own(spec) and plans is None:
        return values.files
    failures = RehearsalFailures(list(arms))
    points = list({(point.workload, point.scale): point for point in load_points(spec)}.values())
    for data in dict.fromkeys(data_of(spec, point) for point in points):
        own_points = [point for point in points if data_of(spec, point) == data]
        with written_scripts(spec) as folder, ExitStack() as of_all:
            stages: list[tuple[_Stage, RehearsalFailure | None]] = []
            for arm in arms.values():
                say(f"{arm.name}: rehearsing the load")
                with ExitStack() as of_arm, as_study_error(arm.name):
                    target = (of_all if shared else of_arm).enter_context(arm.rehearsal(data, folder / "log"))
                    values.draw_or_check(arm, data, target)
                    stage = _Stage(spec, arm, target, data, folder, seed, values.files, say, passes_s)
                    stage.set_up()
                    refused = stage.answer(own_points[0], answers) if answers is not None else None
                    stages.append((stage, refused))
                    if not shared:
                        failures.add(arm.name, _act(*stages.pop(), own_points, plans, several=len(points) > 1))
            for stage, refused in stages:
                failures.add(stage.arm.name, _act(stage, refused, own_points, plans, several=len(points) > 1))
    failures.complain()
    return values.files


def _act(
    stage: _Stage,
    refused: RehearsalFailure | None,
    points: Sequence[LoadPoint],
    plans: RehearsedPlans | None,
    *,
    several: bool,
) -> list[RehearsalFailure]:
    """Rehearse the load points of some data on an arm; what fails. Raises StudyError.

    `refused` is what failed when the answers were taken; it is told where nothing else fails.
    """
    with as_study_error(stage.arm.name):
        own = [point.for_arm(stage.arm.name) for point in points]
        failed = [failure for point in own for failure in stage.act(point)]
        if plans is not None:
            stage.explain(own, plans, several=several)
        return failed or ([refused] if refused is not None else [])


def sampled_again(spec: StudySpec, arms: Mapping[str, Arm], seed: int, folder: Path) -> dict[str, Path]:
    """The same files with values, for a study that goes on. Raises as `rehearse` does."""
    if not spec.load.values:
        return {}
    arm = next(iter(arms.values()))
    data = data_of(spec, load_points(spec)[0])
    with written_scripts(spec) as logs, as_study_error(arm.name), arm.rehearsal(data, logs / "log") as target:
        return _sampled(spec, target, seed, folder)


def has_own(spec: StudySpec) -> bool:
    """Whether the user has written a part of the load; pgbench's and sysbench's own need no rehearsal."""
    load = spec.load
    if not load.kind.is_rehearsed:
        return False
    own = bool(spec.scripts or load.data or load.values or load.kind.starts_programs(load))
    return own or any(spec.resolved(arm).setup_sql for arm in spec.arms)


def _sampled(spec: StudySpec, target: Target, seed: int, folder: Path) -> dict[str, Path]:
    folder.mkdir(mode=0o700, exist_ok=True)
    with target.connect_as_load() as session:
        return sample_values(session, spec.load.values, seed, folder, as_text=spec.load.protocol == "simple")


@contextmanager
def as_study_error(arm: str) -> Iterator[None]:
    """A server that does not serve the data, or does not answer, is a StudyError that names the arm."""
    try:
        yield
    except TrialError as error:
        raise StudyError(f"arms.{arm}: {error}") from None
    except psycopg.OperationalError as error:
        raise StudyError(f"arms.{arm}: the server did not answer: {one_line(error)}") from None


@dataclass(frozen=True)
class _Stage:
    """One arm's server, with what is rehearsed there."""

    spec: StudySpec
    arm: Arm
    target: Target
    data: Data
    folder: Path
    seed: int
    values: Mapping[str, Path]
    say: Say
    passes_s: list[float] | None

    def set_up(self) -> None:
        """Run the SQL that is to run before each trial."""
        if not isinstance(self.arm.setup, Given):
            run_setup_sql(self.target, self.arm.name, self.arm.setup)

    def answer(self, point: LoadPoint, answers: SameAnswers) -> RehearsalFailure | None:
        """Takes the answers of the arm's script, if its tables are there. Returns what the server refuses."""
        if isinstance(self.arm.setup, Given) and not self._has_all():
            return None
        return answers.take(self.arm, point.for_arm(self.arm.name), self.target, self.folder, self.values)

    def act(self, point: LoadPoint) -> list[RehearsalFailure]:
        """Rehearse a load point; what fails. Raises StudyError, TrialError and psycopg.OperationalError."""
        if isinstance(self.arm.setup, Given):
            return [*self._parse(point), *(self._find_program(point) if command_of(point) is not None else [])]
        files = sql_files(self.spec, point)
        if self.spec.load.kind.is_rehearsed_empty:
            return self._with_job(point)
        if not point.kind.is_by_engine:
            transactions, rolled_back = rehearse_program(self.arm.setup, self.target)
            if rolled_back:
                self.say(
                    f"the client program of {self.arm.name}: {rolled_back:,} of {transactions:,} transactions in its "
                    "rehearsal were rolled back; errors that a program catches and does not report are no speed"
                )
            return []
        if files is not None:
            check(files, self.target, "in the rehearsal")
        with held(files, None if point.pack is None else point.pack.hold, self.target):
            failures = [failure for failure in self._run(point) if failure is not None]
        if failures and any(failure.cure == TOO_LONG for failure in failures):
            failures[0].complain(f"on {self.arm.name}")
        if files is not None and not failures:
            measure(files, self.target)
        return failures

    def _with_job(self, point: LoadPoint) -> list[RehearsalFailure]:
        """The load beside a job, then the job."""
        beside = [name for name in point.kind.scripts_beside if name in self.spec.scripts]
        failures = [failure for name in beside if (failure := self._run_script(point, name)) is not None]
        with self.target.for_load.connect() as session:
            empty_tables(session)
        return [*failures, *self._try_job(point)]

    def _try_job(self, point: LoadPoint) -> list[RehearsalFailure]:
        """Run a job on empty tables: that finds wrong names and syntax without the time that it takes on data."""
        script = self._script(point)
        if script is None:
            return self._find_program(point)
        limit_s = min(SHORTEST_LIMIT_S, self.spec.load.job.limit)
        failure = run_once("pgbench", ["-n", *job_options(script, point)], self.target.environment(), limit_s)
        if failure is None or failure.sqlstate is None or not failure.sqlstate.startswith(_NOT_FOR_WANT_OF_ROWS):
            return []
        return [self._failed(point.workload, failure)]

    def _find_program(self, point: LoadPoint) -> list[RehearsalFailure]:
        """A program is not run: what it does with empty tables says little."""
        environment = command_environment(self.target)
        missing = missing_program(command_of(point) or [], environment)
        if missing is None:
            return []
        return [
            RehearsalFailure(
                f"[load.job] command: there is no program {missing}", "correct the name, or write its path"
            )
        ]

    def explain(self, points: Sequence[LoadPoint], plans: RehearsedPlans, *, several: bool) -> None:
        """Take the plans of the statements. Raises psycopg.OperationalError."""
        if isinstance(self.arm.setup, Given) and not self._has_all():
            return
        with self.target.connect_as_load() as session:
            for point in points:
                listed = None
                if are_listed(point):
                    listed = listed_statements(point, self._script(point), self.values, self.seed)
                plans.take(self.arm.name, session, point, listed, several=several)

    def _has_all(self) -> bool:
        """Whether a given server has what trials will have there."""
        with self.target.connect() as session:
            return not self.arm.setup.setup_sql and self.data.find(session)

    def _script(self, point: LoadPoint) -> Path | None:
        """The file of a script of the user's own, or the folder of several."""
        if point.mix:
            return self.folder
        folder = point.pack.name if point.pack is not None else point.kind.folder
        if folder is not None:
            return self.folder / folder
        return self.folder / point.workload if point.workload in self.spec.scripts else None

    def _run(self, point: LoadPoint) -> Iterator[RehearsalFailure | None]:
        scripts = scripts_at(self.spec, point)
        for script in scripts:
            yield self._run_script(point, script)
        if point.suite is not None:
            yield from self._run_suite(point, point.suite)
        elif not scripts and (point.sysbench or point.data is not None):
            yield self._run_built_in(point)

    def _run_suite(self, point: LoadPoint, suite: SuiteLoad) -> Iterator[RehearsalFailure]:
        """Run each query once; one that is cancelled at the limit has not failed."""
        once = point.model_copy(update={"suite": suite.model_copy(update={"runs": 1})})
        options = [option for option in suite_options(once, self._script(point)) if option not in ("--warmup", PAUSE)]
        began = time.monotonic()
        failed = failed_queries(options, self.target.environment(), self.spec.load.longest_s)
        if self.passes_s is not None:
            self.passes_s.append(time.monotonic() - began)
        for query, failure in failed.items():
            yield self._failed(f"{suite.name}/{query}{QUERY_ENDING}", failure)

    def _run_script(self, point: LoadPoint, script: str) -> RehearsalFailure | None:
        path = self.folder / script
        if point.pack is not None:
            alone = point.pack.model_copy(update={"scripts": {path.name: 1}})
            workload = pack_options(alone, path.parent, point.whole_scale)
        else:
            workload = ["-f", f"{path}@1", "-s", str(point.scale)]
        drawn = [f"--values={name}={file}" for name, file in self.values.items()]
        options = ["-n", *workload, *drawn, "--require-values", *self._once(point)]
        failure = None
        if is_query(script):
            reading = self.target.with_settings(_READ_ONLY)
            failure = run_once("pgbench", options, reading.environment(), self._limit_s)
            if failure is None or failure.sqlstate != _WRITES:
                return self._failed(script, failure) if failure is not None else None
            self.say("the query changes data: each trial begins on a fresh copy, and its rows change while it runs")
        failure = run_once("pgbench", options, self.target.environment(), self._limit_s)
        return self._failed(script, failure) if failure is not None else None

    def _once(self, point: LoadPoint) -> list[str]:
        return ["-M", point.protocol, "-c", "1", "-t", "1", "--random-seed", str(self.seed)]

    def _run_built_in(self, point: LoadPoint) -> RehearsalFailure | None:
        """A test of sysbench, or a script of pgbench's own on the user's data."""
        environment = self.target.environment()
        if point.sysbench:
            test = self.folder / point.workload if point.workload in self.spec.scripts else point.workload
            arguments = self.spec.load.sysbench.arguments(point.workload)
            options = [str(test), *arguments, "--threads=1", "--events=1", "--time=0", "--rand-seed=1"]
            environment |= lua_environment(self.folder)
            failure = run_once("sysbench", options, environment, self._limit_s)
        else:
            options = ["-n", "-b", point.workload, *self._once(point)]
            failure = run_once("pgbench", options, environment, self._limit_s)
        if failure is None:
            return None
        origin = self.spec.origin(point.workload)
        words = failure.words.replace(f"{self.folder}/", "")
        return RehearsalFailure(f"{origin}: {words}", cure_of(self.spec, failure, self.target.owner))

    def _parse(self, point: LoadPoint) -> list[RehearsalFailure]:
        """Have a given server parse the scripts, where their tables are there."""
        failures = []
        if not self._has_all():
            return []
        with self.target.connect_as_load() as session:
            for script, commands in self._given_commands(point):
                refusal = first_refusal(session, commands, point.protocol)
                if refusal is not None:
                    failures.append(self._failed(script, refusal))
                elif self._changes(script, commands):
                    raise StudyError(
                        f"arms.{self.arm.name}: {_the_query(self.spec, script)} changes data, and a given server keeps "
                        "that; take a query that reads, name a script as workload if the change is meant, or a server "
                        "that pgtrial makes"
                    )
        return failures

    def _changes(self, script: str, commands: Sequence[ScriptCommand]) -> bool:
        """Whether a query changes data; settings of its session are none."""
        texts = [command.sql for command in commands if command.sql is not None]
        of_queries = self.spec.load.kind.is_of_queries
        if of_queries:
            texts = [text for text in texts if first_word(text) not in ("set", "reset")]
        return (is_query(script) or of_queries) and any(map(changes_data, texts))

    def _given_commands(self, point: LoadPoint) -> Iterator[tuple[str, list[ScriptCommand]]]:
        """Each script with its commands, each query of a suite with its statements."""
        for script in scripts_at(self.spec, point):
            yield script, commands_of(self.spec, self.folder, script)
        for query in point.suite.queries if point.suite is not None else ():
            script = f"{point.suite.name}/{query}{QUERY_ENDING}" if point.suite is not None else query
            parts = statements(self.spec.scripts[script], {})
            yield script, [ScriptCommand(part.line, part.text.splitlines()[0], part.text, ()) for part in parts]

    @property
    def _limit_s(self) -> float:
        load = self.spec.load
        lengths = [length_s for length_s in load.given_s if length_s is not None]
        return max([SHORTEST_LIMIT_S, *lengths])

    def _failed(self, script: str, failure: ScriptFailure) -> RehearsalFailure:
        """A failure with its place."""
        place = self.spec.origin(script)
        if failure.command is not None and self.spec.load.kind.is_of_queries:
            part = statements(self.spec.scripts[script], {})[failure.command]
            place = f"{place}, line {part.line}"
        elif failure.command is not None:
            place = commands_of(self.spec, self.folder, script)[failure.command].place_in(place)
        by_server = "PostgreSQL says: " if failure.sqlstate is not None else ""
        words = failure.words.replace(f"{self.folder}/", "").removesuffix(".")
        return RehearsalFailure(f"{place}: {by_server}{words}", cure_of(self.spec, failure, self.target.owner))


def _the_query(spec: StudySpec, script: str) -> str:
    if spec.load.kind.is_of_queries:
        return f"the query {spec.origin(script)}"
    return "the query" if script == QUERY else spec.origin(script)
