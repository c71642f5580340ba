"""The tables of trials: all trials, the failed trials, the CPU time of the load engine, and the phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from pgtrial.model.records.interruptions import InterruptedTrial, Interruption
from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import FailureSpan, Trial
from pgtrial.model.units import percent
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, by_position, number
from pgtrial.report.tables.results import levels_text, milliseconds


def trial_table(data: StudyData) -> Table[Trial]:
    """Returns the table of all trials in the order of execution. The CPU time of the load engine and the round trips
    have columns only if they were recorded."""
    timed = any(t.round_trip_us is not None for t in data.trials)
    costed = any(t.client and t.client.cpu_per_transaction_us is not None for t in data.trials)
    levels = {t.index: t.regime.segments for cell in data.result.regimes for t in cell.not_flat}
    trip = "lab's round trip us" if any(t.machines for t in data.trials) else "round trip us"

    def tps(trial: Trial) -> str | None:
        if trial.index in levels:
            return levels_text([segment.tps for segment in levels[trial.index]])
        return f"{trial.capacity or trial.measured.tps:,.1f}" if trial.measured else None

    return Table(
        "Every trial in the order of execution.",
        data.trials,
        [
            number("trial", lambda t: t.index + 1),
            number("block", lambda t: t.block + 1),
            Column("load point", lambda t: t.load_point.label),
            Column("arm", lambda t: t.arm),
            *([Column("levels", lambda t: _levels(data.plan, t))] if data.plan.factors else []),
            Column("status", lambda t: t.status),
            number(rate_unit(data.plan.load_points), tps),
            number("committed", lambda t: t.measured and t.measured.transactions, ","),
            number("failed", lambda t: sum(t.measured.failures.values()) if t.measured else None, ","),
            *(number(f"{name} ms", _latency(name), milliseconds) for name in ("mean", "p50", "p99")),
            *([number("client us", lambda t: t.client and t.client.cpu_per_transaction_us, ".2f")] if costed else []),
            number("busiest thread", lambda t: t.client and t.client.busiest_thread_share, ".0%"),
            *([number(trip, lambda t: t.round_trip_us, ",.0f")] if timed else []),
            number("seed", lambda t: t.seed),
            Column("started (UTC)", lambda t: _moment(t.started)),
            Column("phases, s", lambda t: " ".join(f"{name} {spent:.1f}" for name, spent in t.phases_s.items())),
            Column("remarks", _remarks),
        ],
    )


def _levels(plan: Plan, trial: Trial) -> str:
    """Returns the levels of a trial in a screening study, such as `jit=off, work_mem=4MB`."""
    pairs = zip(plan.factors, trial.levels or "", strict=True)
    return ", ".join(factor.labels[int(level)] for factor, level in pairs)


def _latency(name: str) -> Callable[[Trial], float | None]:
    return lambda t: getattr(t.measured.latency_us, name) if t.measured and t.measured.latency_us else None


def _moment(time: str) -> str:
    return time.replace("T", " ")[:19]


def _remarks(trial: Trial) -> str:
    warnings = [warning.message for warning in trial.client.warnings] if trial.client else []
    return "; ".join([*([trial.reason] if trial.reason else []), *trial.notes, *warnings])


def failure_tables(data: StudyData) -> list[Table[Any]]:
    """Returns the failures by arm, the failed trials, the interrupted trials, the times at which transactions failed,
    and the last messages in the servers' logs."""
    failures = Table(
        "Failures over all trials. Failed transactions are not part of the throughput.",
        data.result.failures,
        [
            Column("arm", lambda entry: entry.arm),
            number("failed trials", lambda entry: f"{entry.failed_trials} of {entry.trials}"),
            number("committed", lambda entry: entry.transactions, ","),
            number("failed", lambda entry: entry.failed_transactions, ","),
            number("share failed", lambda entry: entry.share, percent),
            Column("by SQLSTATE or kind", lambda entry: _by_arm(entry.by_kind)),
            number("aborted clients", lambda entry: entry.aborted_clients),
        ],
    )
    trials = Table(
        "Failed trials.",
        data.result.failed_trials,
        [
            number("trial", lambda failed: failed.index + 1),
            number("block", lambda failed: failed.block + 1),
            Column("arm", lambda failed: failed.arm),
            Column("load point", lambda failed: data.labels[failed.load_point]),
            Column("reason", lambda failed: failed.reason),
            Column("effect", lambda failed: "void: both failed" if failed.void else "counts as the worst rank"),
        ],
    )
    lossy = [trial for trial in data.trials if trial.status == "failed" or trial.server_log_tail]
    spans = Table(
        "The times at which transactions failed, in trials that failed or whose server's log has messages.",
        [
            (trial.index + 1, trial.arm, _PARTS[span.phase], span.kind, _seconds(span), f"{span.failures:,}")
            for trial in lossy
            for span in trial.failure_spans
        ],
        by_position("trial", "arm", "part", "SQLSTATE or kind", "second", "failed", right=[0, 5]),
    )
    log = Table(
        "The last messages in the server's log during the load.",
        [(trial.index + 1, trial.arm, line) for trial in data.trials for line in trial.server_log_tail],
        by_position("trial", "arm", "line", right=[0]),
    )
    return [failures, trials, _interrupted(data), spans, log]


