"""Observes a trial that runs a suite: restarts the server before each query if the study asks for that, and reports
which queries have ended."""

from __future__ import annotations

from pgtrial.conduct.progress import QueryEnds
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.server_log import ServerLog
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Event
from pgtrial.model.errors import TrialError
from pgtrial.servers.made import MadeArm


class SuiteWatch(LoadWatch):
    """The lab's work while a suite runs: it restarts the server before each query if the study asks for that, and
    reports each query that has ended."""

    def __init__(self, order: TrialOrder, log: ServerLog) -> None:
        super().__init__(order)
        self._log = log
        self._ended = 0

    def on_event(self, event: Event) -> bool:
        """Reports a query that has ended to the listener of the study."""
        if event["event"] != "query":
            return False
        self._ended += 1
        suite, counted = self._order.load.suite, event["phase"] == "measure"
        number = (suite.queries or 0) * suite.passes
        self._order.listener(QueryEnds(self._order.planned.arm, event["query"], self._ended, number, counted))
        return True

    def restart(self, run: EngineRun) -> None:
        arm = self._order.arm
        if not isinstance(arm, MadeArm):
            raise TrialError("pgtrial does not restart given servers")
        self._log.fetch()
        self._log.read()
        arm.restart(self._log.file, cold=self._order.load.suite.cache == "cold")
        self._log.skip()
        self.restarts += 1
        run.feed("\n")
