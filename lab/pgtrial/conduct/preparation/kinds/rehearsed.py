"""The rehearsal of a load: before the first trial, the lab runs each of its scripts once."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.conduct.packs import check, held, measure
from pgtrial.conduct.preparation.rehearsal_failures import TOO_LONG, RehearsalFailure
from pgtrial.conduct.preparation.stage import Stage
from pgtrial.loads.data.pack_tables import sql_files
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.servers import Given


class LoadRehearsal:
    """The rehearsal of a load of transactions. Each other kind of load has a subclass that overrides the steps in which
    its rehearsal differs."""

    def rehearsed(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        """Rehearses a load point. Returns the failures. Raises StudyError, TrialError and psycopg.OperationalError."""
        return self.on_given(stage, point) if isinstance(stage.arm.setup, Given) else self.on_copy(stage, point)

    def on_given(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        """Makes a given server parse the statements that the load would send, without executing them. Returns the
        failures."""
        return stage.parse(point)

    def on_copy(self, stage: Stage, point: LoadPoint) -> list[RehearsalFailure]:
        """Runs the load once on a copy of the data. Returns the failures."""
        files = sql_files(stage.spec, point)
        if files is not None:
            check(files, stage.target, "in the rehearsal")
        with held(files, None if point.pack is None else point.pack.hold, stage.target):
            failures = [failure for failure in self.runs(stage, point) if failure is not None]
        if failures and any(failure.cure == TOO_LONG for failure in failures):
            failures[0].complain(f"on {stage.arm.name}")
        if files is not None and not failures:
            measure(files, stage.target)
        return failures

    def runs(self, stage: Stage, point: LoadPoint) -> Iterator[RehearsalFailure | None]:
        """Runs the scripts of the load one after the other. Yields for each script its failure, or None if it did not
        fail."""
        return stage.run_scripts(point)
