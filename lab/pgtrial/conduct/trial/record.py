"""Makes and writes the two stored forms of a trial's results: its record and its tables."""

from __future__ import annotations

import polars as pl

from pgtrial.conduct.trial.load_statements import known_statements
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.results import TrialResult
from pgtrial.evidence.observe import server_log
from pgtrial.evidence.observe.host import WHOLE_HOST
from pgtrial.evidence.observe.sampler import Observation
from pgtrial.evidence.observe.views import of_these
from pgtrial.loads.parsed_statements import FINDS_ROWS, first_word
from pgtrial.model.records.trial import StatementRows, Trial
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.store.files import writing


def record(order: TrialOrder, result: TrialResult) -> Trial:
    """Returns the record of a trial for trial.json, from its order and what all of its steps have found."""
    ready, load, collected, stopped = result.ready, result.load, result.collected, result.stopped
    deltas = {view: changes for view, changes in result.deltas.items() if view != WHOLE_HOST}
    outcome, reason = load.outcome, result.reason
    if reason is not None and (panic := server_log.panic(stopped.log_tail)) is not None:
        reason = f"{reason}; the server's log: {panic}"
    return Trial(
        **order.planned.model_dump(exclude={"load_point"}),
        load_point=order.point,
        status="completed" if reason is None else "failed",
        reason=reason,
        started=order.beginning.wall_clock,
        ended=order.beginning.present,
        start_failures=result.started.start_failures,
        notes=[*order.notes, *result.notes, *order.arm.notes],
        phases_s={
            phase: round(seconds / (order.turn.of if phase == "load" else 1), 4)
            for phase, seconds in result.seconds.items()
        },
        checkpoint_s=collected.checkpoint_s,
        round_trip_us=ready.round_trip_us,
        not_permitted=[*ready.not_permitted, *collected.not_permitted],
        relations_before=ready.relations_before,
        relations=collected.relations,
        table_created_s=ready.table_created_s,
        own_metrics=result.own_metrics,
        quality=collected.quality,
        job=collected.job,
        capacity=load.capacity,
        probes=load.probes,
        machines=load.machines,
        warmup=outcome.warmup,
        measured=outcome.measured,
        tasks=outcome.tasks,
        kinds=outcome.kinds if order.point.workload == ORDER_ENTRY else [],
        replay=outcome.replay,
        suite=outcome.suite,
        aborted_clients=outcome.aborted_clients,
        client=outcome.client,
        failure_spans=outcome.failure_spans,
        program=outcome.program,
        server_deltas={} if order.shared_server else deltas,
        shared_deltas=deltas if order.shared_server else {},
        host_deltas=result.deltas.get(WHOLE_HOST, {}),
        statements=collected.plans,
        plan_nodes=collected.plan_nodes,
        statements_left_out=collected.unplanned,
        statement_rows=_statement_rows(order, load.observation),
        huge_pages=order.arm.host_seen,
        server_log_tail=stopped.log_tail,
    )


def _statement_rows(order: TrialOrder, observation: Observation | None) -> dict[str, StatementRows]:
    """Returns the number of calls and rows for each statement of the load that finds or changes rows, if the server
    counts them (pg_stat_statements)."""
    counts: dict[str, dict[str, int]] = {}
    if observation is not None:
        of_server = observation.observed.filter(pl.col("source") == "pg_stat_statements")
        for name, value in of_server.select("name", "value").iter_rows():
            counter, _, text = name.partition(": ")
            if counter in StatementRows.model_fields and first_word(text) in FINDS_ROWS:
                counts.setdefault(text, {})[counter] = round(value)
    # pg_stat_statements counts the lab's own statements as well
    of_load = of_these(counts, known_statements(order.point, order.script)) if counts else ()
    return {text: StatementRows(**counts[text]) for text in of_load if counts[text].keys() == {"calls", "rows"}}


def write_measurements(order: TrialOrder, result: TrialResult) -> None:
    """Writes the tables of the trial into its directory. Raises StoreError."""
    directory, outcome, observation = order.directory, result.load.outcome, result.load.observation
    with writing(directory):
        outcome.timeline().write_parquet(directory / "timeline.parquet")
        if outcome.slice_s is not None:
            outcome.slices().write_parquet(directory / "slices.parquet")
        if observation is not None:
            observation.waits.write_parquet(directory / "waits.parquet")
            observation.observed.write_parquet(directory / "observed.parquet")
        if outcome.histogram:
            (directory / "latency.hdr").write_text(outcome.histogram + "\n")
