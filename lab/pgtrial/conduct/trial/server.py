"""Starts and stops the server of a trial, and reads its log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.trial.load import TrialLoad
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.results import Started, Stopped, TrialResult, sentence
from pgtrial.conduct.trial.server_log import ServerLog
from pgtrial.loads.target import Target
from pgtrial.machines.machine import HostTrouble
from pgtrial.model.errors import ArmError, StartError, TrialError
from pgtrial.servers.arm import Arm
from pgtrial.servers.lock_waits import LockWait

WhileServed = Callable[[Arm, Target, int | None, str | None], None]
"""A function that is called after the load while the server of a trial still runs. Its arguments are the arm, the
server's address, the number that was drawn for the trial (`place` in the plan), and the name and version that the arm's
client program reports about itself."""

_ATTEMPTS = 2
_LOCK_ATTEMPTS = 5
_LOCK_PAUSE_S = 2.0
"""The pause between two attempts to get a lock, in seconds. During the pause, sessions that queued behind the first
attempt can get their locks."""


class TrialServer:
    """The server of a trial, from its start to its stop."""

    def __init__(self, order: TrialOrder) -> None:
        self.log = ServerLog(order)
        self._order = order
        self._running = ExitStack()
        """The running server, which is stopped when this is closed."""
        self._seconds: dict[str, float] = {}
        """The wall time in seconds of each phase of the start or the stop, to which the arm adds."""

    def start(self) -> Started:
        """Starts the server, and returns what it has found. It has failed if the server does not start. Raises
        ArmError."""
        found = Started()
        try:
            found.target = self._unlocked(found)
            self.log.skip()
        except TrialError as error:
            found.failed = sentence(error)
        found.seconds = self._seconds_so_far()
        return found

    def stop(self, load: TrialLoad, result: TrialResult, while_served: WhileServed | None) -> Stopped:
        """Reads the server's log, calls `while_served` if the trial has not failed, and stops the server. Returns what
        it has found. `load` is the load of the trial, and `result` what was found up to now."""
        found, order = Stopped(), self._order
        try:
            with self._running:
                with found.failing():
                    self.log.fetch()
                failed = result.load_failed or found.failed
                if (taken := load.name_taken(failed)) is not None:
                    raise taken
                # read the log now, since stopping the server adds messages to it
                self.log.read()
                if failed is None and result.lost is None and while_served is not None:
                    while_served(order.arm, load.target, order.planned.place, load.found.outcome.program)
        except TrialError as error:
            found.host_failed = sentence(error)
        except (ArmError, HostTrouble) as error:
            found.must_stop = error
        found.log_tail = self.log.tail
        found.seconds = self._seconds_so_far()
        return found

    @contextmanager
    def stopped_at_the_end(self) -> Iterator[None]:
        """Stops the server at the end of the context, if it still runs."""
        with self._running:
            yield

    def _unlocked(self, found: Started) -> Target:
        """Starts the server. Tries again if another session holds a lock that pgtrial needs. Raises the errors of
        `_served`."""
        order = self._order
        for _ in range(_LOCK_ATTEMPTS - 1):
            try:
                return self._served(found)
            except LockWait as error:
                order.listener(Preparing(f"{order.arm.name}: {error}; pgtrial tries again", stays=True))
                time.sleep(_LOCK_PAUSE_S)
        return self._served(found)

    def _served(self, found: Started) -> Target:
        """Starts the server, at the second attempt if the first one fails, and adds the failures to `found`. Raises
        ArmError, and TrialError if the server does not start."""
        order = self._order
        for _ in range(_ATTEMPTS):
            if found.start_failures:
                order.listener(Preparing(f"{order.arm.name}: {found.start_failures[-1]}; starting it once more"))
            try:
                served = order.arm.serve(order.data, order.log, self._seconds, order.planned.drawn)
                return self._running.enter_context(served)
            except StartError as error:
                found.start_failures.append(sentence(error))
        raise TrialError(f"the server did not start at {_ATTEMPTS} attempts: {found.start_failures[-1]}")

    def _seconds_so_far(self) -> dict[str, float]:
        """Returns the times of the phases since the last call. The arm keeps the dict, and adds the time of the stop
        later."""
        seconds = dict(self._seconds)
        self._seconds.clear()
        return seconds
