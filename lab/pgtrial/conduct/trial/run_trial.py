"""Runs one trial by its order: restores the data, starts the server, reads the relations into the cache, runs the load
with a checkpoint at a fixed moment, reads the results, and stops the server. Each of these steps returns what it has
found, and the record of the trial is made from that.

A trial that goes wrong is a result: it is stored as failed, with one sentence as the reason, and the study continues. A
server that does not start gets a second attempt on a fresh copy of the data; after that the trial has failed. Faults
that do not belong to the trial (a full disk, a lost host, SQL of the study that PostgreSQL refuses) stop the study.
Then nothing is stored for this trial, unless its load had ended already. No such decision depends on which arm the
trial belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from pgtrial.conduct.trial.load import TrialLoad
from pgtrial.conduct.trial.longer_slices import WarmedLoad
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.record import record, write_measurements
from pgtrial.conduct.trial.results import Collected, Loaded, Ready, Started, Stopped, TrialResult
from pgtrial.conduct.trial.server import TrialServer, WhileServed
from pgtrial.loads.events import Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.model.errors import TrialError
from pgtrial.model.records.interruptions import InterruptedTrial
from pgtrial.model.records.trial import Trial


class TrialRunner:
    """Runs one trial. Its methods are called in this order: `begin`, `on_event` for each event of its load, `collect`
    and `stop`. Several trials can run at the same time, each of them with a runner of its own."""

    def __init__(self, order: TrialOrder, while_served: WhileServed | None) -> None:
        self.order = order
        self._while_served = while_served
        self._server = TrialServer(order)
        self._load: TrialLoad | None = None
        """The load of the trial; None if its server has not started."""
        self._started, self._collected, self._stopped = Started(), Collected(), Stopped()

    @property
    def result(self) -> TrialResult:
        """What the steps of the trial have found so far."""
        ready, loaded = (self._load.ready, self._load.found) if self._load is not None else (Ready(), Loaded())
        return TrialResult(self._started, ready, loaded, self._collected, self._stopped)

    @property
    def run(self) -> LoadRun | None:
        """The running load of the trial, as long as its events are read; otherwise None."""
        return self._load.run if self._load is not None else None

    @property
    def warmed(self) -> WarmedLoad | None:
        """The load with the results of its warm-up; None if it did not begin."""
        if self._load is None or not self._load.found.outcome.begun:
            return None
        return WarmedLoad(self.order, self._load.found.outcome.warmup)

    def begin(self) -> None:
        """Starts the server and the engine of the load. Raises ArmError, StudyError and StoreError."""
        self._started = self._server.start()
        if self._started.target is not None:
            self._load = TrialLoad(self.order, self._started.target, self._server.log)
            self._load.begin()

    def fail_to_begin(self, shared: Started) -> None:
        """Makes the trial fail because another trial could not start the server that they share. `shared` has what that
        start has found."""
        self._started = Started(shared.failed, start_failures=shared.start_failures)

    def begin_at(self, at: float) -> None:
        """Sends the start time, by time.monotonic(), to the load, which alternates with others and waits for it."""
        if self._load is not None:
            self._load.begin_at(at)

    def on_event(self, event: Event | TrialError | None) -> None:
        """Handles an event of the load. The argument is an error instead if it has ended the load, and None if the load
        has ended normally. Raises StudyError and StoreError."""
        if self._load is not None:
            self._load.on_event(event)

    def collect(self) -> None:
        """Reads the results of the trial from its server, after the loads of all trials that run together have
        ended. Raises StudyError."""
        if self._load is not None:
            self._collected = self._load.collect()

    def stop(self) -> None:
        """Reads the server's log and stops the server, if it has started."""
        if self._load is not None:
            self._stopped = self._server.stop(self._load, self.result, self._while_served)

    @contextmanager
    def ended_with_the_others(self) -> Iterator[None]:
        """If an error within the context stops the study, ends this trial as well: closes its load, sessions and
        server, and raises the error again."""
        try:
            yield
        except BaseException as error:
            with suppress(type(error)), self._server.stopped_at_the_end(), ExitStack() as load:
                if self._load is not None:
                    load.enter_context(self._load.closed_at_the_end())
                raise error
            raise

    def interrupted(self) -> InterruptedTrial:
        """Returns the record of this trial for the case that the user interrupts it now."""
        measured = self.result.load.outcome.measured
        trial = InterruptedTrial.model_validate(self.order.planned, from_attributes=True)
        under_way_s = round(self.order.beginning.under_way_s, 3)
        return trial.model_copy(update={"under_way_s": under_way_s, "tps": measured.tps if measured else None})

    def recorded(self) -> Trial:
        """Writes the tables of the trial into its directory, and returns the trial's record. Raises StoreError."""
        result = self.result
        write_measurements(self.order, result)
        return record(self.order, result)
