"""Tests of the report's section on the server: load by wait event, the cost of observing, costs."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console

from pgtrial.cli.verdict import in_full
from pgtrial.report.data import StudyData, read_data
from pgtrial.report.sections import draw
from pgtrial.report.series import active_sessions, measured_load
from pgtrial.report.tables.servers import server_tables
from pgtrial.store.tables import WAITS_SCHEMA
from tests.verdict.studies import POINT

from .conftest import Studies, sessions, waits


@pytest.fixture(scope="module")
def data(studies: Studies) -> StudyData:
    return read_data(studies("watched"))


def test_the_load_is_made_of_active_sessions_at_work_alone(data):
    assert measured_load(data, POINT, "on") == {"CPU": 1.5, "IO:WalSync": 4.0}
    assert measured_load(data, POINT, "off") == {"CPU": 1.5}


def test_the_arms_stand_side_by_side_on_one_scale(data):
    figures = draw("server", data)
    assert [figure.title for figure in figures] == [f"on: {POINT.label}", f"off: {POINT.label}"]
    assert [figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] for figure in figures] == [[0, 5.5]] * 2
    rows = figures[0].spec["datasets"]["rows0"]
    assert [(row["part"], set(row["n"])) for row in rows] == [("CPU", {1.5}), ("IO:WalSync", {4.0})]
    assert rows[0]["s"] == list(range(-2, 6))


def test_arms_that_were_seen_at_different_seconds_stand_on_one_axis(data):
    seen = {
        trial.index: waits(trial.arm == "on", range(-2, 6) if trial.arm == "on" else range(3, 5))
        for trial in data.trials
    }
    figures = draw("server", replace(data, waits=seen))
    assert [figure.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] for figure in figures] == [[-2, 5]] * 2


def test_a_long_trial_is_drawn_in_few_bins(data):
    plan = data.plan.model_copy(update={"duration_s": 3600.0})
    first = data.trials[0]
    long = replace(data, plan=plan, trials=[first], waits={first.index: waits(True, range(-2, 3600))})
    (figure,) = draw("server", long)
    assert all(len(row["s"]) <= 62 for row in figure.spec["datasets"]["rows0"])


def test_a_second_in_which_nobody_was_active_counts_as_none(data):
    first = data.trials[0]
    rows = [sessions(0, None, 4.0), sessions(1, None, 4.0, "idle")]
    half = pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row")
    seen = active_sessions(replace(data, trials=[first], waits={first.index: half}), POINT, first.arm, 2)
    assert seen.rows() == [(0, "CPU", 2.0)]


def test_an_event_that_a_later_version_spells_anew_is_the_same_one(data):
    first = data.trials[0]
    rows = [sessions(0, "WALSync", 2.0), sessions(1, "WalSync", 4.0)]
    both = pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row")
    seen = active_sessions(replace(data, trials=[first], waits={first.index: both}), POINT, first.arm, 2)
    assert seen.rows() == [(0, "IO:WalSync", 3.0)]


def test_small_wait_events_are_summed_up(data):
    first = data.trials[0]
    rows = [sessions(0, f"Event{number}", float(number)) for number in range(1, 12)]
    many = replace(data, trials=[first], waits={first.index: pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row")})
    table = server_tables(many)[0]
    assert table.heads[-1] == "other"
    assert [row[-1] for row in table.rows] == ["6.00"]
    assert draw("server", many)[0].spec["datasets"]["rows0"][-1]["n"] == [6.0]


def test_what_the_sampler_took_is_told_as_a_share(data):
    assert server_tables(data)[1].rows == [[arm, "8", "12", "0.20%", "0.10%", "0.33%"] for arm in ("on", "off")]


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_the_report_says_why(reports, file):
    text = (reports("watched").path / file).read_text()
    assert "Costs per transaction, off against on: " in text
    assert "WAL flushes -50% (-50..-50%)" in text
    assert "What the server did" in text
    assert "Cost per transaction" in text


def test_the_terminal_says_why(data):
    console = Console(width=200)
    with console.capture() as shown:
        console.print(in_full(data.result))
    assert data.result.moved[0] in " ".join(shown.get().split())


def test_a_study_that_was_not_observed_has_no_such_section(studies):
    not_observed = read_data(studies("demo"))
    assert server_tables(not_observed) == []
    assert draw("server", not_observed) == []
