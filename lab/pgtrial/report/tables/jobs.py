"""The table of a job: its time on each arm, and its effects on the server. A job is a set of statements or a program
that ends by itself, such as CREATE INDEX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pgtrial.model.records.trial import JobSummary, Trial
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import digits, milliseconds
from pgtrial.statistics.describe import median_interval

_MB = 1e6
_BESIDE = " Response times are those of the load beside the job, from its start until the load has caught up."


@dataclass(frozen=True)
class _Row:
    """A row of the table: an arm at a load point, with its trials."""

    arm: str
    point: str
    trials: list[Trial]

    @property
    def times_s(self) -> list[float]:
        """The times of the job (such as CREATE INDEX) in the trials that completed, in seconds and in ascending
        order."""
        latencies = [trial.measured.latency_us for trial in self._completed if trial.measured]
        return sorted(latency.mean / 1e6 for latency in latencies if latency is not None)

    @property
    def _completed(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.status == "completed"]

    @property
    def failed(self) -> int:
        """The number of trials in which the job (such as CREATE INDEX) did not end, or failed."""
        return len(self.trials) - len(self._completed)

    def megabytes(self, value: Callable[[JobSummary], float | None]) -> str | None:
        """Returns the median of a size in megabytes, over the trials in which the size is known."""
        summaries = [trial.job for trial in self._completed if trial.job is not None]
        known = [size for summary in summaries if (size := value(summary)) is not None]
        return f"{median(known) / _MB:,.1f}" if known else None

    def milliseconds(self, name: Literal["p50", "p99", "max"]) -> str | None:
        """Returns the median over the trials of a response time: a percentile or the longest one, of the transactions
        that run at the same time as the job."""
        phases = [trial.job.beside for trial in self._completed if trial.job is not None]
        known = [getattr(phase.latency_us, name) for phase in phases if phase is not None and phase.latency_us]
        return milliseconds(median(known)) if known else None


def job_table(data: StudyData) -> Table[_Row]:
    """Returns the table of the job (such as CREATE INDEX), with its time and its effects on each arm. It has no rows if
    the study has no job."""
    rows = [
        _Row(arm, data.labels[index], [t for t in data.trials if t.arm == arm and t.load_point == point])
        for index, point in enumerate(data.plan.load_points)
        if point.job is not None
        for arm in data.plan.arms
    ]
    beside = _beside(rows)
    return Table(
        "The job on each arm: its time, with a distribution-free interval of at least 95%. The other "
        "columns are those of the median trial: the WAL that was written during the job, the growth of "
        "the database on disk, its size after the job, and the largest memory of all processes of the "
        "server together, with shared memory counted once (read four times a second)." + (_BESIDE if beside else ""),
        rows,
        [
            Column("load point", lambda row: row.point),
            Column("arm", lambda row: row.arm),
            number("median, s", lambda row: digits(median(row.times_s)) if row.times_s else None),
            number("95% interval", _interval),
            number("lowest to highest", _range),
            number("WAL, MB", lambda row: row.megabytes(lambda job: job.wal_bytes)),
            number("growth, MB", lambda row: row.megabytes(_growth)),
            number("size then, MB", lambda row: row.megabytes(lambda job: job.size_bytes)),
            number("peak memory, MB", lambda row: row.megabytes(lambda job: job.peak_memory_bytes)),
            *beside,
            number("trials", lambda row: len(row.trials)),
            number("failed", lambda row: row.failed),
        ],
    )


def _beside(rows: list[_Row]) -> list[Column[_Row]]:
    """Returns the columns about the load that runs at the same time as the job (such as CREATE INDEX). The result is
    empty if there is no such load."""
    if all(trial.job is None or trial.job.beside is None for row in rows for trial in row.trials):
        return []
    return [
        number("beside: median, ms", lambda row: row.milliseconds("p50")),
        number("beside: p99, ms", lambda row: row.milliseconds("p99")),
        number("beside: longest, ms", lambda row: row.milliseconds("max")),
    ]


def _interval(row: _Row) -> str | None:
    low, high = median_interval(row.times_s) if row.times_s else (None, None)
    return None if low is None or high is None else f"{digits(low)} to {digits(high)}"


def _range(row: _Row) -> str | None:
    times = row.times_s
    return f"{digits(times[0])} to {digits(times[-1])}" if times else None


def _growth(job: JobSummary) -> float | None:
    return None if job.size_bytes is None else job.size_bytes - job.size_before_bytes
