"""Makes the servers of a rehearsal of an upgrade, gives all of them the same data, and compares what each statement
does on them.

The old version and the new one run at the same time, each on a copy of its data that is removed afterwards. Each
statement runs in a transaction that is rolled back, so that all statements find the data of the dump.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pgtrial.conduct.preparation.ready_arms import check_arms, load_arms, with_builds
from pgtrial.conduct.preparation.rehearsal import as_study_error
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.settle import run_setup_sql
from pgtrial.conduct.upgrade.rows import other_rows
from pgtrial.conduct.upgrade.statement_server import Ran, StatementServer
from pgtrial.conduct.upgrade.statements import NamedStatement
from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import ENGINE_HERE
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.records.trial import LoadStatement
from pgtrial.model.records.upgrade import ArmName, OnNew, OtherPlan, OtherRows, RehearsedStatement, UpgradedArm
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.abilities import check_abilities
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.dumped import take_dump
from pgtrial.servers.made import MadeArm
from pgtrial.servers.run_directory import is_full
from pgtrial.servers.workspace import Workspace
from pgtrial.store.files import writing
from pgtrial.store.own_data import data_paths, dump_to_be_taken, is_to_be_dumped, with_data
from pgtrial.store.temporary import temporary_folder
from pgtrial.verdict.plans import PlanPair

DUMP = "data.dump"
"""The name of the dump of the user's database in the directory of a rehearsal."""


@dataclass(frozen=True)
class Rehearsed:
    """The findings of a rehearsal."""

    versions: tuple[str, str]
    """The old version and the new one, as PostgreSQL prints them."""
    data: list[str]
    """The paths of the dump, or of the files of SQL, with the data of all arms."""
    arms: list[UpgradedArm]
    statements: list[RehearsedStatement]


def rehearse_upgrade(
    spec: StudySpec,
    named: Sequence[NamedStatement],
    directory: Path,
    listener: Listener,
    *,
    limit_s: float,
    by_pg_upgrade: bool,
) -> Rehearsed:
    """Compares what each statement does on the first arm of the study, the old version, and on the second one.

    `directory` is that of the rehearsal; it gets the dump if the data is a database. `limit_s` is the time in seconds
    after which a statement is cancelled. With `by_pg_upgrade`, the new version also gets the data by pg_upgrade.

    Raises StudyError, ArmError and StoreError. If the new version refuses the data, that is a finding and no error; if
    it refuses them in every way, no statement is compared.
    """
    with ExitStack() as stack:
        workspace = stack.enter_context(Workspace())
        for notice in workspace.notices:
            listener(Preparing(notice, stays=True))
        design = _dumped(with_builds(Design(spec), workspace, listener), directory, listener)
        needs = replace(Needs.of(design), at_once=len(design.servers) + by_pg_upgrade)
        check_abilities(design, needs.data)
        arms = make_arms(design, workspace)
        for arm in arms.values():
            stack.callback(arm.close)
        notes: set[str] = set()
        check_arms(needs, arms, ENGINE_HERE, listener, notes)
        old, new = arms.values()
        load_arms(needs, {old.name: old}, listener, notes)
        logs = stack.enter_context(temporary_folder())
        servers = Servers(old, new, needs.largest, logs, stack, limit_s, listener)
        base = servers.of_old()
        servers.restore(partial(load_arms, needs, {new.name: new}, listener, notes))
        if by_pg_upgrade:
            servers.upgrade()
        versions = servers.versions(base)
        comparison = Comparison(base, servers.on_new)
        for number, statement in enumerate(named if servers.on_new else (), start=1):
            listener(Preparing(f"statement {number} of {len(named)}: {statement.name}"))
            comparison.add(statement)
        if (upgraded := servers.on_new.get("pg_upgraded")) is not None and servers.analyze(upgraded):
            comparison.compare_again("pg_upgraded, analysed", upgraded)
        return Rehearsed(versions, list(design.spec.load.data), servers.arms, comparison.found)


