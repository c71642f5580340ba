"""The load of a trial, and what the lab does around the load: it prepares the server, starts the load, reads the
server's counters when the measured part begins and ends, and computes how they have changed."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

import psycopg

from pgtrial.conduct.capacity_search import search
from pgtrial.conduct.course import Course, NotWatching, Watching, observed
from pgtrial.conduct.kinds import watch_of
from pgtrial.conduct.own_metrics import EachSecond, each_second, read_after_load
from pgtrial.conduct.packs import check, held, measure
from pgtrial.conduct.progress import Second
from pgtrial.conduct.settle import Checkpoint, run_setup_sql, warm_relations
from pgtrial.conduct.start_load import check_script, probing
from pgtrial.evidence.collect.network import median_round_trip
from pgtrial.evidence.observe import views
from pgtrial.evidence.observe.host import read_host
from pgtrial.evidence.observe.plans import nodes_of
from pgtrial.loads.client_processes import (
    LEAVING_AMONG_OTHERS_S,
    LEAVING_S,
    count_clients,
    wait_for_clients_to_leave,
)
from pgtrial.loads.data.order_entry_tables import violated_condition
from pgtrial.loads.engine import PHASES, EngineRun
from pgtrial.loads.events import Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import TrialError
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.servers import Given
from pgtrial.model.units import patience_s
from pgtrial.servers.arm import Arm, timed


class MeasuredLoad:
    """The load of a trial, and the counters that a session of the lab reads before and after the load."""

    def __init__(self, course: Course, arm: Arm, target: Target, stack: ExitStack) -> None:
        """Opens the lab's sessions, which `stack` closes. Raises psycopg.Error."""
        self._course, self._arm, self._target = course, arm, target
        self._session = stack.enter_context(target.connect())
        self._checkpoint = stack.enter_context(Checkpoint(target))
        self._others = 0
        self._before: views.Counters | None = None
        self._measured_since: float | None = None
        self._sampler: Watching = NotWatching()
        self._each_second: list[EachSecond] = []
        self._timed = ExitStack()
        self.watch = watch_of(course, arm, self._session)
        """The object that does the lab's work around a load of this kind."""
        self._run: LoadRun | None = None
        self._stack = stack

    def begin(self, load: ExitStack) -> LoadRun:
        """Prepares the trial, then starts the load and returns it. Everything that runs at the same time as the load,
        such as the sampler, is registered with `load`, and ends when `load` is closed."""
        course, arm, target = self._course, self._arm, self._target
        self._make_ready(load)
        self._sampler = load.enter_context(observed(course, arm, target))
        self._each_second = load.enter_context(each_second(course, target))
        self.watch.begin(load, target)
        run = load.enter_context(self.watch.started(course, arm, target))
        load.callback(self._timed.close)
        self._timed.enter_context(timed(course.timings, "load"))
        self._sampler.load_begins(run.pid)
        self._run = run
        return run

    def search(self, load: ExitStack) -> None:
        """Prepares the trial and searches for the capacity. Everything that runs during the search is registered with
        `load`, and ends when `load` is closed. Raises TrialError and StudyError."""
        course = self._course
        self._make_ready(load)
        load.callback(self._timed.close)
        self._timed.enter_context(timed(course.timings, "load"))
        search(course, partial(probing, target=self._target), self)

    def _make_ready(self, load: ExitStack) -> None:
        course, target = self._course, self._target
        _check_conditions(course, target, "before")
        _make_ready(course, self._session, self._arm, self._checkpoint, target)
        self.watch.prepare()
        course.round_trip_us = median_round_trip(self._session)
        self._others = count_clients(self._session)
        hold = None if course.point.pack is None else course.point.pack.hold
        load.enter_context(held(course.pack, hold, target))

    def finish(self, run: LoadRun) -> None:
        """Waits for the end of the load's process, which has sent its last event already. If the load has failed,
        records the reason in the trial. Raises StudyError."""
        course = self._course
        status = run.finish()
        self._timed.close()
        course.machines = run.machines(course.outcome.done)
        course.notes += run.notes
        course.note(course.outcome.overrun())
        check_script(course, run)
        self.watch.check_begun(run)
        course.reason = run.trouble or course.outcome.failure(status, run.last_words(), run.maker)
        self.watch.ended(status, run.last_words())

    def measure_begins(self) -> None:
        """Reads the server's counters at the begin of the measured part, if this trial is one that reads them."""
        try:
            self._before = self._counters() if self._counts else None
        except psycopg.OperationalError as error:
            self._course.lose(error)

    def changes(self) -> views.Counters:
        """Returns how the counters have changed since `measure_begins`, once the clients of the load have left."""
        before, self._before = self._before, None
        try:
            wait_for_clients_to_leave(self._session, self._others, _leaving_s(self._arm))
            return views.deltas(before, self._counters()) if before is not None else {}
        except psycopg.OperationalError as error:
            self._course.lose(error)
            return {}

    def hear(self, event: Event) -> None:
        """Adds an event of the load to the outcome of the trial. If the event marks the begin of a phase, does what the
        lab has to do then, such as a checkpoint or reading counters."""
        course = self._course
        course.outcome.add(event)
        match event:
            case {"event": "phase", "phase": "warmup"}:
                self._checkpoint.issue_after(course.turn.wall_s(course.load.phases_s[0]) / 2)
            case {"event": "phase", "phase": "measure"}:
                self._measured_since = time.monotonic()
                self._sampler.measure_begins()
                for reader in self._each_second:
                    reader.begin()
                self.measure_begins()
            case {"event": "pause"} if isinstance(self._run, EngineRun):
                # the lab's own sessions must not take memory of the server, and would be lost at its restart
                self._checkpoint.close()
                self._session.close()
                self.watch.restart(self._run)
            case _ if self.watch.hear(event):
                return
        if event["event"] == "tick" and event["phase"] in PHASES:
            course.listener(Second(course.planned.arm, event["phase"], event["second"], course.outcome.tps_of(event)))

    def collect(self) -> None:
        """Reads the results of the trial from the server: how counters have changed over the measured part, the sizes
        of relations, the plans of statements, and the quality that a pack measures."""
        course, checkpoint, session = self._course, self._checkpoint, self._session
        with timed(course.timings, "collect"):
            checkpoint.close()
            if session.closed and self.watch.restarts:
                session = self._session = self._stack.enter_context(self._target.connect())
            course.checkpoint_s = checkpoint.duration_s
            course.note(checkpoint.note(self._measured_since))
            course.not_permitted += [checkpoint.not_permitted] if checkpoint.not_permitted else []
            try:
                if not course.shared_server:
                    wait_for_clients_to_leave(session, self._others, _leaving_s(self._arm))
                self.watch.end()
                if self._before is not None:
                    course.deltas |= views.deltas(self._before, self._counters())
                course.relations = views.read_relations(session, course.data.relations(session))
                read_after_load(course, self._target)
                self._take_plans()
            except psycopg.OperationalError as error:
                course.lose(error)
        if course.lost is not None and patience_s(course.load.on_server_loss) is None:
            course.fail(course.lost)
        elif (
            course.lost is not None
        ):  # if the study waits for lost servers, the load decides whether the trial has failed
            gone = "the lab's own session was lost with the server, and with it the server's counters"
            course.note(f"{gone}: {course.lost}")
        if course.reason is None:
            _check_conditions(course, self._target, "after")
            if course.pack is not None:
                with timed(course.timings, "check"):
                    check(course.pack, self._target, "after the load")
                with timed(course.timings, "measure"):
                    course.quality = measure(course.pack, self._target)

    def _take_plans(self) -> None:
        """Records the plans of the load's statements. This comes after everything else was read, since the short run
        that finds the statements may change rows."""
        course, target = self._course, self._target
        if course.statements is None:
            return
        found = course.statements(target)
        # the role of the load explains the statements, since planning can execute functions that belong to the data
        with target.connect_as_load() as reader:
            plans = found.plans(reader)
        if course.with_drawn_statistics:
            course.plan_nodes = {text: nodes_of(statement.plan) for text, statement in plans.items() if statement.plan}
        if course.planned.block > 0:
            return
        course.plans = plans
        course.unplanned = not found.are_complete
        if found.left_out:
            kept = len(found.sent)
            course.note(
                f"only the first {kept} statements of the load have plans; {found.left_out} more are not explained"
            )

    @property
    def _counts(self) -> bool:
        """True if this trial reads the counters of its server. If the server is shared, only the first trial does."""
        return not self._course.shared_server or self._course.turn.number == 1

    def _counters(self) -> views.Counters:
        arm, session, alone = self._arm, self._session, self._course.turn.of == 1
        network = not self._target.host.startswith(("/", "@"))
        host = read_host(arm.machine, arm.data_directory, session, network=network, alone=alone)
        return views.read_counters(session) | host


