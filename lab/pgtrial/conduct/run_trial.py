"""One trial: restore, start, warm, load with a checkpoint at a fixed moment, collect, stop.

A trial that goes wrong is a result: it has failed, with one sentence, and the study goes on. A server that does not
start gets a second attempt, on a fresh copy; then its trial has failed. What is wrong with the lab itself (a full disk,
a host that is gone, SQL of the study that PostgreSQL refuses) stops the study, with nothing stored for this trial
unless its load had ended. No decision depends on the arm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pgtrial.conduct.course import Course, sentence
from pgtrial.conduct.measured_load import MeasuredLoad
from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.trial_record import record, write_measurements
from pgtrial.conduct.unsent import check_sent
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
"""A function that is called while the server of a trial still runs. Its arguments are the arm, the server's address,
the trial's place, and the name and version that the arm's client program gives for itself."""


class RunningTrial:
    """A trial that is under way. Its methods are called in this order: `begin`, `hear` for each event of its load,
    `collect` and `stop`.

    Several trials can be under way at the same time. All results are gathered in `course`.
    """

    def __init__(self, course: Course, arm: Arm, while_served: WhileServed | None) -> None:
        self.course, self.arm = course, arm
        self.run: LoadRun | None = None
        """The load of the trial, as long as its events are read; None otherwise."""
        self.must_stop: ArmError | HostTrouble | None = None
        """The error that stops the study once this trial is stored."""
        self.ended = False
        """True if the server of the trial is stopped, or was never started."""
        self._while_served = while_served
        self._log = course.directory / "server.log"
        self._target: Target
        self._measured: MeasuredLoad | None = None
        self._load_ended = False
        self._server, self._sessions, self._load = ExitStack(), ExitStack(), ExitStack()
        """The resources to close at the end: those of the server, of the lab's own sessions, and of the load."""

    def begin(self) -> None:
        """Starts the server and the engine of the load. Raises ArmError, StudyError and StoreError."""
        course = self.course
        if course.reason is not None:  # for example, the shared server did not start
            self.ended = True
            return
        try:
            with ExitStack() as server:
                self._target = _served(course, self.arm, self._log, server)
                course.log_read = self._log.stat().st_size
                self._server = server.pop_all()
        except TrialError as error:
            course.fail_with(sentence(error))
            self.ended = True
            return
        with self._loading():
            self._measured = MeasuredLoad(course, self.arm, self._target, self._sessions)
            if not course.load.kind.searches_rate:
                self.run = self._measured.begin(self._load)
                return
            # trials that search a capacity do not alternate, so that no other load has events meanwhile
            self._measured.search(self._load)
            self._load.close()
            self._load_ended = True

    def hear(self, event: Event | TrialError | None) -> None:
        """Takes an event of the load, the error that ended it, or None at its end. Raises StudyError and StoreError."""
        if self.run is None or self._measured is None:
            return
        with self._loading():
            if isinstance(event, TrialError):
                raise self._measured.watch.reported(event)
            if event is not None:
                self._measured.hear(event)
                return
            self._measured.finish(self.run)
            self._load.close()
            self.run, self._load_ended = None, True

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """A context manager within which an error ends the load. If the error concerns the trial alone, the trial fails
        and the error is not raised.
        """
        with self.course.failing():
            try:
                yield
            except BaseException as error:
                self.run = None
                with self._load:
                    raise error

    def collect(self) -> None:
        """Reads what has changed over the measured part, once the loads of all trials are over."""
        if self._load_ended and self._measured is not None:
            with self.course.failing():
                self._measured.collect()
                check_sent(self.course)
        self._sessions.close()

    def stop(self) -> None:
        """Reads the server's log and stops the server."""
        course = self.course
        if self.ended:
            return
        self.ended = True
        try:
            with self._server:
                with course.failing():
                    self.arm.fetch_log(self._log)
                if self._measured is not None and (taken := self._measured.watch.name_taken()) is not None:
                    raise taken
                # the log is read here, before the lab's own stop of the server adds to it
                course.server_said += server_log.last_lines(self._log, course.log_read)
                if course.reason is None and course.lost is None and self._while_served is not None:
                    self._while_served(self.arm, self._target, course.planned.place, course.outcome.program)
        except TrialError as error:
            course.fail_with(sentence(error))
        except (ArmError, HostTrouble) as error:
            self.must_stop = error

    @contextmanager
    def ended_with_the_others(self) -> Iterator[None]:
        """A context manager within which an error that stops the study ends this trial as well: load, sessions and
        server are closed with that error.
        """
        try:
            yield
        except BaseException as error:
            with suppress(type(error)), self._server, self._sessions, self._load:
                raise error
            raise

    def recorded(self) -> Trial:
        """Writes the tables of the trial and returns its record. Raises StoreError."""
        self.course.notes += self.arm.notes
        write_measurements(self.course)
        return record(self.course, self.arm.host_seen)


_ATTEMPTS = 2
_LOCK_ATTEMPTS = 5
_LOCK_PAUSE_S = 2.0
"""The time between two attempts to get a lock, for those who queued behind the first."""


def _served(course: Course, arm: Arm, log: Path, stack: ExitStack) -> Target:
    """Starts the arm's server, which runs until `stack` ends.

    Raises ArmError, and TrialError if it does not start at any attempt.
    """
    for _ in range(_LOCK_ATTEMPTS - 1):
        try:
            return _started(course, arm, log, stack)
        except LockWait as error:
            course.listener(Preparing(f"{arm.name}: {error}; pgtrial tries again", stays=True))
            time.sleep(_LOCK_PAUSE_S)
    return _started(course, arm, log, stack)


def _started(course: Course, arm: Arm, log: Path, stack: ExitStack) -> Target:
    for _ in range(_ATTEMPTS):
        if course.start_failures:
            course.listener(Preparing(f"{arm.name}: {course.start_failures[-1]}; starting it once more"))
        try:
            return stack.enter_context(arm.serve(course.data, log, course.timings, course.planned.drawn))
        except StartError as error:
            course.start_failures.append(sentence(error))
    raise TrialError(f"the server did not start at {_ATTEMPTS} attempts: {course.start_failures[-1]}")
