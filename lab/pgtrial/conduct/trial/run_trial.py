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
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.record import record, write_measurements
from pgtrial.conduct.trial.results import Collected, Loaded, Ready, Started, Stopped, TrialResult
from pgtrial.conduct.trial.server import TrialServer, WhileServed
from pgtrial.model.records.interruptions import InterruptedTrial
from pgtrial.model.records.trial import Trial


class TrialRunner:
    """Runs one trial. Its methods are called in this order: `begin`, `collect` and `stop`. After `begin`, the events of
    the load are passed to `load`. Several trials can run at the same time, each of them with a runner of its own."""

    def __init__(self, order: TrialOrder, while_served: WhileServed | None) -> None:
        self.order = order
        self.load: TrialLoad | None = None
        """The load of the trial; None if its server has not started."""
        self._while_served = while_served
        self._server = TrialServer(order)
        self._started, self._collected, self._stopped = Started(), Collected(), Stopped()

    @property
    def result(self) -> TrialResult:
        """What the steps of the trial have found so far."""
        ready, loaded = (self.load.ready, self.load.found) if self.load is not None else (Ready(), Loaded())
        return TrialResult(self._started, ready, loaded, self._collected, self._stopped)

    def begin(self) -> None:
        """Starts the server and the engine of the load. Raises ArmError, StudyError and StoreError."""
        self._started = self._server.start()
        if self._started.target is not None:
            self.load = TrialLoad(self.order, self._started.target, self._server.log)
            self.load.begin()

    def fail_to_begin(self, shared: Started) -> None:
        """Makes the trial fail because another trial could not start the server that they share. `shared` has what that
        start has found."""
        self._started = Started(shared.failed, start_failures=shared.start_failures)

    def collect(self) -> None:
        """Reads the results of the trial from its server, after the loads of all trials that run together have
        ended. Raises StudyError."""
        if self.load is not None:
            self._collected = self.load.collect()

    def stop(self) -> None:
        """Reads the server's log and stops the server, if it has started."""
        if self.load is not None:
            self._stopped = self._server.stop(self.load, self.result, self._while_served)

    @contextmanager
    def ended_with_the_others(self) -> Iterator[None]:
        """If an error within the context stops the study, ends this trial as well: closes its load, sessions and
        server, and raises the error again."""
        try:
            yield
        except BaseException as error:
            with suppress(type(error)), self._server.stopped_at_the_end(), ExitStack() as load:
                if self.load is not None:
                    load.enter_context(self.load.closed_at_the_end())
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
