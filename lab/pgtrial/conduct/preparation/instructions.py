"""Counts the instructions that the server of each arm executes for a transaction, before the first trial of a study
that asks for it.

The counts are taken on servers of their own, which run under valgrind on fresh copies of the data. They do not depend
on what else the machine does, so a count needs no repetition. Each arm is counted twice all the same, which shows
whether its load does the same work each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.settle import run_setup_sql, warm_relations
from pgtrial.conduct.trial.start_load import folder_of
from pgtrial.evidence.instructions.callgrind import Cost, Function, Profile, by_function
from pgtrial.evidence.instructions.counting import (
    SETTINGS,
    USUAL_SETTINGS,
    CountedServer,
    command,
    paused,
    valgrind_version,
)
from pgtrial.loads.command_lines import counted_options, front_end
from pgtrial.loads.command_lines.command_line import Asked
from pgtrial.loads.data.kinds import data_of
from pgtrial.model import marks
from pgtrial.model.errors import StudyError, TrialError, one_line
from pgtrial.model.records.instructions import FunctionCount, InstructionCount, InstructionCounts
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.design import Design
from pgtrial.servers.arm import Arm, Instrument
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.temporary import temporary_folder

_COUNTS = 2
"""How often the instructions of an arm are counted, each time on a fresh copy of the data."""

_LONGER = 3
"""How many times as many transactions the longer of the two runs of a count has."""

_WORK = 400e6
"""The number of instructions that the transactions of both runs of a count have together, as far as the number of
transactions can be chosen so. Under valgrind, they take a few seconds."""

_MOST_TRANSACTIONS = 2_000
_FEWEST_TRANSACTIONS = 5
"""The smallest number of transactions of the shorter run, unless a transaction is long. PostgreSQL plans each of the
first five executions of a prepared statement, and these shall be in both runs."""
_LONG = 100e6
"""The number of instructions from which on a transaction is long, so that its planning does not matter."""
_MOST_INSTRUCTIONS = 1e9
"""The largest number of instructions of one transaction. Longer transactions would take minutes each under valgrind."""

_TRIED = (8, 16)
"""The numbers of transactions of two runs that show how many instructions a transaction has. They have more than five,
since PostgreSQL plans each of the first five executions of a prepared statement."""

_OF_A_SESSION = 100e6
"""The number of instructions that a session with a single short transaction never reaches. If the first transaction has
more, it is so long that those of the session do not matter."""

_KEPT = 1e-5
"""The share of an arm's instructions from which on a function is stored."""


def check_can_count(design: Design) -> None:
    """Raises StudyError if the study asks to count instructions, and valgrind is not installed."""
    if design.load.instructions:
        valgrind_version()


def count_instructions(
    study: StudyDirectory,
    design: Design,
    arms: Mapping[str, Arm],
    workspace: Workspace,
    listener: Listener,
    *,
    values: ValuesOfArms,
) -> None:
    """Counts the instructions of all arms and stores them, if the study asks for it and they are not stored yet. Raises
    StudyError and ArmError."""
    if not design.load.instructions or study.instructions() is not None:
        return
    counts = []
    points: dict[str, LoadPoint] = {}
    for point in design.load_points:
        points.setdefault(point.load, point)
    for point in points.values():
        counted = [
            _CountedArm(study, design, arm, point, workspace, values.get(name, {})) for name, arm in arms.items()
        ]
        listener(Preparing(f"choosing how many transactions of {point.load} are counted"))
        # an arm with another plan may execute a thousand times as many instructions as the others
        transactions = min(one.transactions() for one in counted)
        for one in counted:
            listener(Preparing(f"{one.arm.name}: counting the instructions of {point.load}"))
            counts.append(one.count(transactions))
    study.write_instructions(InstructionCounts(counter=valgrind_version(), counts=counts))


