"""Makes and writes the two stored forms of a trial's results: its record and its tables."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from pgtrial.conduct.trial.load_statements import known_statements
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.evidence.observe import server_log
from pgtrial.evidence.observe.views import of_these
from pgtrial.loads.parsed_statements import FINDS_ROWS, first_word
from pgtrial.model.records.trial import StatementRows, Trial
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.store.files import writing


def record(trial: RunningTrial, host_seen: dict[str, dict[str, int]]) -> Trial:
    """Returns the record of a trial for trial.json. `host_seen` has the counters of huge pages that the arm has read on
    the server's host."""
    planned, outcome = trial.planned, trial.outcome
    panic = server_log.panic(trial.server_log_tail)
    if trial.reason is not None and panic is not None:
        trial.reason = f"{trial.reason}; the server's log: {panic}"
    return Trial(
        **planned.model_dump(exclude={"load_point"}),
        started=trial.started,
        start_failures=trial.start_failures,
        reason=trial.reason,
        notes=trial.notes,
        checkpoint_s=trial.checkpoint_s,
        round_trip_us=trial.round_trip_us,
        not_permitted=trial.not_permitted,
        relations_before=trial.relations_before,
        relations=trial.relations,
        table_created_s=trial.table_created_s,
        own_metrics=trial.own_metrics,
        quality=trial.quality,
        job=trial.job,
        capacity=trial.capacity,
        probes=trial.probes,
        machines=trial.machines,
        load_point=trial.point,
        status="completed" if trial.reason is None else "failed",
        ended=trial.ended,
        phases_s={
            phase: round(seconds / (trial.turn.of if phase == "load" else 1), 4)
            for phase, seconds in trial.timings.items()
        },
        warmup=outcome.warmup,
        measured=outcome.measured,
        tasks=outcome.tasks,
        kinds=outcome.kinds if trial.point.workload == ORDER_ENTRY else [],
        replay=outcome.replay,
        suite=outcome.suite,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        server_deltas={} if trial.shared_server else trial.deltas,
        shared_deltas=trial.deltas if trial.shared_server else {},
        statements=trial.plans,
        plan_nodes=trial.plan_nodes,
        statements_left_out=trial.unplanned,
        statement_rows=_statement_rows(trial),
        huge_pages=host_seen,
        program=outcome.program,
        failure_spans=outcome.failure_spans,
        server_log_tail=trial.server_log_tail,
    )


def _statement_rows(trial: RunningTrial) -> dict[str, StatementRows]:
    """Returns the number of calls and rows for each statement of the load that finds or changes rows, if the server
    counts them (pg_stat_statements)."""
    counts: dict[str, dict[str, int]] = {}
    if trial.observation is not None:
        of_server = trial.observation.observed.filter(pl.col("source") == "pg_stat_statements")
        for name, value in of_server.select("name", "value").iter_rows():
            counter, _, text = name.partition(": ")
            if counter in StatementRows.model_fields and first_word(text) in FINDS_ROWS:
                counts.setdefault(text, {})[counter] = round(value)
    # pg_stat_statements counts the lab's own statements as well
    of_load = of_these(counts, known_statements(trial.point, trial.script)) if counts else ()
    return {text: StatementRows(**counts[text]) for text in of_load if counts[text].keys() == {"calls", "rows"}}


def write_measurements(trial: RunningTrial) -> None:
    """Writes the tables of the trial into its directory. Raises StoreError."""
    directory, outcome, observation = trial.directory, trial.outcome, trial.observation
    with writing(directory):
        outcome.timeline().write_parquet(directory / "timeline.parquet")
        if outcome.slice_s is not None:
            outcome.slices().write_parquet(directory / "slices.parquet")
        if observation is not None:
            observation.waits.write_parquet(directory / "waits.parquet")
            observation.observed.write_parquet(directory / "observed.parquet")
        if outcome.histogram:
            (directory / "latency.hdr").write_text(outcome.histogram + "\n")


def now() -> str:
    """Returns the present time in UTC, in the format of ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
