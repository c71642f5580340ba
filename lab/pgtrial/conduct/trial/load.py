"""Runs the load of a trial, and what the lab does around the load: it prepares the server, starts the load, handles its
events, and reads the server's counters when the measured part begins and ends."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg

from pgtrial.conduct.packs import held
from pgtrial.conduct.progress import Second
from pgtrial.conduct.trial.capacity_search import search
from pgtrial.conduct.trial.collect import collect
from pgtrial.conduct.trial.counters import ServerCounters
from pgtrial.conduct.trial.kinds import watch_of
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.longer_slices import WarmedLoad
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.own_metrics import EverySecond
from pgtrial.conduct.trial.ready import make_ready
from pgtrial.conduct.trial.results import Collected, Loaded, Ready, sentence
from pgtrial.conduct.trial.sampled import NotWatching, Watching, sampler_for, seen_in
from pgtrial.conduct.trial.server_log import ServerLog
from pgtrial.conduct.trial.sessions import LabSessions
from pgtrial.conduct.trial.start_load import check_script, start_engine
from pgtrial.loads.engine import PHASES, EngineRun
from pgtrial.loads.events import Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.model.errors import NameTaken, TrialError
from pgtrial.servers.arm import timed


class TrialLoad:
    """The load of a trial. Its methods are called in this order: `begin`, `on_event` for each event of the load, and
    `collect`."""

    def __init__(self, order: TrialOrder, target: Target, log: ServerLog) -> None:
        self.order = order
        self.ready = Ready()
        """What was found before the load."""
        self.found = Loaded()
        """What the load has found so far. It does not change any more when the load has ended."""
        self.run: LoadRun | None = None
        """The running load, as long as its events are read; otherwise None."""
        self.target = target
        """The address of the server."""
        self._log = log
        self._sessions: LabSessions
        self._counters: ServerCounters
        self._watch: LoadWatch | None = None
        self._sampler: Watching = NotWatching()
        self._every_second = EverySecond(order.metrics, target)
        self._loads_begin: float | None = None
        self._measured_since: float | None = None
        self._timed = ExitStack()
        self._of_sessions, self._beside = ExitStack(), ExitStack()
        """The resources to close: the lab's own sessions, and what runs at the same time as the load."""

    def begin(self) -> None:
        """Prepares the server and starts the load. A search for the capacity also runs to its end. Raises ArmError,
        StudyError and StoreError."""
        order = self.order
        with self._running():
            self._sessions = LabSessions(self.target, self._of_sessions)
            self._watch = watch_of(order, self._sessions.reader, self._log)
            self.ready = make_ready(order, self._sessions, self._watch)
            if self.ready.failed is not None:
                return
            self._counters = ServerCounters(order, self._sessions, self.ready.other_clients)
            hold = None if order.point.pack is None else order.point.pack.hold
            self._beside.enter_context(held(order.pack, hold, self.target))
            if order.load.kind.searches_rate:
                # trials that search for a capacity do not alternate, so no events of other loads arrive in the meantime
                self._search()
            else:
                self.run = self._start(self._watch)

    def begin_at(self, at: float) -> None:
        """Sends the start time, by time.monotonic(), to a load that waits for it because it alternates with others."""
        if self.run is not None:
            self._loads_begin = at
            self.run.begin_at(at)

    def on_event(self, event: Event | TrialError | None) -> None:
        """Handles an event of the load. The argument is an error instead if it has ended the load, and None if the load
        has ended normally. Raises StudyError and StoreError."""
        run, watch = self.run, self._watch
        if run is None or watch is None:
            return
        with self._running():
            if isinstance(event, TrialError):
                raise watch.reported(event)
            if event is not None:
                self._handle(event, run, watch)
                return
            self._finish(run, watch)
            self._beside.close()
            self._take_observations()
            self.run, self.found.ended = None, True

    def collect(self) -> Collected:
        """Reads the results of the trial from its server if the load has ended by itself, and closes the lab's
        sessions."""
        with self._of_sessions:
            if not self.found.ended or self._watch is None:
                return Collected()
            return collect(
                self.order,
                self.found,
                self._sessions,
                self._counters,
                self._watch,
                measured_since=self._measured_since,
            )

    def name_taken(self, reason: str | None) -> NameTaken | None:
        """Returns a NameTaken error if the trial has failed for this reason, and `reason` means that the server already
        had an object with a name that the load creates; otherwise None."""
        return self._watch.name_taken(reason, self.found.outcome.refused) if self._watch is not None else None

    @property
    def warmed(self) -> WarmedLoad | None:
        """The load with the results of its warm-up; None if it did not begin."""
        outcome = self.found.outcome
        return WarmedLoad(self.order, outcome.warmup) if outcome.begun else None

    @contextmanager
    def closed_at_the_end(self) -> Iterator[None]:
        """Closes, at the end of the context, everything that runs at the same time as the load, and the lab's
        sessions."""
        with self._of_sessions, self._beside:
            yield

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Ends the load if an error occurs within the context. If the error concerns only this trial, the trial fails
        and the error is not raised."""
        try:
            try:
                yield
            except BaseException as error:
                self.run = None
                with self._beside:
                    raise error
        except (TrialError, psycopg.Error) as error:
            self._take_observations()
            self.found.fail(sentence(error))

    def _start(self, watch: LoadWatch) -> LoadRun:
        """Starts the load, and everything that runs at the same time as the load, such as the sampler."""
        self._sampler = sampler_for(self.order, self.target)
        self._beside.enter_context(self._sampler)
        self._beside.enter_context(self._every_second)
        watch.begin(self._beside, self.target)
        run = self._beside.enter_context(watch.started(self.target))
        self._beside.callback(self._timed.close)
        self._timed.enter_context(timed(self.found.seconds, "load"))
        self._sampler.load_begins(run.pid)
        return run

    def _search(self) -> None:
        """Searches for the capacity."""
        self.found = search(self.order, partial(start_engine, target=self.target), self._counters)
        self._beside.close()
        self.found.ended = self.found.failed is None

    def _handle(self, event: Event, run: LoadRun, watch: LoadWatch) -> None:
        """Adds an event of the load to its outcome. If the event marks the begin of a phase, does what the lab has to
        do then, such as a checkpoint or reading counters."""
        order, outcome = self.order, self.found.outcome
        outcome.add(event)
        match event:
            case {"event": "phase", "phase": "warmup"}:
                self._sessions.checkpoint.issue_after(order.turn.wall_s(order.load.phases_s[0]) / 2)
            case {"event": "phase", "phase": "measure"}:
                self._measured_since = time.monotonic()
                self._sampler.measure_begins()
                self._every_second.begin()
                self._counters.begin()
            case {"event": "pause"} if isinstance(run, EngineRun):
                self._sessions.close()
                watch.restart(run)
            case _ if watch.on_event(event):
                return
        if event["event"] == "tick" and event["phase"] in PHASES:
            order.listener(Second(order.planned.arm, event["phase"], event["second"], outcome.tps_of(event)))

    def _finish(self, run: LoadRun, watch: LoadWatch) -> None:
        """Waits for the end of the load's process, which has sent its last event already, and finds out whether the
        load has failed. Raises StudyError."""
        found = self.found
        status = run.finish()
        self._timed.close()
        found.machines = run.machines(found.outcome.done)
        found.notes += run.notes
        found.note(found.outcome.overrun())
        if not found.outcome.begun:
            check_script(self.order, run)
            watch.check_begun(run)
        failed = run.trouble or found.outcome.failure(status, run.last_words(), run.maker)
        end = watch.ended(found.outcome, failed, status, run.last_words())
        found.failed, found.lost = end.failed, self._counters.lost or end.lost
        found.notes += end.notes
        found.own_metrics = end.own_metrics

    def _take_observations(self) -> None:
        """Adds what was observed at the same time as the load, which has ended."""
        found, measured = self.found, self.found.outcome.measured
        for metric in self._every_second.values(measured.duration_s if measured else math.inf):
            found.take(metric)
        found.observation = seen_in(self.order, self._sampler, found.outcome, self._loads_begin)
        if found.observation is not None:
            if found.observation.cost:
                found.deltas["sampler"] = found.observation.cost
            for note in found.observation.notes:
                found.note(note)
