"""The server of an arm on which the load is rehearsed (the stage), and the steps of a rehearsal that several kinds of
load share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgtrial.conduct.preparation.own_scripts import commands_of, scripts_at
from pgtrial.conduct.preparation.rehearsal_failures import AT_TIMES, MOST_TRIES, RehearsalFailure, cure_of
from pgtrial.conduct.preparation.same_answers import AnswersOfScripts
from pgtrial.conduct.trial.settle import run_setup_sql
from pgtrial.loads.command_lines.pgbench import pack_options
from pgtrial.loads.data.data import Data
from pgtrial.loads.engine import FrontEnd
from pgtrial.loads.parsed_statements import changes_data, first_refusal, first_word
from pgtrial.loads.process import lua_environment
from pgtrial.loads.script_commands import ScriptCommand, ScriptFailure, run_once
from pgtrial.loads.sql_files import statements
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.own_data import QUERY, is_query
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Arm

SHORTEST_LIMIT_S = 60.0
"""The shortest time limit for a script in a rehearsal, in seconds. If the load of a trial takes longer, that time is
the limit."""
_READ_ONLY = {"default_transaction_read_only": "on"}
_WRITES = "25006"
"""The SQLSTATE with which PostgreSQL refuses a statement in a read-only transaction."""
Report = Callable[[str], None]


@dataclass(frozen=True)
class Stage:
    """The server of one arm on which the load is rehearsed, with the data, the scripts and the values of variables that
    the rehearsal uses."""

    spec: StudySpec
    arm: Arm
    target: Target
    data: Data
    folder: Path
    seed: int
    values: Mapping[str, Path]
    report: Report
    passes_s: list[float] | None

    def set_up(self) -> None:
        """Runs the arm's own SQL, as before each trial. Does nothing on a given server."""
        if not isinstance(self.arm.setup, Given):
            run_setup_sql(self.target, self.arm.name, self.arm.setup)

    def answer(self, point: LoadPoint, answers: AnswersOfScripts) -> RehearsalFailure | None:
        """Collects the rows that the arm's script returns, for the comparison of the arms' answers. On a given server
        it does so only if the tables exist already. Returns a failure if the server refuses a statement."""
        if isinstance(self.arm.setup, Given) and not self.has_all():
            return None
        return answers.take(self.arm, point.for_arm(self.arm.name), self.target, self.folder, self.values)

    def has_all(self) -> bool:
        """True if a given server is already in the state in which trials will find it: the tables exist, and the arm
        has no SQL that runs before each trial."""
        with self.target.connect() as session:
            return not self.arm.setup.setup_sql and self.data.find(session)

    def script(self, point: LoadPoint) -> Path | None:
        """Returns the file of the user's script, or the folder if there are several; None for a built-in script."""
        if point.mix:
            return self.folder
        folder = point.pack.name if point.pack is not None else point.kind.folder
        if folder is not None:
            return self.folder / folder
        return self.folder / point.workload if point.workload in self.spec.scripts else None

    def run_scripts(self, point: LoadPoint) -> Iterator[RehearsalFailure | None]:
        """Runs each of the user's scripts once. Yields for each its failure, or None. If there are no scripts of the
        user, runs a sysbench test, or a built-in script of pgbench if it runs on data of the user."""
        scripts = scripts_at(self.spec, point)
        for script in scripts:
            yield self.run_script(point, script)
        if not scripts and (point.sysbench or point.data is not None):
            yield self._run_built_in(point)

    def run_script(self, point: LoadPoint, script: str) -> RehearsalFailure | None:
        """Runs a pgbench script once, with one client. Returns its failure, or None."""
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
            failure = self._run("pgbench", options, reading.environment())
            if failure is None or failure.sqlstate != _WRITES:
                return self.failed(script, failure) if failure is not None else None
            self.report(
                "the query changes data: each trial begins on a fresh copy, and the rows change during the trial"
            )
        failure = self._run("pgbench", options, self.target.environment())
        return self.failed(script, failure) if failure is not None else None

    def _run(self, front_end: FrontEnd, options: Sequence[str], environment: Mapping[str, str]) -> ScriptFailure | None:
        """Runs one transaction, and runs it again if it fails with an error that can occur by chance (AT_TIMES).
        Returns the failure of the last attempt, or None."""
        failure = None
        for _ in range(MOST_TRIES):
            failure = run_once(front_end, options, environment, self._limit_s)
            if failure is None or failure.sqlstate not in AT_TIMES:
                break
        return failure

    def _once(self, point: LoadPoint) -> list[str]:
        return ["-M", point.protocol, "-c", "1", "-t", "1", "--random-seed", str(self.seed)]

    def _run_built_in(self, point: LoadPoint) -> RehearsalFailure | None:
        """Runs a test of sysbench, or a built-in script of pgbench on the user's data. Returns its failure, or None."""
        environment = self.target.environment()
        if point.sysbench:
            test = self.folder / point.workload if point.workload in self.spec.scripts else point.workload
            arguments = self.spec.load.sysbench.arguments(point.workload)
            options = [str(test), *arguments, "--threads=1", "--events=1", "--time=0", "--rand-seed=1"]
            environment |= lua_environment(self.folder)
            failure = self._run("sysbench", options, environment)
        else:
            options = ["-n", "-b", point.workload, *self._once(point)]
            failure = self._run("pgbench", options, environment)
        if failure is None:
            return None
        origin = self.spec.origin(point.workload)
        words = failure.words.replace(f"{self.folder}/", "")
        return RehearsalFailure(f"{origin}: {words}", cure_of(self.spec, failure, self.target.owner))

    def parse(self, point: LoadPoint) -> list[RehearsalFailure]:
        """Makes a given server parse the scripts without executing them, if their tables exist. Returns a failure for
        each script that the server refuses. Raises StudyError for a query that would change data."""
        failures = []
        if not self.has_all():
            return []
        with self.target.connect_as_load() as session:
            for script, commands in self._given_commands(point):
                refusal = first_refusal(session, commands, point.protocol)
                if refusal is not None:
                    failures.append(self.failed(script, refusal))
                elif self._changes(script, commands):
                    raise StudyError(
                        f"arms.{self.arm.name}: {_the_query(self.spec, script)} changes data, and on a given server "
                        "the changes stay; write a query that only reads, name a script as workload if the changes are "
                        "intended, or let pgtrial make the server"
                    )
        return failures

    def _changes(self, script: str, commands: Sequence[ScriptCommand]) -> bool:
        """True if the script is a query and changes data. Settings of the session do not count as data."""
        texts = [command.sql for command in commands if command.sql is not None]
        of_queries = self.spec.load.kind.is_of_queries
        if of_queries:
            texts = [text for text in texts if first_word(text) not in ("set", "reset")]
        return (is_query(script) or of_queries) and any(map(changes_data, texts))

    def _given_commands(self, point: LoadPoint) -> Iterator[tuple[str, list[ScriptCommand]]]:
        """Yields each script with its commands, or each query of a suite with its statements."""
        for script in scripts_at(self.spec, point):
            yield script, commands_of(self.spec, self.folder, script)
        for file in point.kind.query_files.values():
            script = f"{point.kind.folder}/{file}"
            parts = statements(self.spec.scripts[script], {})
            yield script, [ScriptCommand(part.line, part.text.splitlines()[0], part.text, ()) for part in parts]

    @property
    def _limit_s(self) -> float:
        load = self.spec.load
        lengths = [length_s for length_s in load.given_s if length_s is not None]
        return max([SHORTEST_LIMIT_S, *lengths])

    def no_longer_than(self, limit_s: float) -> float:
        """Returns the smaller of this time limit and the limit for a script in a rehearsal, in seconds."""
        return min(SHORTEST_LIMIT_S, limit_s)

    def failed(self, script: str, failure: ScriptFailure) -> RehearsalFailure:
        """Returns the failure of a script as a failure of the rehearsal, with the user's file and the line, and the
        advice."""
        location = self.spec.origin(script)
        if failure.command is not None and self.spec.load.kind.is_of_queries:
            part = statements(self.spec.scripts[script], {})[failure.command]
            location = f"{location}, line {part.line}"
        elif failure.command is not None:
            location = commands_of(self.spec, self.folder, script)[failure.command].location_in(location)
        by_server = "PostgreSQL says: " if failure.sqlstate is not None else ""
        words = failure.words.replace(f"{self.folder}/", "").removesuffix(".")
        return RehearsalFailure(f"{location}: {by_server}{words}", cure_of(self.spec, failure, self.target.owner))


def _the_query(spec: StudySpec, script: str) -> str:
    if spec.load.kind.is_of_queries:
        return f"the query {spec.origin(script)}"
    return "the query" if script == QUERY else spec.origin(script)
