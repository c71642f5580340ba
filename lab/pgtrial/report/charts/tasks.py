"""Charts of tasks, which are transactions of an application that first wait for a connection of its pool. The charts
show the share of tasks that were done within a time, and how long the tasks waited for a connection."""

from __future__ import annotations

import math
from typing import Any

from pgtrial.model.latencies import Latencies
from pgtrial.model.units import three_digits
from pgtrial.report.charts.parts import Canvas, Figure, arm_colour, arm_dash
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData

_STEP = 0.005
"""A point of the curve is drawn only if the share of tasks has grown by at least this much since the point before it.
This keeps the page small."""

_LIMITS_S = (0.1, 1.0, 10.0)
"""Nielsen's limits of response times in seconds, which the chart marks."""

_PARTS = {"in the queue": "queue_us", "on the server": "service_us"}
"""The parts of a task's time, each with the field of a task's times that holds it."""


def task_charts(data: StudyData) -> list[Figure]:
    """Returns a chart of the distribution of the tasks' response times, and a chart of their two parts: the time in the
    queue of the pool and the time on the server. The result is empty for a study without tasks."""
    return [figure for figure in (_distribution(data), _parts(data)) if figure is not None]


def _distribution(data: StudyData) -> Figure | None:
    """Returns a chart of the share of tasks that were done within a time, over all trials of an arm. A failed task is
    never done, so that a curve may end below 100%."""
    curves = {arm: _curve(data, arm) for arm in data.plan.arms}
    rows = [{"arm": arm, "s": at, "share": share} for arm, curve in curves.items() for at, share in curve]
    times = [at for curve in curves.values() for at, _ in curve]
    if not rows:
        return None
    canvas = Canvas()
    x = channel(
        "s:Q", title="response time, s", scale={"type": "log", "nice": False}, axis={"format": "~g", "grid": False}
    )
    y = channel("share:Q", title=None, scale={"domain": [0, 1]}, axis={"format": "%"})
    limits = canvas.chart([{"s": limit} for limit in _LIMITS_S if min(times) < limit < max(times)])
    tooltip = ["arm:N", channel("s:Q", format=".3~g"), channel("share:Q", format=".1%", title="done by then")]
    layers: list[Any] = [
        limits.mark("rule", color="--soft", strokeDash=[3, 3]).encode(x=x),
        canvas.chart(rows)
        .mark("line", interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=arm_colour(data.plan.arms), strokeDash=arm_dash(data.plan.arms), tooltip=tooltip),
    ]
    summary = "; ".join(f"{arm} {_half(curve)}" for arm, curve in curves.items() if curve)
    text = (
        f"Share of all tasks that were done within a time, all trials of an arm together; half of them: {summary}. "
        "The broken lines are at 0.1, 1 and 10 s."
    )
    return canvas.figure("How soon tasks are done", layers, 260, text, "share of all tasks")


def _curve(data: StudyData, arm: str) -> list[tuple[float, float]]:
    """Returns the points of an arm's curve. Each point is a time in seconds, and the share of all tasks that took at
    most this time."""
    trials = [trial for trial in data.trials if trial.arm == arm and trial.index in data.histograms]
    merged = Latencies.sum_of(data.histograms[trial.index] for trial in trials if trial.tasks is not None)
    tasks = sum(trial.tasks.completed + trial.tasks.failed for trial in trials if trial.tasks is not None)
    points: list[tuple[float, float]] = []
    last = -math.inf
    counted = list(merged.steps())
    for value, count in counted:
        share = count / tasks
        if share - last >= _STEP or (value, count) == counted[-1]:
            points.append((value / 1e6, round(share, 4)))
            last = share
    return points


def _half(curve: list[tuple[float, float]]) -> str:
    done = next((at for at, share in curve if share >= 0.5), None)
    return f"within {three_digits(done)} s" if done is not None else "never"


def _parts(data: StudyData) -> Figure | None:
    """Returns a chart of the parts of the response time, as means over an arm's trials. The parts add up to the mean
    response time of completed tasks."""
    rows: list[dict[str, Any]] = []
    for arm in data.plan.arms:
        tasks = [trial.tasks for trial in data.trials if trial.arm == arm and trial.tasks is not None]
        for index, (name, field) in enumerate(_PARTS.items()):
            known = [times.mean / 1e6 for task in tasks if (times := getattr(task, field)) is not None]
            if known:
                rows.append({"arm": arm, "part": name, "s": sum(known) / len(known), "place": index})
    if not rows:
        return None
    canvas = Canvas()
    scale = {"domain": list(_PARTS), "range": ["--wait-other", "--wait-cpu"]}
    bars = (
        canvas.chart(rows)
        .mark("bar", height=22)
        .encode(
            x=channel("s:Q", title="mean time of completed tasks, s", stack="zero", axis={"format": "~g"}),
            y=channel("arm:N", title=None, sort=data.plan.arms),
            color=channel("part:N", title=None, sort=None, scale=scale),
            order=channel("place:Q"),
            tooltip=["arm:N", "part:N", channel("s:Q", format=".3~g")],
        )
    )
    summary = "; ".join(f"{row['arm']} {three_digits(row['s'])} s {row['part']}" for row in rows)
    text = f"Mean time of completed tasks by where it went: {summary}."
    return canvas.figure("Queue and server", [bars], 40 + 48 * len(data.plan.arms), text, "s")
