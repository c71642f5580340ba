"""The costs of a committed transaction in a trial, such as CPU time, WAL, buffers, flushes, context switches, bytes,
dead rows and growth of tables. Each cost is a ratio within the trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgtrial.model.records.trial import Trial

_ONE_EACH = frozenset({"tpcb-like", "simple-update", "select-only"})
"""The workloads in which each transaction that the load engine counts is exactly one transaction of the server."""


@dataclass(frozen=True)
class Kind:
    """A kind of cost: its name, its unit, and how it is computed from a trial. Its value is None if it is not known."""

    name: str
    unit: str
    of: Callable[[Trial], float | None]
    negligible: float
    """A cost per transaction up to this value does not matter. The cost is not shown at a load point if its median is
    not above this value in any arm."""


def _by_engine(trial: Trial) -> float:
    """Returns the number of committed transactions of the measured part, as the load engine counted them."""
    return float(trial.measured.transactions) if trial.measured else 0.0


def _by_server(trial: Trial) -> float:
    """Returns the number of committed transactions in the time that the server's counters cover, which may start up to
    a second before the measured part.

    The transactions of pgtrial's own sampling session are subtracted. For workloads whose transactions do not match
    those of the server one to one, returns the load engine's count.
    """
    committed = trial.server_deltas.get("database", {}).get("xact_commit")
    if committed is None or trial.load_point.workload not in _ONE_EACH:
        return _by_engine(trial)
    return committed - trial.server_deltas.get("sampler", {}).get("transactions", 0.0)


def _counted(view: str, name: str, factor: float = 1.0) -> Callable[[Trial], float | None]:
    per = _by_engine if view == "host" else _by_server

    def of(trial: Trial) -> float | None:
        value, transactions = trial.server_deltas.get(view, {}).get(name), per(trial)
        return factor * value / transactions if value is not None and transactions > 0 else None

    return of


def _client_cpu(trial: Trial) -> float | None:
    use, transactions = trial.client, _by_engine(trial)
    return 1e6 * (use.cpu_user_s + use.cpu_system_s) / transactions if use and transactions else None


def _growth(*sizes: str) -> Callable[[Trial], float | None]:
    """Returns a function that computes how many bytes the tables or indexes of a trial grew per transaction, over the
    warm-up and the measured part. `sizes` are the names of the sizes that are added up. The value is 0 if they did not
    grow."""

    def of(trial: Trial) -> float | None:
        phases = [phase for phase in (trial.warmup, trial.measured) if phase is not None]
        transactions = sum(phase.transactions for phase in phases)
        if not trial.relations or not trial.relations_before or not transactions:
            return None
        before, after = (
            math.fsum(of_table.get(size, 0.0) for of_table in relations.values() for size in sizes)
            for relations in (trial.relations_before, trial.relations)
        )
        return max(0.0, after - before) / transactions

    return of


def _with_rows(of: Callable[[Trial], float | None]) -> Callable[[Trial], float | None]:
    """Returns a function that computes a cost only for trials with counters of rows, and None for other trials. Trials
    of older versions do not have these counters, and their stored verdicts must stay the same."""
    return lambda trial: of(trial) if "tables" in trial.server_deltas else None


def _not_hot(trial: Trial) -> float | None:
    """Returns the percentage of updates that were not HOT and so wrote new entries into all indexes."""
    rows = trial.server_deltas.get("tables", {})
    updated = rows.get("updated", 0.0)
    return 100 * (updated - rows.get("hot_updated", 0.0)) / updated if updated else None


def _dead_rows(trial: Trial) -> float | None:
    """Returns the number of row versions that updates and deletes left behind, per transaction."""
    rows, transactions = trial.server_deltas.get("tables", {}), _by_server(trial)
    if "updated" not in rows or "deleted" not in rows or not transactions:
        return None
    return (rows["updated"] + rows["deleted"]) / transactions


_TINY_COUNT = 0.01
_TINY_BUFFERS = 0.05
_TINY_BYTES = 10.0
_TINY_US = 0.1

NOT_HOT = "updates that are not HOT"
"""The name of the cost that shows whether there are indexes on changing columns: every update that is not HOT writes
into all indexes of the table."""

KINDS = (
    Kind("server CPU", "us", _counted("host", "server_cpu_s", 1e6), _TINY_US),
    Kind("client CPU", "us", _client_cpu, _TINY_US),
    Kind("CPU of the machine", "us", _counted("host", "cpu_busy_s", 1e6), _TINY_US),
    Kind("WAL", "bytes", _counted("wal", "wal_bytes"), _TINY_BYTES),
    Kind("full-page images", "", _counted("wal", "wal_fpi"), _TINY_COUNT),
    Kind("WAL flushes", "", _counted("wal", "wal_sync"), _TINY_COUNT),
    Kind("buffers hit", "", _counted("database", "blks_hit"), _TINY_BUFFERS),
    Kind("buffers read", "", _counted("database", "blks_read"), _TINY_BUFFERS),
    Kind("buffers written", "", _counted("io", "buffers_written"), _TINY_BUFFERS),
    Kind("device reads", "bytes", _counted("host", "device_read_bytes"), _TINY_BYTES),
    Kind("device writes", "bytes", _counted("host", "device_written_bytes"), _TINY_BYTES),
    Kind("context switches", "", _counted("host", "context_switches"), _TINY_COUNT),
    Kind("network", "bytes", _counted("host", "network_bytes"), _TINY_BYTES),
    Kind(NOT_HOT, "% of updates", _not_hot, 0.1),
    Kind("dead rows", "", _dead_rows, _TINY_COUNT),
    Kind("growth of tables", "bytes", _with_rows(_growth("bytes_table")), 1.0),
    Kind("growth of indexes", "bytes", _with_rows(_growth("bytes_indexes")), 1.0),
)
"""The costs in the order of the report. Costs that are measured for the whole machine (CPU of the machine, context
switches, devices, network) include all programs that ran there."""

GROWTH = Kind("growth", "bytes", _growth("bytes_table", "bytes_indexes"), 1.0)
"""The growth of tables and indexes together. It is compared only if the study declares it as a metric."""

COSTS: Mapping[str, Kind] = {kind.name: kind for kind in (*KINDS, GROWTH)}
"""All costs (such as CPU time or WAL) by name."""

READS = (COSTS["buffers read"], COSTS["device reads"])
"""The costs of reading data: buffers that PostgreSQL read, and reads of the device. They begin to rise at the size at
which the data no longer fits into a cache."""
