"""Imports metrics from the monitoring of a cloud provider for the stored trials. The metrics of a trial are fetched
once, when the monitoring has complete values for the time of the trial."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import polars as pl

from pgtrial.evidence.observe.cloudwatch import SOURCE, CloudWatch, MetricsError
from pgtrial.files.reading import open_file
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.setup import ProviderMetrics
from pgtrial.model.units import plural
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import PROVIDER_SCHEMA

SETTLED = timedelta(minutes=5)
"""The time from the end of a trial until its values are complete in the provider's monitoring. CloudWatch has the value
for a minute one to three minutes later."""


_TOLD_EVERY = 25
"""The number of trials after which the progress is reported again."""


def measured_arms(study: StudyDirectory) -> dict[str, ProviderMetrics]:
    """Returns, for each arm whose metrics the study asks for, the keys that say where the monitoring of its servers is
    found."""
    return {arm: server.monitoring for arm, server in study.design.given.items() if server.monitoring}


def import_metrics(study: StudyDirectory, on_progress: Callable[[str], None], now: datetime | None = None) -> list[str]:
    """Fetches the metrics of all trials that have none yet and whose values are complete by now. Stores them beside
    each trial.

    Returns one sentence for each reason why metrics are still missing. Errors of the provider's monitoring are among
    these reasons and are not raised. Raises StoreError.
    """
    moment = now or datetime.now(UTC)
    arms = measured_arms(study)
    if not arms:
        return []
    missing: list[str] = []
    with study.locked():
        wanting = [trial for trial in study.trials() if not study.has_provider_metrics(trial)]
        for arm, wanted in arms.items():
            # seconds count from the measured part, so a trial that never reached it can have no metrics
            begun = [(t, since) for t in wanting if t.arm == arm and (since := _measured_since(study, t)) is not None]
            settled = [
                trial_begun for trial_begun in begun if moment - datetime.fromisoformat(trial_begun[0].ended) >= SETTLED
            ]
            try:
                if settled:
                    source = CloudWatch(arm, wanted.cloudwatch, wanted.region)
                    silent = 0
                    for done, (trial, since) in enumerate(settled):
                        if done % _TOLD_EVERY == 0:
                            on_progress(f"{arm}: metrics from CloudWatch, {done} of {plural(len(settled), 'trial')}")
                        silent += not _import(study, trial, source, since, moment)
                    missing += [_silence(arm, source, silent)] if silent else []
            except MetricsError as error:
                missing.append(str(error))
            if len(settled) < len(begun):
                missing.append(
                    f"arms.{arm}: metrics of {plural(len(begun) - len(settled), 'trial')} are still to come, "
                    f"CloudWatch has them {SETTLED.seconds // 60} minutes after a trial"
                )
    return missing


def _import(study: StudyDirectory, trial: Trial, source: CloudWatch, since: datetime, now: datetime) -> bool:
    """Fetches and stores the provider's metrics for the time of a trial, whose measured part began at `since`. Returns
    true if the monitoring has any values for this time."""
    measured_s = trial.measured.duration_s if trial.measured else study.plan.duration_s
    begin, end = since - timedelta(seconds=study.plan.warmup_s), since + timedelta(seconds=measured_s)
    rows = [
        (math.floor((value.since - since).total_seconds()), SOURCE, value.name, value.value, value.span_s)
        for value in source.values(trial.place or 0, begin, end, now)
    ]
    if rows:
        study.write_provider_metrics(trial, pl.DataFrame(rows, schema=PROVIDER_SCHEMA, orient="row"))
    return bool(rows)


def _silence(arm: str, source: CloudWatch, trials: int) -> str:
    return (
        f"arms.{arm}: CloudWatch has no values of {source.names} in {source.region} at the time of "
        f"{plural(trials, 'trial')}; check monitoring.cloudwatch and monitoring.region"
    )


def _measured_since(study: StudyDirectory, trial: Trial) -> datetime | None:
    """Returns the time at which the measured part of a trial began, according to the engine's events; None if it never
    began."""
    started: datetime | None = None
    with suppress(OSError, ValueError), open_file(study.trial_path(trial) / "engine.jsonl") as lines:
        for event in map(json.loads, lines):
            match event:
                case {"event": "hello", "started": str(moment)}:
                    started = datetime.fromisoformat(moment)
                case {"event": "phase", "phase": "measure", "t": int() | float() as after} if started is not None:
                    return started + timedelta(seconds=after)
    return None