def _dumped(design: Design, directory: Path, listener: Listener) -> Design:
    """Returns the design with a dump in place of a database that the study names as its data. The dump is taken once,
    and stays in the directory of the rehearsal, so that the studies of times have the same data. Raises StudyError,
    ArmError and StoreError."""
    if not is_to_be_dumped(design.spec):
        return design
    spec = dump_to_be_taken(design.spec)
    notice = take_dump(replace(design, spec=spec))
    if notice is not None:
        listener(Preparing(notice, stays=True))
    dump = directory / DUMP
    with writing(dump):
        shutil.move(data_paths(spec)[0], dump)
    load = spec.load.model_copy(update={"data": [str(dump)], "data_files": None})
    return replace(design, spec=with_data(spec.model_copy(update={"load": load}), Path(), "--data"))


@dataclass
class Servers:
    """The servers of a rehearsal. All of them run until `stack` is closed."""

    old: Arm
    new: Arm
    data: Data
    logs: Path
    stack: ExitStack
    limit_s: float
    listener: Listener
    arms: list[UpgradedArm] = field(default_factory=list)
    on_new: dict[ArmName, StatementServer] = field(default_factory=dict)
    """The servers of the new version, by the way in which they got their data."""

    def of_old(self) -> StatementServer:
        """Starts the server of the old version. Raises StudyError and ArmError."""
        return self._served(self.old, self.old.rehearsal(self.data, self.logs / "old"))

    def restore(self, load: Callable[[], None]) -> None:
        """Restores the data on the new version by calling `load`, and starts its server. A failure is noted. Raises it
        if the disk of this machine is full."""
        with self._noted("restored"):
            load()
            self.on_new["restored"] = self._served(self.new, self.new.rehearsal(self.data, self.logs / "restored"))

    def upgrade(self) -> None:
        """Brings a copy of the old version's data to the new version by pg_upgrade, and starts its server. A failure is
        noted. Raises it if the disk of this machine is full."""
        old, new = self.old, self.new
        if not isinstance(old, MadeArm) or not isinstance(new, MadeArm):
            return
        if (why := new.why_not_upgraded(old)) is not None:
            self.arms.append(UpgradedArm(name="pg_upgraded", failure=why, is_absent=True))
            return
        self.listener(Preparing(f"{new.name}: pg_upgrade of a copy of the data of {old.name}"))
        with self._noted("pg_upgraded"):
            self.on_new["pg_upgraded"] = self._served(new, new.upgraded(old, self.data, self.logs / "upgraded"))

    def analyze(self, upgraded: StatementServer) -> bool:
        """Runs ANALYZE on the server that has its data by pg_upgrade. Returns false if it fails, which is noted. Raises
        StudyError if the disk of this machine is full."""
        self.listener(Preparing(f"{self.new.name}: ANALYZE after pg_upgrade"))
        with self._noted("pg_upgraded, analysed"):
            upgraded.analyze()
        return self.arms[-1].failure is None

    def versions(self, base: StatementServer) -> tuple[str, str]:
        """Returns the old version and the new one. If the new version has not got its data in any way, its place has
        the name of its arm. Raises StudyError."""
        first = next(iter(self.on_new.values()), None)
        return base.version, self.new.name if first is None else first.version

    @contextmanager
    def _noted(self, name: ArmName) -> Iterator[None]:
        """A context in which the new version gets its data in this way. At its end the arm is noted, with the error if
        there is one. The error is raised if the disk of this machine is full, which says nothing about the new
        version."""
        failure = None
        try:
            yield
        except (ArmError, StudyError) as error:
            if is_full(f"{error}"):
                raise
            failure = str(error).removeprefix(f"arms.{self.new.name}: ").removesuffix(".")
            self.listener(Preparing(f"{error}", stays=True))
        self.arms.append(UpgradedArm(name=name, failure=failure))

    def _served(self, arm: Arm, running: AbstractContextManager[Target]) -> StatementServer:
        target = self.stack.enter_context(running)
        with as_study_error(arm.name):
            run_setup_sql(target, arm.name, arm.setup)
        server = StatementServer(arm.name, target, self.limit_s)
        self.stack.callback(server.close)
        return server


