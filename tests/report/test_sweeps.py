"""Laws over clients and cliffs over sizes in the report: words, tables, charts and what to do next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
import vl_convert

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.sweeps import Bounds
from pgtrial.report.brief import brief
from pgtrial.report.charts.differences import forest
from pgtrial.report.charts.levels import size_charts
from pgtrial.report.charts.sweeps import cliff_charts, scaling_charts
from pgtrial.report.data import StudyData
from pgtrial.report.markdown import render
from pgtrial.report.sections import SHORT, sections
from pgtrial.report.sweep_words import between_text
from pgtrial.report.tables.results import ratio_table
from pgtrial.report.tables.sweeps import cliff_table, law_table
from pgtrial.statistics.scalability import Curve
from pgtrial.store.study_file import build_study
from tests.verdict.studies import verdict_of
from tests.verdict.sweeps import CLIENTS, SCALES, Speed, misses, points, sweep

LAWS = {"a": Curve(1000.0, 0.05, 0.0005), "b": Curve(1000.0, 0.03, 0.0005)}


def data_of(at: Sequence[LoadPoint], speed: Speed, reads: Speed | None = None, blocks: int = 11) -> StudyData:
    plan, trials = sweep(at, speed, reads=reads, blocks=blocks)
    load = {
        "workload": "tpcb-like",
        "clients": list(dict.fromkeys(point.clients for point in at)),
        "scale": list(dict.fromkeys(point.scale for point in at)),
    }
    spec = build_study({"load": load, "arms": {"a": {}, "b": {}}}, "test")
    return StudyData(spec, plan, trials, {}, verdict_of(plan, trials))


@pytest.fixture(scope="module")
def over_clients() -> StudyData:
    return data_of(points(CLIENTS), lambda arm, point: LAWS[arm].speed(point.clients))


@pytest.fixture(scope="module")
def over_sizes() -> StudyData:
    holds = {"a": 60, "b": 240}
    return data_of(
        points(scales=SCALES),
        lambda arm, point: 2000.0 / (1 + 6 * misses(holds[arm], point.scale)),
        lambda arm, point: 30.0 * misses(holds[arm], point.scale),
    )


@pytest.fixture(scope="module")
def pooled() -> StudyData:
    """Returns a study whose arm `b` is behind a pool of 8 connections, so that no scalability law fits its
    throughput.
    """
    return data_of(
        points(CLIENTS),
        lambda arm, point: 100.0 * min(point.clients, 8) if arm == "b" else LAWS["a"].speed(point.clients),
    )


def cells(table, arm: str) -> dict[str, str]:
    return next(dict(zip(table.heads, row, strict=True)) for row in table.rows if row[table.heads.index("arm")] == arm)


def test_the_verdict_in_short_has_both_peaks(over_clients):
    (headline,) = brief(over_clients.result, over_clients.plan).headlines
    (line,) = [line.text for line in headline.lines if line.label == "peak"]
    assert " clients (" in line
    assert " against 10,7" in line
    assert line.endswith("better")


def test_the_table_of_laws_has_each_parameter_with_its_interval(over_clients):
    row = cells(law_table(over_clients), "b")
    assert row["load"] == "tpcb-like, scale 10"
    assert row["serial (a)"].startswith(("2.9", "3.0", "3.1"))
    assert "%" in row["serial (a)"]
    assert " to " in row["mutual (b)"]
    assert " clients (" in row["peak"]
    assert row["verdict"] == "better"
    assert cells(law_table(over_clients), "a")["verdict"] == "–"


def test_a_law_that_does_not_fit_is_said_not_to_and_shows_no_curve(pooled):
    row = cells(law_table(pooled), "b")
    assert row["peak"] == "the law does not fit"
    assert (row["serial (a)"], row["largest tps"], row["difference"]) == ("–", "–", "–")
    assert row["most measured"].startswith("80")
    told = brief(pooled.result, pooled.plan)
    assert any(text.startswith("the scalability law does not fit b") for text in told.watched)
    assert any(note.startswith("The scalability law does not fit b") for note in pooled.result.notes)
    assert not any(line.label == "peak" for headline in told.headlines for line in headline.lines)
    (figure,) = scaling_charts(pooled)
    assert {row["arm"] for row in figure.spec["datasets"]["rows0"]} == {"a"}


def test_the_verdict_in_short_names_cliffs_and_sizes_that_narrow_them(over_sizes):
    told = brief(over_sizes.result, over_sizes.plan)
    text = next(text for text in told.watched if text.startswith("the throughput of a falls off a cliff"))
    assert "at tpcb-like, 8 clients: scale " in text
    assert text.endswith("within a doubling; buffers read begin to rise there")
    assert told.then is not None
    assert "narrows the cliff of a and b" in told.then
    proposed = {scale for curve in over_sizes.result.cliffs for scale in curve.between}
    assert all(str(scale) in told.then for scale in {*SCALES, *proposed})
    assert told.headlines[0].text.startswith("Two verdicts, for throughput falls off a cliff") or "cliff" in (
        told.headlines[0].text
    )
    assert [line.label for line in told.headlines[0].lines][:2] == ["below", "above"]
    (figure,) = forest(over_sizes)
    names = [row["claim"] for rows in figure.spec["datasets"].values() for row in rows if "claim" in row]
    assert names[:2] == ["load points below the cliff", "load points above the cliff"]
    places = [row[2] for row in ratio_table(over_sizes).rows]
    assert places[:2] == ["load points below the cliff (primary)", "load points above the cliff (primary)"]


def test_a_cliff_without_reads_has_its_advice():
    data = data_of(
        points(scales=SCALES), lambda _, point: 2000.0 / (1 + 6 * misses(60, point.scale)), lambda _, __: 0.5
    )
    assert cells(cliff_table(data), "a")["reads"] == "a fall without reads: look for CPU, TLB or locks"


def test_the_table_of_cliffs_has_a_line_for_an_arm_without_one():
    data = data_of(
        points(scales=SCALES),
        lambda arm, point: 2000.0 / (1 + (6 * misses(60, point.scale) if arm == "b" else 0)),
    )
    assert cells(cliff_table(data), "a")["cliff at scale"] == "none"
    row = cells(cliff_table(data), "b")
    assert row["within a doubling"].startswith("-")
    assert row["reads"] == "reads are not known"


def test_charts_can_be_drawn_and_have_words(over_clients, over_sizes):
    figures = [*scaling_charts(over_clients), *cliff_charts(over_sizes)]
    assert [figure.title for figure in figures] == [
        "tpcb-like, scale 10, over clients",
        "tpcb-like, 8 clients, cliffs over size",
    ]
    for figure in figures:
        assert "a" in figure.alt
        svg = vl_convert.vegalite_to_svg(json.dumps({**figure.spec, "width": 600}))
        assert svg.count("<path") > 20
    band = figures[0].spec["datasets"]["rows0"]
    assert all(row["low"] <= row["tps"] <= row["high"] for row in band)


def test_the_section_is_part_of_the_short_report(over_clients, over_sizes):
    for data in (over_clients, over_sizes):
        (section,) = [section for section in sections(data, SHORT) if section.topic.key == "sweeps"]
        assert len(section.figures) == 1
        assert len(section.tables) == 1
        assert "## Over clients and sizes" in render(data, [section])


def test_blocks_that_a_curve_leaves_out_are_named():
    at = points(CLIENTS)
    plan, trials = sweep(at, lambda arm, point: LAWS[arm].speed(point.clients))
    failing = next(trial for trial in trials if (trial.arm, trial.block) == ("b", 3))
    failed = failing.model_copy(update={"status": "failed", "reason": "it broke", "measured": None, "warmup": None})
    result = verdict_of(plan, [failed if trial.index == failed.index else trial for trial in trials])
    text = "the curve of b at tpcb-like, scale 10 leaves out 1 block with failed trials, which the verdict counts"
    assert text in brief(result, plan).watched


def test_sizes_of_tables_that_are_not_pgbenchs_are_scales():
    at = [point.model_copy(update={"workload": "order-entry"}) for point in points(scales=SCALES)]
    data = data_of(at, lambda _, point: 2000.0 / (1 + 6 * misses(60, point.scale)))
    (figure,) = cliff_charts(data)
    rows = [row for rows in figure.spec["datasets"].values() for row in rows if "tps" in row]
    assert {row["place"] for row in rows} >= set(SCALES)
    (over,) = size_charts(data)
    assert over.spec["layer"][0]["encoding"]["x"]["title"] == "scale"


def test_a_study_of_one_load_point_has_no_such_section():
    data = data_of(points(), lambda _, __: 1000.0)
    assert "sweeps" not in [section.topic.key for section in sections(data, SHORT)]


def test_a_study_that_has_just_begun_has_a_report(over_clients):
    plan, trials = over_clients.plan, over_clients.trials[:14]
    begun = replace(over_clients, trials=trials, result=verdict_of(plan, trials))
    assert cells(law_table(begun), "a")["peak"] == "–"
    assert scaling_charts(begun) == []


@pytest.mark.parametrize(
    ("bounds", "text"), [((43.4, 46.0), "43 to 46"), ((43.4, None), "43 or more"), ((None, 3.21), "up to 3.2")]
)
def test_intervals_without_an_end_are_words(bounds, text):
    low, high = bounds
    assert between_text(Bounds(low=low, value=44.0, high=high)) == text
