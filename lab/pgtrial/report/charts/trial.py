"""Charts of one trial second by second: its throughput, its latency, and the activity of the server and the host. Every
second is drawn."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import polars as pl

from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import three_digits
from pgtrial.report.charts.parts import Canvas, Figure, seconds_axis, start_of_measuring
from pgtrial.report.charts.server import provider_charts, wait_charts, work_charts
from pgtrial.report.charts.vega import channel
from pgtrial.report.data import StudyData, seconds_of, whole_seconds

LATENCIES = {"mean_us": "mean", "p50_us": "median", "p95_us": "95%", "p99_us": "99%"}
"""The latencies in a timeline, each with the name that is shown."""

_HEIGHT = 200


def trial_charts(data: StudyData, trial: Trial) -> list[Figure]:
    """Returns the charts of one stored trial. The result is empty if the trial failed before its first second."""
    of_trial = replace(data, trials=[trial], every_second=True)
    return [
        *_throughput(of_trial, trial),
        *_latency(of_trial, trial),
        *wait_charts(of_trial),
        *work_charts(of_trial),
        *provider_charts(of_trial),
    ]


def _throughput(data: StudyData, trial: Trial) -> list[Figure]:
    timeline = data.timelines[trial.index]
    rows = whole_seconds(trial, timeline)
    if not rows:
        return []
    first, last = rows[0][0], rows[-1][0]
    failed = seconds_of(trial, timeline).filter(pl.col("failures") > 0).select("s", "failures").to_dicts()
    canvas = Canvas()
    x = seconds_axis(first, last)
    line = canvas.chart([{"s": second, "tps": committed} for second, committed in rows]).mark(
        "line", strokeWidth=2, color="--accent", point=len(rows) == 1
    )
    y = channel("tps:Q", title=None, scale={"zero": True}, axis={"format": "~s"})
    marks = canvas.chart(failed).mark("rule", color="--bad", strokeWidth=2, opacity=0.5)
    layers: list[Any] = [
        line.encode(x=x, y=y, tooltip=["s:Q", channel("tps:Q", format=",.0f")]),
        *start_of_measuring(canvas, first, last),
        marks.encode(x=x, tooltip=["s:Q", "failures:Q"]),
    ]
    measured = [committed for second, committed in rows if second >= 0]
    text = f"Committed transactions by second, from second {first} to {last}"
    if measured:
        text += f"; in the measured part {min(measured):,} to {max(measured):,}"
    text += f"; {len(failed)} seconds with failures, marked." if failed else "; no failures."
    return [canvas.figure("Throughput", layers, _HEIGHT, text, rate_unit([trial.load_point]), wide=True)]


def _latency(data: StudyData, trial: Trial) -> list[Figure]:
    seconds = seconds_of(trial, data.timelines[trial.index])
    known = [name for name in LATENCIES if seconds[name].drop_nulls().len()]
    if not known:
        return []
    long = seconds.select("s", *known).unpivot(index="s", on=known, variable_name="what", value_name="us").drop_nulls()
    rows = [{"s": s, "what": LATENCIES[what], "ms": float(f"{us / 1000:.4g}")} for s, what, us in long.iter_rows()]
    first, last = int(str(seconds["s"].min())), int(str(seconds["s"].max()))
    canvas = Canvas()
    names = [LATENCIES[name] for name in known]
    line = (
        canvas.chart(rows)
        .mark("line", strokeWidth=1.5, point=first == last)
        .encode(
            x=seconds_axis(first, last),
            y=channel("ms:Q", title=None, scale={"type": "log"}, axis={"format": "~s", "tickCount": 4}),
            color=channel("what:N", title=None, sort=None, scale={"domain": names}),
            tooltip=["what:N", "s:Q", channel("ms:Q", format=",.3~f")],
        )
    )
    means = {name: fmean(row["ms"] for row in rows if row["what"] == name) for name in names}
    summary = ", ".join(f"{name} {three_digits(mean)} ms" for name, mean in means.items())
    text = f"Latency by second, logarithmic scale; on average over the seconds {summary}."
    layers: list[Any] = [line, *start_of_measuring(canvas, first, last)]
    return [canvas.figure("Latency", layers, _HEIGHT, text, "ms", wide=True)]