@dataclass
class Comparison:
    """Compares statements between the old version and the arms of the new one."""

    base: StatementServer
    on_new: Mapping[ArmName, StatementServer]
    found: list[RehearsedStatement] = field(default_factory=list)
    _plans: dict[str, LoadStatement] = field(default_factory=dict)
    """The plans on the old version, by the name of the statement."""

    def add(self, statement: NamedStatement) -> None:
        """Compares a statement. Raises StudyError if a server cannot be reached any more."""
        parts = statement.parts
        ran = self.base.run(parts)
        why_not = _why_not(ran)
        record = RehearsedStatement(
            name=statement.name, text=statement.text, executions=statement.executions, not_compared=why_not
        )
        if why_not is None:
            self._plans[statement.name] = plan = self.base.plan(parts)
            on: dict[ArmName, OnNew] = {}
            vary = False
            for name, server in self.on_new.items():
                on[name], varies = self._on(server, parts, ran, plan)
                vary = vary or varies
            record = record.model_copy(update={"on": on, "rows_vary": vary})
        self.found.append(record)

    def compare_again(self, name: ArmName, server: StatementServer) -> None:
        """Compares the plans of all statements once more, on a server whose planner statistics have changed, and stores
        the result under `name`. Statements that exceeded the limit before run once more. Raises StudyError."""
        for number, record in enumerate(self.found):
            if (before := record.on.get("pg_upgraded")) is None:
                continue
            again, varies = before, False
            parts, plan = NamedStatement(record.name, record.text).parts, self._plans[record.name]
            if before.over_limit:
                again, varies = self._on(server, parts, self.base.run(parts), plan)
            elif before.error is None:
                again = before.model_copy(update={"plan": _other_plan(plan, server.plan(parts))})
            keys = {"on": {**record.on, name: again}, "rows_vary": record.rows_vary or varies}
            self.found[number] = record.model_copy(update=keys)

    def _on(self, server: StatementServer, parts: Sequence[str], old: Ran, plan: LoadStatement) -> tuple[OnNew, bool]:
        """Returns what is different on an arm of the new version, and true if the rows vary between executions on one
        version."""
        new = server.run(parts)
        if new.error is not None:
            return OnNew(error=new.error), False
        rows, varies = self._rows(server, parts, old, new)
        return OnNew(over_limit=new.over_limit, rows=rows, plan=_other_plan(plan, server.plan(parts))), varies

    def _rows(self, server: StatementServer, parts: Sequence[str], old: Ran, new: Ran) -> tuple[OtherRows | None, bool]:
        """Returns the difference between the rows. If there is one, both versions execute the statement once more: rows
        that depend on chance or on the time are no difference between the versions."""
        if new.over_limit or (rows := other_rows(old.results, new.results)) is None:
            return None, False
        pairs = [(old, self.base.run(parts)), (new, server.run(parts))]
        if not any(_differ(first, second) for first, second in pairs):
            return rows, False
        if any(_differ(first, second, counts_alone=True) for first, second in pairs):
            return None, True
        return other_rows(old.results, new.results, counts_alone=True), True


def _differ(first: Ran, second: Ran, *, counts_alone: bool = False) -> bool:
    """True if the second execution did not end as the first one did, or returned other rows."""
    ended_alike = second.error is None and not second.over_limit
    return not ended_alike or other_rows(first.results, second.results, counts_alone=counts_alone) is not None


def _why_not(ran: Ran) -> str | None:
    """Returns why a statement cannot be compared after it has run on the old version; None if it can."""
    if ran.why_not is not None:
        return ran.why_not
    if ran.error is not None:
        return f"it fails on the old version: {ran.error.message}"
    return "it takes longer than the limit on the old version" if ran.over_limit else None


def _other_plan(old: LoadStatement, new: LoadStatement) -> OtherPlan | None:
    """Returns the plans of a statement if both are known and their shapes differ."""
    pair = PlanPair(old, new)
    if not old.plan or not new.plan or pair.has_same_shape:
        return None
    at_old, at_new = pair.first_difference()
    return OtherPlan(at_old=at_old, at_new=at_new, old=old.plan, new=new.plan)