def _interrupted(data: StudyData) -> Table[tuple[Interruption, InterruptedTrial]]:
    """Returns the table of the trials that were interrupted. Each row has the speed that the trial had reached, and
    the median speed of the same arm for comparison."""

    def usual(row: tuple[Interruption, InterruptedTrial]) -> float | None:
        ended = row[1]
        alike = [
            t for t in data.trials if (t.arm, t.load_point) == (ended.arm, data.plan.load_points[ended.load_point])
        ]
        return _median([trial.measured.tps for trial in alike if trial.measured])

    return Table(
        "Interrupted trials. Each of them ran again, and does not count anywhere else.",
        [(interruption, trial) for interruption in data.result.interruptions for trial in interruption.trials],
        [
            number("trial", lambda row: row[1].index + 1),
            number("block", lambda row: row[1].block + 1),
            Column("arm", lambda row: row[1].arm),
            Column("load point", lambda row: data.labels[row[1].load_point]),
            Column("by", lambda row: row[0].how),
            number("after s", lambda row: row[1].under_way_s, ",.1f"),
            number(f"{rate_unit(data.plan.load_points)} until then", lambda row: row[1].tps, ",.0f"),
            number(f"arm's median {rate_unit(data.plan.load_points)}", usual, ",.0f"),
            Column("noted (UTC)", lambda row: _moment(row[0].noted)),
        ],
    )


_PARTS = {"warmup": "warm-up", "measure": "measured part"}


def _seconds(span: FailureSpan) -> str:
    return f"{span.first_s}" if span.first_s == span.last_s else f"{span.first_s} to {span.last_s}"


def phase_table(data: StudyData) -> Table[str]:
    """Returns the table of the wall time that each phase of a trial takes, by arm."""
    names = dict.fromkeys(name for trial in data.trials for name in trial.phases_s)

    def spent(name: str) -> Callable[[str], float | None]:
        return lambda arm: _median([t.phases_s[name] for t in data.trials if t.arm == arm and name in t.phases_s])

    return Table(
        "The median wall time of the phases of a trial, in seconds.",
        data.plan.arms,
        [
            Column("arm", lambda arm: arm),
            *(number(name, spent(name), ".2f") for name in names),
            number("trials", lambda arm: sum(trial.arm == arm for trial in data.trials)),
        ],
    )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def client_table(data: StudyData) -> Table[Sequence[str]]:
    """Returns the table of the CPU time that the load engine used. It has no rows for trials of older versions, which
    did not measure it."""
    rows = []
    for point, arm in data.cells:
        uses = [t.client for t in data.trials if (t.load_point, t.arm) == (point, arm) and t.client]
        costs = [use.cpu_per_transaction_us for use in uses if use.cpu_per_transaction_us is not None]
        busiest = [use.busiest_thread_share for use in uses]
        warned = f"{sum(bool(use.warnings) for use in uses)} of {len(uses)}"
        if costs:
            cells = [f"{median(costs):.2f}", f"{median(busiest):.0%}", f"{max(busiest):.0%}", warned]
            rows.append([point.label, arm, *cells])
    heads = ("load point", "arm", "client us per transaction", "busiest thread", "highest", "trials with a warning")
    return Table(
        "The load engine: the CPU time of its load threads for each transaction, in microseconds, and "
        "that of the busiest thread divided by the wall time, in the median and in the highest trial. "
        "The last column counts the trials in which the engine warned that it was itself a bottleneck. "
        "If that is more than one in eight for an arm, the comparison is withheld unless the study "
        "allows it.",
        rows,
        by_position(*heads, right=range(2, 6)),
    )


def _by_arm(counts: dict[str, int]) -> str | None:
    """Returns counts as text, such as `off: 1,200, on: 3`; None if there are none."""
    return ", ".join(f"{name}: {number:,}" for name, number in counts.items()) or None
