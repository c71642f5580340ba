"""Tests of the report's sections on the host, on the statements, and on the metrics of a provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
import vl_convert

from pgtrial.report.data import StudyData, read_data
from pgtrial.report.sections import draw
from pgtrial.report.series import host_series, provider_series
from pgtrial.report.tables.servers import host_table, provider_table, server_tables, statement_table
from tests.verdict.studies import POINT

from .conftest import Studies, host, provided


@pytest.fixture(scope="module")
def unwatched(studies: Studies) -> StudyData:
    return read_data(studies("demo"))


@pytest.fixture(scope="module")
def watched(unwatched: StudyData) -> StudyData:
    return replace(unwatched, observed={trial.index: host(trial) for trial in unwatched.trials})


def rows_of(figure: Any) -> list[dict[str, Any]]:
    return list(figure.spec["datasets"]["rows0"])


def test_the_cpu_is_stacked_by_what_it_did_on_one_scale(watched):
    figures = [figure for figure in draw("server", watched) if figure.title.startswith("CPU, ")]
    assert [figure.title for figure in figures] == [f"CPU, on: {POINT.label}", f"CPU, off: {POINT.label}"]
    assert [[(row["part"], set(row["n"])) for row in rows_of(figure)] for figure in figures] == [
        [("user", {0.75}), ("waiting for I/O", {0.2})],
        [("user", {0.75}), ("system", {0.5})],
    ]
    assert [figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] for figure in figures] == [[0, 1.25]] * 2


def test_what_no_arm_has_is_not_drawn_and_what_one_lacks_is_zero(watched):
    drawn = {figure.title.partition(":")[0]: rows_of(figure) for figure in draw("server", watched)}
    assert set(drawn) == {"CPU, on", "CPU, off", "Device writes", "Memory to be written"} | {
        "Some process waited for I/O"
    }
    assert [(row["arm"], set(row["v"])) for row in drawn["Device writes"]] == [("on", {8.0}), ("off", {0.0})]
    # where a source was never observed nothing is known, which is not zero
    assert [(row["arm"], set(row["v"])) for row in drawn["Some process waited for I/O"]] == [("on", {40.0})]


def test_a_counter_that_did_not_move_in_a_trial_counts_as_zero_there(watched):
    on = [trial for trial in watched.trials if trial.arm == "on"][:2]
    still = host(on[0]).filter(pl.col("name") != "iowait_s")
    data = replace(watched, trials=on, observed={on[0].index: still, on[1].index: host(on[1])})
    waiting = host_series(data, POINT, "on", "cpu", 10).filter(pl.col("name") == "iowait_s")
    assert waiting["value"].to_list() == [pytest.approx(0.1)] * 2


def test_long_trials_are_drawn_in_few_bins(watched):
    plan = watched.plan.model_copy(update={"duration_s": 3600.0})
    first = watched.trials[0]
    long = replace(watched, plan=plan, trials=[first], observed={first.index: host(first, range(-2, 3600))})
    figures = draw("server", long)
    assert figures
    assert all(len(row["s"]) <= 62 for figure in figures for row in rows_of(figure))


def test_the_tables_say_what_the_host_and_the_statements_did(watched):
    machine, statements = host_table(watched), statement_table(watched)
    assert machine.rows == [
        [POINT.label, "on", "0.75", "0.00", "0.00", "0.20", "0.00", "0.0", "8.0", "50", "0.0%", "40.0%", "0.0%"],
        [POINT.label, "off", "0.75", "0.50", "0.00", "0.00", "0.00", "0.0", "0.0", "50", "–", "–", "–"],
    ]
    assert statements.rows[:2] == [
        [POINT.label, "on", "UPDATE accounts: SET x = $1", "300", "0.500", "75.0%", "2.00", "0.25", "400"],
        [POINT.label, "on", "SELECT $1", "100", "0.500", "25.0%", "2.00", "0.25", "400"],
    ]


def test_a_server_elsewhere_tells_its_statements_and_no_host(watched):
    elsewhere = {i: frame.filter(pl.col("second").is_null()) for i, frame in watched.observed.items()}
    with_no_host = replace(watched, observed=elsewhere)
    machine, statements = host_table(with_no_host), statement_table(with_no_host)
    assert machine.rows == []
    assert len(statements.rows) == 4
    assert draw("server", replace(watched, observed=elsewhere)) == []


@pytest.fixture(scope="module")
def with_metrics(unwatched: StudyData) -> StudyData:
    """A study with metrics by the minute at -90, -30, 30, 90 and 150 s of a measured part of 180 s; the storage of
    `off` is slower.
    """
    plan = unwatched.plan.model_copy(update={"warmup_s": 60.0, "duration_s": 180.0})
    frames = {
        trial.index: provided(
            {
                "FreeStorageSpace": [20e9] * 5,
                "SwapUsage": [0.0] * 5,
                "WriteLatency": [0.1, 0.1, 0.002, 0.004, 0.1] if trial.arm == "on" else [0.01] * 5,
            }
        )
        for trial in unwatched.trials
    }
    return replace(unwatched, plan=plan, provider=frames)


def test_provider_metrics_stand_by_arm_in_the_units_that_people_read(with_metrics):
    figures = draw("provider", with_metrics)
    assert [(figure.title, figure.unit) for figure in figures] == [
        (f"WriteLatency: {POINT.label}", "ms"),
        (f"FreeStorageSpace: {POINT.label}", "GB"),
    ]
    assert rows_of(figures[0]) == [
        {"arm": "on", "s": [-60, 0, 60, 120, 180, 240], "v": [100.0, 100.0, 2.0, 4.0, 100.0, 100.0]},
        {"arm": "off", "s": [-60, 0, 60, 120, 180, 240], "v": [10.0] * 6},
    ]


def test_the_table_takes_the_minutes_within_the_measured_part_alone(with_metrics):
    assert provider_table(with_metrics).rows == [
        ["WriteLatency", "ms", POINT.label, "3", "10"],
        ["FreeStorageSpace", "GB", POINT.label, "20", "20"],
    ]
    short = replace(with_metrics, plan=with_metrics.plan.model_copy(update={"duration_s": 60.0}))
    assert provider_table(short).rows[0] == ["WriteLatency", "ms", POINT.label, "–", "–"]


def test_an_arm_whose_provider_was_not_asked_has_no_line(with_metrics):
    own = {trial.index for trial in with_metrics.trials if trial.arm == "off"}
    half = replace(with_metrics, provider={i: frame for i, frame in with_metrics.provider.items() if i in own})
    assert {row["arm"] for figure in draw("provider", half) for row in rows_of(figure)} == {"off"}
    assert provider_table(half).rows[0][3:] == ["–", "10"]
    assert provider_series(half, POINT, "on", 60).is_empty()


def test_the_renderer_takes_every_chart(watched, with_metrics):
    for figure in [*draw("server", watched), *draw("provider", with_metrics)]:
        assert "<path" in vl_convert.vegalite_to_svg(figure.spec)


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_a_study_of_files_shows_both_in_its_report(reports, file):
    text = (reports("hosted").path / file).read_text()
    assert "What the provider measured" in text
    assert "statements that took longest on the server" in text
    if file == "report.md":
        assert "| CPUUtilization | % | tpcb-like, scale 10, 8 clients | 42 | 42 |" in text


def test_a_study_without_either_says_nothing_of_them(unwatched):
    assert server_tables(unwatched) == provider_table(unwatched).rows == []
    assert draw("server", unwatched) == draw("provider", unwatched) == []
