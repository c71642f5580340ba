"""Tables of the capacities of the arms, and of the probes that found them. A capacity is the highest rate at which the
response time keeps a limit, and a probe is a run at one rate."""

from __future__ import annotations

from statistics import median

from pgtrial.model.records.results import Level
from pgtrial.model.records.trial import Probe, Trial
from pgtrial.model.units import grouped
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number, range_text
from pgtrial.report.tables.results import digits, milliseconds


def capacity_tables(data: StudyData) -> list[Table[Level] | Table[tuple[Trial, int, Probe]]]:
    """Returns a table of the capacities (the highest rates at which the response time keeps a limit) by load point and
    arm, and a table of all probes (runs at one rate) that found them. The result is empty if the study does not search
    for capacities."""
    if all(point.capacity is None for point in data.plan.load_points):
        return []
    return [_levels(data), _probes(data)]


def _levels(data: StudyData) -> Table[Level]:
    numbers = grouped(((trial.arm, trial.load_point), len(trial.probes)) for trial in data.trials)

    def probes(level: Level) -> str:
        return f"{median(numbers[level.arm, data.plan.load_points[level.load_point]]):g}"

    return Table(
        "The highest rate at which an arm keeps the promise: the median trial with a distribution-free interval of at "
        "least 95%. Failed transactions, and those that were not started in time, count as slower than the limit.",
        [level for level in data.result.levels if level.tps is not None],
        [
            Column("load point", lambda level: data.labels[level.load_point]),
            Column("arm", lambda level: level.arm),
            number("capacity, 1/s", lambda level: level.tps and digits(level.tps.median)),
            number("95% interval", lambda level: range_text(level.tps_low, level.tps_high)),
            number("trials", lambda level: level.trials),
            number("failed", lambda level: level.failed_trials),
            number("probes of a trial", probes),
        ],
    )


def _probes(data: StudyData) -> Table[tuple[Trial, int, Probe]]:
    rows = [(trial, number, probe) for trial in data.trials for number, probe in enumerate(trial.probes, 1)]
    return Table(
        "All probes, which are runs at one rate. The column of waiting transactions counts those whose "
        "scheduled start had passed at the end and that no client had begun.",
        rows,
        [
            number("trial", lambda row: row[0].index + 1),
            Column("arm", lambda row: row[0].arm),
            number("probe", lambda row: row[1]),
            number("rate, 1/s", lambda row: digits(row[2].rate)),
            number("served, 1/s", lambda row: digits(row[2].tps)),
            number("at the percentile", lambda row: _time(row[2].at_percentile_us)),
            number("slower", lambda row: f"{row[2].slower / row[2].transactions:.2%}" if row[2].transactions else None),
            number("failed", lambda row: row[2].failed),
            number("waiting", lambda row: row[2].waiting),
            number("p99 of the lag", lambda row: _time(row[2].lag_p99_us)),
            Column("promise", lambda row: "kept" if row[2].kept else "broken"),
        ],
    )


def _time(microseconds: float | None) -> str | None:
    return f"{milliseconds(microseconds)} ms" if microseconds is not None else None
