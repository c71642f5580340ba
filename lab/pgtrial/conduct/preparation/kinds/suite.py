"""Rehearses a load that is a suite: each of its queries runs once."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pgtrial.conduct.preparation.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.preparation.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.preparation.stage import Stage
from pgtrial.loads.command_lines.suite import suite_options
from pgtrial.loads.engine import PAUSE
from pgtrial.loads.query_runs import failed_queries
from pgtrial.model.records.load_point import LoadPoint


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