@dataclass(frozen=True)
class _CountedArm:
    """An arm whose instructions are counted under the load of a load point. The load has one client, so that the number
    of clients and the rate do not matter."""

    study: StudyDirectory
    design: Design
    arm: Arm
    point: LoadPoint
    workspace: Workspace
    values: Mapping[str, Path]

    def transactions(self) -> int:
        """Returns the number of transactions for the shorter run of a count, so that a count has a certain number of
        instructions. It depends on the load alone and not on the speed of the machine. Raises StudyError if one
        transaction has too many instructions."""
        with self._server() as server:
            each: float = server.run(self._options(1), 1).total
            if each < _OF_A_SESSION:
                few, more = (server.run(self._options(number), number).total for number in _TRIED)
                each = max(more - few, 1) / (_TRIED[1] - _TRIED[0])
        if each > _MOST_INSTRUCTIONS:
            raise StudyError(
                f"{marks.key('load', 'instructions')}: a transaction of {self.point.load} executes about "
                f"{each / 1e9:,.1f} billion instructions, which take too long to count; choose a smaller scale, or "
                "remove the key"
            )
        number = _round_number(_WORK / each / (1 + _LONGER))
        return number if each > _LONG else max(number, _FEWEST_TRANSACTIONS)

    def count(self, transactions: int) -> InstructionCount:
        """Returns the instructions for each transaction. Raises StudyError and ArmError."""
        differences = []
        for _ in range(_COUNTS):
            with self._server() as server:
                # the first session on a server fills caches that later sessions find
                _, shorter, longer = (
                    server.run(self._options(number), number) for number in (1, transactions, _LONGER * transactions)
                )
                if longer.total <= shorter.total:
                    raise TrialError(
                        f"{_LONGER * transactions} transactions executed no more instructions than {transactions}"
                    )
            differences.append(longer - shorter)
        counted = (_LONGER - 1) * transactions
        return InstructionCount(
            arm=self.arm.name,
            load=self.point.load,
            transactions=transactions,
            runs=[round(one.total / counted, 2) for one in differences],
            functions=_functions(differences, counted),
        )

    @contextmanager
    def _server(self) -> Iterator[CountedServer]:
        """Provides the arm's server under callgrind, in the state in which the load of a trial begins. Raises
        StudyError and ArmError."""
        folder = self.workspace.private_directory(self.workspace.directory("callgrind"))
        data = data_of(self.design.spec, self.point, self.arm.name)
        instrument = Instrument(command(folder), SETTINGS, USUAL_SETTINGS)
        with temporary_folder() as logs, self._complaining():
            log = logs / "log"
            with self.arm.rehearsal(data, log, instrument) as target, paused(target, self.arm.account):
                run_setup_sql(target, self.arm.name, self.arm.setup)
                warm_relations(target, self.arm.setup, data)
                front, load_folder = front_end(self._own_point), folder_of(self._script)
                yield CountedServer(target, log, folder, self.arm.account, front, load_folder)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except (TrialError, psycopg.Error) as error:
            raise StudyError(
                f"{marks.at_arm(self.arm.name)}the instructions cannot be counted: {one_line(error)}; remove "
                f"{marks.key('load', 'instructions')} to run the study without them"
            ) from None

    @property
    def _own_point(self) -> LoadPoint:
        """The load point as this arm runs it."""
        return self.point.for_arm(self.arm.name)

    @property
    def _script(self) -> Path | None:
        return self.study.script(self._own_point)

    def _options(self, transactions: int) -> list[str]:
        asked = Asked(self.design.load, self._own_point, self.study.plan.seed, self._script, values=self.values)
        return counted_options(asked, transactions)


def _round_number(number: float) -> int:
    """Returns the largest of the numbers 1, 2, 5, 10, 20, 50 and so on that is not larger than `number`, within the
    limits of a count."""
    steps = [step * 10**power for power in range(4) for step in (1, 2, 5)]
    return max([step for step in steps if step <= min(number, _MOST_TRANSACTIONS)], default=1)


def _functions(differences: Sequence[Profile], counted: int) -> list[FunctionCount]:
    """Returns the functions of an arm with their instructions for each of `counted` transactions, as the mean of
    several counts. Functions that hardly matter are left out."""
    costs = [by_function(one) for one in differences]
    each = 1 / (counted * len(costs))
    least = _KEPT * sum(one.total for one in differences)
    found = []
    for function in dict.fromkeys(function for of_count in costs for function in of_count):
        of_counts = [of_count.get(function, Cost()) for of_count in costs]
        if max(sum(one.own for one in of_counts), sum(one.below for one in of_counts)) < least:
            continue
        callers: dict[Function, int] = {}
        for one in of_counts:
            for caller, count in one.callers.items():
                callers[caller] = callers.get(caller, 0) + count
        found.append(
            FunctionCount(
                name=function.name,
                program=function.program,
                own=round(each * sum(one.own for one in of_counts), 2),
                below=round(each * sum(one.below for one in of_counts), 2),
                callers={caller.name: round(each * count, 2) for caller, count in callers.items() if count >= least},
            )
        )
    return sorted(found, key=lambda function: (-function.own, function.name, function.program))
