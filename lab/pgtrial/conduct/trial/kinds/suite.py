"""Observes a trial that runs a suite: restarts the server before each query if the study asks for that, and reports
which queries have ended."""

from __future__ import annotations

from pgtrial.conduct.progress import QueryEnds
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.evidence.observe.server_log import last_lines
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.events import Event
from pgtrial.model.errors import TrialError
from pgtrial.servers.arm import Arm
from pgtrial.servers.made import MadeArm


class SuiteWatch(LoadWatch):
    """The lab's work while a suite runs: it restarts the server before each query if the study asks for that, and
    reports each query that has ended."""

    def __init__(self, trial: RunningTrial, arm: Arm) -> None:
        self._trial, self._arm = trial, arm
        self._ended = 0

    def on_event(self, event: Event) -> bool:
        """Reports a query that has ended to the listener of the study."""
        if event["event"] != "query":
            return False
        self._ended += 1
        suite, counted = self._trial.load.suite, event["phase"] == "measure"
        number = (suite.queries or 0) * suite.passes
        self._trial.listener(QueryEnds(self._trial.planned.arm, event["query"], self._ended, number, counted))
        return True

    def restart(self, run: EngineRun) -> None:
        if not isinstance(self._arm, MadeArm):
            raise TrialError("pgtrial does not restart given servers")
        trial = self._trial
        log = trial.directory / "server.log"
        self._arm.fetch_log(log)
        trial.server_log_tail += last_lines(log, trial.log_read)
        self._arm.restart(log, cold=trial.load.suite.cache == "cold")
        trial.log_read = log.stat().st_size
        self.restarts += 1
        run.feed("\n")
