"""The load of a trial, and what the lab does around the load: it prepares the server, starts the load, reads the
server's counters when the measured part begins and ends, and computes how they have changed."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial

import psycopg

from pgtrial.conduct.packs import check, held, measure
from pgtrial.conduct.progress import Second
from pgtrial.conduct.trial.capacity_search import search
from pgtrial.conduct.trial.kinds import watch_of
from pgtrial.conduct.trial.own_metrics import EachSecond, each_second, read_after_load
from pgtrial.conduct.trial.running_trial import NotWatching, RunningTrial, Watching, observed
from pgtrial.conduct.trial.settle import Checkpoint, run_setup_sql, warm_relations
from pgtrial.conduct.trial.start_load import check_script, probing
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

    def __init__(self, trial: RunningTrial, arm: Arm, target: Target, stack: ExitStack) -> None:
        """Opens the lab's sessions, which `stack` closes. Raises psycopg.Error."""
        self._trial, self._arm, self._target = trial, arm, target
        self._session = stack.enter_context(target.connect())
        self._checkpoint = stack.enter_context(Checkpoint(target))
        self._others = 0
        self._before: views.Counters | None = None
        self._measured_since: float | None = None
        self._sampler: Watching = NotWatching()
        self._each_second: list[EachSecond] = []
        self._timed = ExitStack()
        self.watch = watch_of(trial, arm, self._session)
        """The object that does the lab's work around a load of this kind."""
        self._run: LoadRun | None = None
        self._stack = stack

    def begin(self, load: ExitStack) -> LoadRun:
        """Prepares the trial, then starts the load and returns it. Everything that runs at the same time as the load,
        such as the sampler, is registered with `load`, and ends when `load` is closed."""
        trial, arm, target = self._trial, self._arm, self._target
        self._make_ready(load)
        self._sampler = load.enter_context(observed(trial, arm, target))
        self._each_second = load.enter_context(each_second(trial, target))
        self.watch.begin(load, target)
        run = load.enter_context(self.watch.started(trial, arm, target))
        load.callback(self._timed.close)
        self._timed.enter_context(timed(trial.timings, "load"))
        self._sampler.load_begins(run.pid)
        self._run = run
        return run

    def search(self, load: ExitStack) -> None:
        """Prepares the trial and searches for the capacity. Everything that runs during the search is registered with
        `load`, and ends when `load` is closed. Raises TrialError and StudyError."""
        trial = self._trial
        self._make_ready(load)
        load.callback(self._timed.close)
        self._timed.enter_context(timed(trial.timings, "load"))
        search(trial, partial(probing, target=self._target), self)

    def _make_ready(self, load: ExitStack) -> None:
        trial, target = self._trial, self._target
        _check_conditions(trial, target, "before")
        _make_ready(trial, self._session, self._arm, self._checkpoint, target)
        self.watch.prepare()
        trial.round_trip_us = median_round_trip(self._session)
        self._others = count_clients(self._session)
        hold = None if trial.point.pack is None else trial.point.pack.hold
        load.enter_context(held(trial.pack, hold, target))

    def finish(self, run: LoadRun) -> None:
        """Waits for the end of the load's process, which has sent its last event already. If the load has failed,
        records the reason in the trial. Raises StudyError."""
        trial = self._trial
        status = run.finish()
        self._timed.close()
        trial.machines = run.machines(trial.outcome.done)
        trial.notes += run.notes
        trial.note(trial.outcome.overrun())
        check_script(trial, run)
        self.watch.check_begun(run)
        trial.reason = run.trouble or trial.outcome.failure(status, run.last_words(), run.maker)
        self.watch.ended(status, run.last_words())

    def measure_begins(self) -> None:
        """Reads the server's counters at the begin of the measured part, if this trial is one that reads them."""
        try:
            self._before = self._counters() if self._counts else None
        except psycopg.OperationalError as error:
            self._trial.lose(error)

    def changes(self) -> views.Counters:
        """Returns how the counters have changed since `measure_begins`, once the clients of the load have left."""
        before, self._before = self._before, None
        try:
            wait_for_clients_to_leave(self._session, self._others, _leaving_s(self._arm))
            return views.deltas(before, self._counters()) if before is not None else {}
        except psycopg.OperationalError as error:
            self._trial.lose(error)
            return {}

    def on_event(self, event: Event) -> None:
        """Adds an event of the load to the outcome of the trial. If the event marks the begin of a phase, does what the
        lab has to do then, such as a checkpoint or reading counters."""
        trial = self._trial
        trial.outcome.add(event)
        match event:
            case {"event": "phase", "phase": "warmup"}:
                self._checkpoint.issue_after(trial.turn.wall_s(trial.load.phases_s[0]) / 2)
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
            case _ if self.watch.on_event(event):
                return
        if event["event"] == "tick" and event["phase"] in PHASES:
            trial.listener(Second(trial.planned.arm, event["phase"], event["second"], trial.outcome.tps_of(event)))

    def collect(self) -> None:
        """Reads the results of the trial from the server: how counters have changed over the measured part, the sizes
        of relations, the plans of statements, and the number that a pack (a workload in a folder of SQL files) measures
        by its measure.sql."""
        trial, checkpoint, session = self._trial, self._checkpoint, self._session
        with timed(trial.timings, "collect"):
            checkpoint.close()
            if session.closed and self.watch.restarts:
                session = self._session = self._stack.enter_context(self._target.connect())
            trial.checkpoint_s = checkpoint.duration_s
            trial.note(checkpoint.note(self._measured_since))
            trial.not_permitted += [checkpoint.not_permitted] if checkpoint.not_permitted else []
            try:
                if not trial.shared_server:
                    wait_for_clients_to_leave(session, self._others, _leaving_s(self._arm))
                self.watch.end()
                if self._before is not None:
                    trial.deltas |= views.deltas(self._before, self._counters())
                trial.relations = views.read_relations(session, trial.data.relations(session))
                read_after_load(trial, self._target)
                self._take_plans()
            except psycopg.OperationalError as error:
                trial.lose(error)
        if trial.lost is not None and patience_s(trial.load.on_server_loss) is None:
            trial.fail(trial.lost)
        elif (
            trial.lost is not None
        ):  # if the study waits for lost servers, the load decides whether the trial has failed
            gone = "the lab's own session was lost with the server, and with it the server's counters"
            trial.note(f"{gone}: {trial.lost}")
        if trial.reason is None:
            _check_conditions(trial, self._target, "after")
            if trial.pack is not None:
                with timed(trial.timings, "check"):
                    check(trial.pack, self._target, "after the load")
                with timed(trial.timings, "measure"):
                    trial.quality = measure(trial.pack, self._target)

    def _take_plans(self) -> None:
        """Records the plans of the load's statements. This comes after everything else was read, since the short run
        that finds the statements may change rows."""
        trial, target = self._trial, self._target
        if trial.statements is None:
            return
        found = trial.statements(target)
        # the role of the load explains the statements, since planning can execute functions that belong to the data
        with target.connect_as_load() as reader:
            plans = found.plans(reader)
        if trial.with_drawn_statistics:
            trial.plan_nodes = {text: nodes_of(statement.plan) for text, statement in plans.items() if statement.plan}
        if trial.planned.block > 0:
            return
        trial.plans = plans
        trial.unplanned = not found.are_complete
        if found.left_out:
            kept = len(found.sent)
            trial.note(
                f"only the first {kept} statements of the load have plans; {found.left_out} more are not explained"
            )

    @property
    def _counts(self) -> bool:
        """True if this trial reads the counters of its server. If the server is shared, only the first trial does."""
        return not self._trial.shared_server or self._trial.turn.number == 1

    def _counters(self) -> views.Counters:
        arm, session, alone = self._arm, self._session, self._trial.turn.of == 1
        network = not self._target.host.startswith(("/", "@"))
        host = read_host(arm.machine, arm.data_directory, session, network=network, alone=alone)
        return views.read_counters(session) | host


