"""Rehearses the study's own metrics: each of them is read once before the first trial."""

from __future__ import annotations

from pgtrial.conduct.preparation.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.preparation.stage import Stage
from pgtrial.loads.own_numbers import NoNumber, OwnNumber
from pgtrial.model import marks
from pgtrial.model.errors import TrialError
from pgtrial.model.study.servers import Given


def rehearsed_metrics(stage: Stage) -> list[RehearsalFailure]:
    """Reads each of the study's own metrics once. Returns a failure for each whose SQL or program fails. Raises
    psycopg.OperationalError.

    It is no failure if a metric has no number yet because the load has not run, or if a table does not exist that the
    load creates.
    """
    failures = []
    if isinstance(stage.arm.setup, Given) and not stage.has_all():
        return []
    for name, section in stage.spec.metrics.items():
        try:
            with OwnNumber(name, section, stage.target) as number:
                number.read_or_none()
        except NoNumber as error:
            if not error.names_missing or not stage.spec.load.kind.starts_programs(stage.spec.load):
                failures.append(_failure(name, error))
        except TrialError as error:
            failures.append(_failure(name, error))
    return failures


def _failure(name: str, error: TrialError) -> RehearsalFailure:
    return RehearsalFailure(f"{marks.key(f'metrics.{name}')}: {error}", "correct the metric, and run the study again")