def _make_ready(course: Course, session: Session, arm: Arm, checkpoint: Checkpoint, target: Target) -> None:
    """Prepares the server for the load: runs the arm's own SQL and the check of a pack, reads the relations into the
    cache, and measures their sizes."""
    clients = count_clients(session)
    with timed(course.timings, "warm"):
        run_setup_sql(target, arm.name, arm.setup)
    if course.pack is not None:
        with timed(course.timings, "check"):
            check(course.pack, target, "before the load")
    with timed(course.timings, "warm"):
        missed = warm_relations(target, arm.setup, course.data)
        # sessions that warmed the relations must not count as clients of others
        wait_for_clients_to_leave(session, clients, _leaving_s(arm))
        course.not_permitted += [missed] if missed else []
        if course.load.phases_s[0] == 0 or course.load.kind.searches_rate:
            checkpoint.issue()
    course.relations_before = views.read_relations(session, course.data.relations(session))


def _leaving_s(arm: Arm) -> float:
    """Returns how long a trial waits until the server processes of the load's clients have ended, in seconds."""
    return LEAVING_AMONG_OTHERS_S if isinstance(arm.setup, Given) else LEAVING_S


def _check_conditions(course: Course, target: Target, when: str) -> None:
    """If the study asks for the check of order entry, raises TrialError if the data violate one of its consistency
    conditions. `when` is `before` or `after`, for the message."""
    if not course.load.check or course.point.workload != ORDER_ENTRY:
        return
    with timed(course.timings, "check"):
        violation = violated_condition(target)
    if violation is not None:
        raise TrialError(f"{when} the load {violation}")
