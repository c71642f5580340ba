"""The tables of what the server did: active sessions by wait event, and what observing took."""

from __future__ import annotations

from statistics import median

from pgtrial.report.data import StudyData
from pgtrial.report.series import OTHER, events_shown, measured_load
from pgtrial.report.tables import NONE, Table


def server_tables(data: StudyData) -> list[Table]:
    """None for a study that was not observed."""
    return [_wait_table(data), _sampler_table(data)] if data.waits else []


def _wait_table(data: StudyData) -> Table:
    events = events_shown(data)
    rows = []
    for point in data.plan.load_points:
        for arm in data.plan.arms:
            load = measured_load(data, point, arm)
            if load is None:
                continue
            rest = sum(sessions for event, sessions in load.items() if event not in events)
            cells = [rest if event == OTHER else load.get(event, 0.0) for event in events]
            rows.append([point.label, arm, f"{sum(load.values()):.2f}", *(f"{sessions:.2f}" for sessions in cells)])
    caption = (
        "Mean number of active sessions in the measured part, and what they waited for: clients and their parallel "
        "workers, from samples of pg_stat_activity; the largest wait events of the study."
    )
    return Table(caption, ["load point", "arm", "active", *events], rows, frozenset(range(2, 3 + len(events))))


def _sampler_table(data: StudyData) -> Table:
    rows = []
    for arm in data.plan.arms:
        seen = [(t.server_deltas["sampler"], t) for t in data.trials if t.arm == arm and "sampler" in t.server_deltas]
        if not seen:
            continue
        spans = [(cost, trial.measured.duration_s) for cost, trial in seen if trial.measured]
        cells = []
        for name in ("lab_cpu_s", "server_cpu_s", "statements_s"):
            shares = [cost[name] / span for cost, span in spans if name in cost and span]
            cells.append(f"{median(shares):.2%}" if shares else NONE)
        rows.append([arm, str(len(seen)), f"{median(cost['samples'] for cost, _ in seen):.0f}", *cells])
    caption = (
        "What the sampler took of the measured part, in the median trial: shares of one CPU by the lab and by its "
        "session on the server, and the share of the time in which its statements ran or waited to run."
    )
    heads = ["arm", "trials", "samples in a trial", "lab, of a CPU", "server, of a CPU", "statements, of the time"]
    return Table(caption, heads, rows, frozenset(range(1, 6)))