def _make_ready(trial: RunningTrial, session: Session, arm: Arm, checkpoint: Checkpoint, target: Target) -> None:
    """Prepares the server for the load: runs the arm's own SQL and the check of a pack, reads the relations into the
    cache, and measures their sizes."""
    clients = count_clients(session)
    with timed(trial.timings, "warm"):
        run_setup_sql(target, arm.name, arm.setup)
    if trial.pack is not None:
        with timed(trial.timings, "check"):
            check(trial.pack, target, "before the load")
    with timed(trial.timings, "warm"):
        missed = warm_relations(target, arm.setup, trial.data)
        # sessions that warmed the relations must not count as clients of others
        wait_for_clients_to_leave(session, clients, _leaving_s(arm))
        trial.not_permitted += [missed] if missed else []
        if trial.load.phases_s[0] == 0 or trial.load.kind.searches_rate:
            checkpoint.issue()
    trial.relations_before = views.read_relations(session, trial.data.relations(session))


def _leaving_s(arm: Arm) -> float:
    """Returns how long a trial waits until the server processes of the load's clients have ended, in seconds."""
    return LEAVING_AMONG_OTHERS_S if isinstance(arm.setup, Given) else LEAVING_S


def _check_conditions(trial: RunningTrial, target: Target, when: str) -> None:
    """Checks the consistency conditions of order entry if the study asks for that. Raises TrialError if the data
    violate one of them. `when` is `before` or `after`, for the message."""
    if not trial.load.check or trial.point.workload != ORDER_ENTRY:
        return
    with timed(trial.timings, "check"):
        violation = violated_condition(target)
    if violation is not None:
        raise TrialError(f"{when} the load {violation}")
