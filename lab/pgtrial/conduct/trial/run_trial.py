"""Runs one trial: restores the data, starts the server, reads the relations into the cache, runs the load with a
checkpoint at a fixed moment, reads the results, and stops the server.

A trial that goes wrong is a result: it is stored as failed, with one sentence as the reason, and the study continues. A
server that does not start gets a second attempt on a fresh copy of the data; after that the trial has failed. Faults
that do not belong to the trial (a full disk, a lost host, SQL of the study that PostgreSQL refuses) stop the study.
Then nothing is stored for this trial, unless its load had ended already. No such decision depends on which arm the
trial belongs to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.trial.measured_load import MeasuredLoad
from pgtrial.conduct.trial.running_trial import RunningTrial, sentence
from pgtrial.conduct.trial.trial_record import record, write_measurements
from pgtrial.conduct.trial.unsent import check_sent
from pgtrial.evidence.observe import server_log
from pgtrial.loads.events import Event
from pgtrial.loads.load_run import LoadRun
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.errors import ArmError, StartError, TrialError
from pgtrial.model.records.trial import Trial
from pgtrial.servers.arm import Arm
from pgtrial.servers.lock_waits import LockWait

WhileServed = Callable[[Arm, Target, int | None, str | None], None]
"""A function that is called after the load while the server of a trial still runs. Its arguments are the arm, the
server's address, the number that was drawn for the trial (`place` in the plan), and the name and version that the arm's
client program reports about itself."""


class TrialRunner:
    """Runs one trial. Its methods are called in this order: `begin`, `on_event` for each event of its load, `collect`
    and `stop`.

    Several trials can run at the same time, each of them with a runner of its own, which collects all results in
    `trial`.
    """

    def __init__(self, trial: RunningTrial, arm: Arm, while_served: WhileServed | None) -> None:
        self.trial, self.arm = trial, arm
        self.run: LoadRun | None = None
        """The running load of the trial, as long as its events are read; otherwise None."""
        self.must_stop: ArmError | HostTrouble | None = None
        """An error that stops the study after this trial is stored; None if the study can continue."""
        self.ended = False
        """True if the server of the trial is stopped, or was never started."""
        self._while_served = while_served
        self._log = trial.directory / "server.log"
        self._target: Target
        self._measured: MeasuredLoad | None = None
        self._load_ended = False
        self._server, self._sessions, self._load = ExitStack(), ExitStack(), ExitStack()
        """The resources to close at the end of the trial: those of the server, of the lab's own sessions, and of the
        load."""

    def begin(self) -> None:
        """Starts the server and the engine of the load. Raises ArmError, StudyError and StoreError."""
        trial = self.trial
        if trial.reason is not None:  # for example, the shared server did not start
            self.ended = True
            return
        try:
            with ExitStack() as server:
                self._target = _served(trial, self.arm, self._log, server)
                trial.log_read = self._log.stat().st_size
                self._server = server.pop_all()
        except TrialError as error:
            trial.fail_with(sentence(error))
            self.ended = True
            return
        with self._loading():
            self._measured = MeasuredLoad(trial, self.arm, self._target, self._sessions)
            if not trial.load.kind.searches_rate:
                self.run = self._measured.begin(self._load)
                return
            # trials that search for a capacity do not alternate, so no events of other loads arrive during the search
            self._measured.search(self._load)
            self._load.close()
            self._load_ended = True

    def on_event(self, event: Event | TrialError | None) -> None:
        """Handles an event of the load. The argument is an error instead if it has ended the load, and None if the load
        has ended normally. Raises StudyError and StoreError."""
        if self.run is None or self._measured is None:
            return
        with self._loading():
            if isinstance(event, TrialError):
                raise self._measured.watch.reported(event)
            if event is not None:
                self._measured.on_event(event)
                return
            self._measured.finish(self.run)
            self._load.close()
            self.run, self._load_ended = None, True

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Ends the load if an error occurs within the context. If the error concerns only this trial, the trial fails
        and the error is not raised."""
        with self.trial.failing():
            try:
                yield
            except BaseException as error:
                self.run = None
                with self._load:
                    raise error

    def collect(self) -> None:
        """Reads the results of the trial from its server, after the loads of all trials that run together have
        ended."""
        if self._load_ended and self._measured is not None:
            with self.trial.failing():
                self._measured.collect()
                check_sent(self.trial)
        self._sessions.close()

    def stop(self) -> None:
        """Reads the server's log, calls `while_served`, and stops the server."""
        trial = self.trial
        if self.ended:
            return
        self.ended = True
        try:
            with self._server:
                with trial.failing():
                    self.arm.fetch_log(self._log)
                if self._measured is not None and (taken := self._measured.watch.name_taken()) is not None:
                    raise taken
                # read the log now, since stopping the server adds messages to it
                trial.server_log_tail += server_log.last_lines(self._log, trial.log_read)
                if trial.reason is None and trial.lost is None and self._while_served is not None:
                    self._while_served(self.arm, self._target, trial.planned.place, trial.outcome.program)
        except TrialError as error:
            trial.fail_with(sentence(error))
        except (ArmError, HostTrouble) as error:
            self.must_stop = error

    @contextmanager
    def ended_with_the_others(self) -> Iterator[None]:
        """If an error within the context stops the study, ends this trial as well: closes its load, sessions and
        server, and raises the error again."""
        try:
            yield
        except BaseException as error:
            with suppress(type(error)), self._server, self._sessions, self._load:
                raise error
            raise

    def recorded(self) -> Trial:
        """Writes the tables of the trial into its directory, and returns the trial's record. Raises StoreError."""
        self.trial.notes += self.arm.notes
        write_measurements(self.trial)
        return record(self.trial, self.arm.host_seen)


_ATTEMPTS = 2
_LOCK_ATTEMPTS = 5
_LOCK_PAUSE_S = 2.0
"""The pause between two attempts to get a lock, in seconds. During the pause, sessions that queued behind the first
attempt can get their locks."""


def _served(trial: RunningTrial, arm: Arm, log: Path, stack: ExitStack) -> Target:
    """Starts the arm's server, which runs until `stack` is closed. Tries again if another session holds a lock that
    pgtrial needs.

    Raises ArmError, and TrialError if the server does not start.
    """
    for _ in range(_LOCK_ATTEMPTS - 1):
        try:
            return _started(trial, arm, log, stack)
        except LockWait as error:
            trial.listener(Preparing(f"{arm.name}: {error}; pgtrial tries again", stays=True))
            time.sleep(_LOCK_PAUSE_S)
    return _started(trial, arm, log, stack)


def _started(trial: RunningTrial, arm: Arm, log: Path, stack: ExitStack) -> Target:
    for _ in range(_ATTEMPTS):
        if trial.start_failures:
            trial.listener(Preparing(f"{arm.name}: {trial.start_failures[-1]}; starting it once more"))
        try:
            return stack.enter_context(arm.serve(trial.data, log, trial.timings, trial.planned.drawn))
        except StartError as error:
            trial.start_failures.append(sentence(error))
    raise TrialError(f"the server did not start at {_ATTEMPTS} attempts: {trial.start_failures[-1]}")
