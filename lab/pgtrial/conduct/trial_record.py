"""Makes and writes what is stored of a trial: its record and its tables."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from pgtrial.conduct.course import Course
from pgtrial.conduct.load_statements import known_statements
from pgtrial.evidence.observe import server_log
from pgtrial.evidence.observe.views import of_these
from pgtrial.loads.parsed_statements import FINDS_ROWS, first_word
from pgtrial.model.records.trial import StatementRows, Trial
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.store.files import writing


def record(course: Course, host_seen: dict[str, dict[str, int]]) -> Trial:
    """Returns the record of a trial for trial.json. `host_seen` has the counters of huge pages that the arm has read on
    the server's host."""
    planned, outcome = course.planned, course.outcome
    panic = server_log.panic(course.server_said)
    if course.reason is not None and panic is not None:
        course.reason = f"{course.reason}; the server's log: {panic}"
    return Trial(
        **planned.model_dump(exclude={"load_point"}),
        started=course.started,
        start_failures=course.start_failures,
        reason=course.reason,
        notes=course.notes,
        checkpoint_s=course.checkpoint_s,
        round_trip_us=course.round_trip_us,
        not_permitted=course.not_permitted,
        relations_before=course.relations_before,
        relations=course.relations,
        table_created_s=course.table_created_s,
        own_metrics=course.own_metrics,
        quality=course.quality,
        job=course.job,
        capacity=course.capacity,
        probes=course.probes,
        machines=course.machines,
        load_point=course.point,
        status="completed" if course.reason is None else "failed",
        ended=course.ended,
        phases_s={
            phase: round(seconds / (course.turn.of if phase == "load" else 1), 4)
            for phase, seconds in course.timings.items()
        },
        warmup=outcome.warmup,
        measured=outcome.measured,
        tasks=outcome.tasks,
        kinds=outcome.kinds if course.point.workload == ORDER_ENTRY else [],
        replay=outcome.replay,
        suite=outcome.suite,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        server_deltas={} if course.shared_server else course.deltas,
        shared_deltas=course.deltas if course.shared_server else {},
        statements=course.plans,
        plan_nodes=course.plan_nodes,
        statements_left_out=course.unplanned,
        statement_rows=_statement_rows(course),
        huge_pages=host_seen,
        program=outcome.program,
        failure_spans=outcome.failure_spans,
        server_log_tail=course.server_said,
    )


def _statement_rows(course: Course) -> dict[str, StatementRows]:
    """Returns the number of calls and rows for each statement of the load that finds or changes rows, if the server
    counts them (pg_stat_statements)."""
    counts: dict[str, dict[str, int]] = {}
    if course.observation is not None:
        of_server = course.observation.observed.filter(pl.col("source") == "pg_stat_statements")
        for name, value in of_server.select("name", "value").iter_rows():
            counter, _, text = name.partition(": ")
            if counter in StatementRows.model_fields and first_word(text) in FINDS_ROWS:
                counts.setdefault(text, {})[counter] = round(value)
    # pg_stat_statements counts the lab's own statements as well
    of_load = of_these(counts, known_statements(course.point, course.script)) if counts else ()
    return {text: StatementRows(**counts[text]) for text in of_load if counts[text].keys() == {"calls", "rows"}}


def write_measurements(course: Course) -> None:
    """Writes the tables of the trial into its directory. Raises StoreError."""
    directory, outcome, observation = course.directory, course.outcome, course.observation
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
