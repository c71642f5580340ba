"""Declared metrics in the report: a table for each comparison, lines of the short result, and charts of values."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from pgtrial.cli.verdict import in_full
from pgtrial.model.records.trial import Trial
from pgtrial.report.brief import Line, brief
from pgtrial.report.charts.curve import curve_charts
from pgtrial.report.charts.differences import block_charts, forest
from pgtrial.report.data import StudyData
from pgtrial.report.markdown import render
from pgtrial.report.sections import SHORT, sections
from pgtrial.report.tables.metrics import curve_table, metric_tables
from pgtrial.report.words import headline
from pgtrial.store.study_file import build_study
from tests.report.conftest import timeline
from tests.verdict.declared import at_the_rate, declaring, with_latency, with_wal
from tests.verdict.studies import verdict_of


def data_of(*metrics: str, p99: float = 1.25, duration_s: float = 60.0) -> StudyData:
    plan = declaring(*metrics, duration_s=duration_s)

    def changed(trial: Trial) -> Trial:
        times = (p99 if trial.arm == "off" else 1.0) * (1 + 0.001 * (trial.index % 5))
        return with_wal(with_latency(trial, p99=8000 * times), 700.0 if trial.arm == "off" else 1000.0)

    trials = at_the_rate(plan, lambda planned, trial: changed(trial))
    load = {"workload": "tpcb-like", "rate": 500}
    spec = build_study({"load": load, "arms": {arm: {} for arm in plan.arms}}, "test")
    return StudyData(spec, plan, trials, {}, verdict_of(plan, trials))


METRICS = ("p99", "p50", "wal per transaction")


def test_the_table_has_the_values_of_both_arms_and_the_difference_of_values():
    table = metric_tables(data_of(*METRICS))[0]
    assert table.heads[:5] == ["metric", "on", "off", "difference", "95% interval"]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["p99 response time (primary)"][:3] == ["8.02 ms", "10.0 ms", "+25%"]
    assert rows["p99 response time (primary)"][4] == "worse"
    assert rows["WAL per transaction"][:3] == ["1,000 bytes", "700 bytes", "-30%"]
    assert rows["WAL per transaction"][4] == "better"
    assert rows["p50 response time"][4].startswith("equivalent")
    assert "2 claims in all. They share the error of each look" in table.caption


def test_a_study_without_metrics_has_no_table():
    assert metric_tables(data_of()) == []


def test_the_short_result_has_a_line_for_each_other_metric():
    data = data_of(*METRICS)
    first = brief(data.result, data.plan).headlines[0]
    assert first.text.startswith("p99 of off is 2")
    assert first.lines[0] == Line("medians", "10.0 ms against 8.02 ms")
    p50, wal = (line.text for line in first.lines if line.label == "metric")
    assert wal == "wal per transaction 700 bytes against 1,000 bytes, -30% (-30 to -30%), better"
    assert p50.startswith("p50 1.00 ms against 1.00 ms")


def test_a_metric_that_does_not_stand_says_why():
    data = data_of("response", "p99.9")
    lines = {line.label: line.text for line in brief(data.result, data.plan).headlines[0].lines}
    assert lines["metric"].startswith(
        "p99.9 no verdict: p99.9 takes 100 slower transactions in every trial, 100,000 in"
    )


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("response", "off is slower than on"),
        ("p99", "p99 of off is higher than that of on"),
        ("transactions per cent", "transactions per cent of off is lower than that of on"),
    ],
)
def test_a_verdict_on_parts_names_the_direction_of_its_metric(metric, words):
    data = data_of("p99")
    claim = data.result.primary[0]
    whole = claim.model_copy(update={"difference": None, "parts": [claim, claim]})
    plan = data.plan.model_copy(update={"metrics": [metric]})
    assert headline(whole, plan).startswith(words)


@pytest.mark.parametrize("metric", ["p99", "wal per transaction"])
def test_charts_show_differences_of_values(metric):
    data = data_of(metric)
    value = {"p99": 0.25, "wal per transaction": -0.3}[metric]
    figure = forest(data)[0]
    assert f"{'p99 response time' if metric == 'p99' else 'WAL per transaction'} of off against on" in str(figure.spec)
    shown = [row["value"] for rows in figure.spec["datasets"].values() for row in rows if "verdict" in row]
    assert {round(each, 2) for each in shown} == {value}
    blocks = [
        row["value"] for rows in block_charts(data)[0].spec["datasets"].values() for row in rows if "order" in row
    ]
    assert blocks == [pytest.approx(value, abs=0.01)] * 12


def test_the_curve_has_a_table_and_a_chart_with_its_band():
    data = data_of()
    rows = {row[2]: row for row in curve_table(data).rows}
    assert list(rows) == ["p50", "p90", "p95", "p99"]
    assert rows["p99"][:2] == ["off / on", "tpcb-like, scale 10, 8 clients, 500/s"]
    assert rows["p99"][3] == "+25%"
    assert rows["p50"][3] == "0%"
    (figure,) = curve_charts(data)
    assert figure.title == "off against on"
    assert "p50 0% (" in figure.alt
    assert "p99 +25% (+24" in figure.alt
    marks = [layer["mark"]["type"] for layer in figure.spec["layer"]]
    assert marks == ["area", "rule", "rule", "line", "point"]


def test_without_a_bounded_interval_the_curve_is_drawn_without_a_band():
    data = data_of()
    early = verdict_of(data.plan, data.trials[:16])
    (figure,) = curve_charts(replace(data, result=early))
    assert [layer["mark"]["type"] for layer in figure.spec["layer"]] == ["rule", "line", "point"]
    assert curve_charts(replace(data, result=verdict_of(data.plan, data.trials[:4]))) == []


def test_leading_words_name_what_lies_right_of_zero():
    leads = {section.topic.key: section.lead for section in sections(data_of("p99"), SHORT)}
    assert leads["ratio"].endswith("On the right of zero, the arm has more of p99 than the baseline.")
    assert leads["latency"].startswith("Marks are the median trial")
    leads = {section.topic.key: section.lead for section in sections(data_of("response"), SHORT)}
    assert leads["ratio"].endswith("On the right of zero, the arm is faster than the baseline.")


@pytest.mark.parametrize(
    ("metric", "words"), [("p99", "they are not part of it."), ("wal per transaction", "with the speed.")]
)
def test_declared_costs_are_not_said_to_be_no_part_of_the_verdict(metric, words):
    data = data_of(metric)
    data = replace(data, timelines={trial.index: timeline(trial) for trial in data.trials})
    leads = {section.topic.key: section.lead for section in sections(data)}
    assert leads["costs"].endswith(words)


def test_markdown_and_terminal_have_the_metrics():
    data = data_of(*METRICS)
    text = render(data, sections(data, SHORT))
    assert "| WAL per transaction | 1,000 bytes | 700 bytes | -30% |" in text
    assert "P99 response time of each arm against the baseline's" in text
    assert "the verdict is about its mean" not in text
    out = io.StringIO()
    console = Console(file=out, width=200)
    console.print(in_full(data.result))
    assert "p99 / on" in out.getvalue()
    assert re.search(r"wal per transaction +on: 1,000 bytes +off: 700 bytes +-30% +better", out.getvalue())
