"""Observes a trial that runs a suite: restarts the server before each query if the study asks for that, and reports
which queries have ended. The module also has the rehearsal of a suite."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pgtrial.conduct.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.kinds.watch import LoadWatch
from pgtrial.conduct.progress import QueryEnds
from pgtrial.conduct.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.running_trial import RunningTrial
from pgtrial.conduct.stage import Stage
from pgtrial.evidence.observe.server_log import last_lines
from pgtrial.loads.command_lines.suite import suite_options
from pgtrial.loads.engine import PAUSE, EngineRun
from pgtrial.loads.events import Event
from pgtrial.loads.query_runs import failed_queries
from pgtrial.model.errors import TrialError
from pgtrial.model.records.load_point import LoadPoint
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


class SuiteRehearsal(LoadRehearsal):
    """The rehearsal of a suite: each query runs once. A query that is cancelled at the time limit does not count as
    failed."""

    def runs(self, stage: Stage, point: LoadPoint) -> Iterator[RehearsalFailure | None]:
        if point.suite is None:
            return
        once = point.model_copy(update={"suite": point.suite.model_copy(update={"runs": 1})})
        options = [option for option in suite_options(once, stage.script(point)) if option not in ("--warmup", PAUSE)]
        began = time.monotonic()
        failed = failed_queries(options, stage.target.environment(), stage.spec.load.longest_s)
        if stage.passes_s is not None:
            stage.passes_s.append(time.monotonic() - began)
        for query, failure in failed.items():
            yield stage.failed(f"{point.suite.name}/{point.suite.query_files[query]}", failure)
