"""The section on slices: one block's slices, what they leave behind, and the precision over time."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from pgtrial.model.errors import StoreError
from pgtrial.model.records.plan import Interleaving
from pgtrial.report.data import StudyData, read_data
from pgtrial.report.design import design
from pgtrial.report.sections import draw
from pgtrial.report.series import CPU, measured_load
from pgtrial.report.tables.slices import slice_tables
from pgtrial.store.tables import WAITS_SCHEMA
from tests.verdict.slices import OWN_SLICES, SLICE_S, WARMUP_ROUNDS

from .conftest import POINTS

FIRST = 2 * WARMUP_ROUNDS


@pytest.fixture(scope="module")
def data(studies) -> StudyData:
    return read_data(studies("interleaved"))


def test_the_page_and_the_markdown_have_the_section_with_its_tables(reports):
    for file in ("report.html", "report.md"):
        text = (reports("interleaved").path / file).read_text()
        assert ("The arms took turns in short slices of time" in text) == (file == "report.html")
        for caption in (
            "The precision over time: ",
            "Carry-over: the speed",
            "The effect of carry-over",
            "The slices of one block",
        ):
            assert caption in text


def test_carry_over_beyond_the_margin_stands_above_the_verdict_and_in_the_verdict_file(reports):
    path = reports("interleaved").path
    text = (path / "report.md").read_text()
    warning = "What slices leave behind for the next one moves off against on by -1"
    assert 0 < text.index(warning) < text.index("% faster than on")
    verdict = json.loads((path / "verdict.json").read_text())
    assert {(each["arm"], each["preceding"]) for each in verdict["carry_over"]} == {("off", "on"), ("on", "off")}
    assert len(verdict["carry_over_shifts"]) == 3


def test_the_method_names_the_slices_and_blocks_the_arm_that_started_first(data):
    told = dict(design(data))["slices"]
    assert told == "the trials of a block at a load point take turns, 250ms each, in random order"
    shared = data.plan.model_copy(update={"interleaving": Interleaving(slice_s=0.25, shared_server=True)})
    assert dict(design(replace(data, plan=shared)))["slices"] == f"{told}; all arms are sessions of one server"
    (chart,) = draw("blocks", data)
    orders = {row["order"] for rows in chart.spec["datasets"].values() for row in rows if "order" in row}
    assert orders == {"on started first", "off started first", "order drawn at each load point"}


def test_the_middle_block_has_each_measured_slice_in_order_with_its_speed(data):
    table = slice_tables(data)[-1]
    rows = [row for row in table.rows if row[1] == POINTS[3].label]
    assert len(rows) == 2 * OWN_SLICES
    assert [float(row[4]) for row in rows] == pytest.approx([SLICE_S * (FIRST + place) for place in range(len(rows))])
    assert {row[3] for row in rows} == {"on", "off"}
    trial = next(t for t in data.trials if (t.block, t.arm, t.load_point) == (int(rows[0][0]) - 1, "on", POINTS[3]))
    measured = [row for row in data.slices[trial.index] if row.phase == "measure"]
    assert [row[9] for row in rows if row[3] == "on"] == [f"{row.transactions:,}" for row in measured]
    assert rows[0][11] == f"{int(rows[0][9].replace(',', '')) / SLICE_S:,.0f}"


def test_a_chart_draws_the_slices_of_each_load_point_and_one_the_precision(data):
    precision, *blocks = draw("slices", data)
    assert len(blocks) == 2
    assert "Half-width of the 95% interval after each block" in precision.alt
    assert "after 12 blocks and 12min" in precision.alt
    assert "of which 65% were measured" in precision.alt
    assert f"tps of {2 * OWN_SLICES} slices in turn, {POINTS[3].label}, block 7" in blocks[0].alt
    assert "ended up to 0 ms after its planned end" in blocks[0].alt


def test_a_long_block_is_drawn_in_part_and_says_so(data):
    long = {index: [*rows, *(_later(row) for row in rows)] for index, rows in data.slices.items()}
    chart = draw("slices", replace(data, slices=long))[1]
    assert "tps of 120 slices" in chart.alt
    assert "later slices are not drawn" in chart.alt


def _later(row):
    by = SLICE_S * 2 * (WARMUP_ROUNDS + OWN_SLICES)
    moved = {name: getattr(row, name) + by for name in ("planned_begin_s", "planned_end_s", "begin_s", "end_s")}
    return row.model_copy(update={**moved, "phase": "measure"})


def test_the_precision_names_looks_and_the_share_that_was_measured(data):
    table = slice_tables(data)[0]
    assert table.rows[0][:2] == ["off / on", "6"]
    assert [row[1] for row in table.rows if row[-1] != "–"] == ["8", "12"]
    assert [row[3] for row in table.rows] == ["67%"] * 6 + ["65%"]


def test_a_slice_in_which_no_client_was_active_is_in_the_table_and_not_drawn(data):
    block = data.plan.max_blocks // 2
    index = next(t.index for t in data.trials if (t.block, t.load_point) == (block, POINTS[3]))
    idle = {"begin_s": None, "end_s": None, "client_s": 0.0, "transactions": 0, "mean_us": None}
    rows = [row.model_copy(update=idle if row.phase == "measure" else {}) for row in data.slices[index]]
    still = replace(data, slices={**data.slices, index: rows})
    assert slice_tables(still)[-1].rows
    assert f"tps of {OWN_SLICES} slices" in draw("slices", still)[1].alt
    assert "none" in draw("slices", still)[1].alt


def test_what_was_observed_of_a_trial_spans_the_slices_of_the_others_too(data, studies):
    trial = data.trials[0]
    seen = [(second, "client backend", None, None, "active", 4.0 * (second >= 10)) for second in range(20)]
    watched = replace(data, waits={trial.index: pl.DataFrame(seen, schema=WAITS_SCHEMA, orient="row")})
    assert (watched.measured_s, watched.observed_s) == (10.0, 20.0)
    assert measured_load(watched, trial.load_point, trial.arm) == {CPU: pytest.approx(2.0)}
    alone = read_data(studies("demo"))
    assert alone.observed_s == alone.measured_s


def test_other_studies_have_no_such_section(reports, studies):
    assert slice_tables(read_data(studies("demo"))) == []
    assert draw("slices", read_data(studies("demo"))) == []
    assert "took turns" not in (reports("demo").path / "report.html").read_text()


def test_a_damaged_table_of_slices_is_named(studies, tmp_path):
    study = studies("interleaved")
    path = study.trial_path(study.trials()[0]) / "slices.parquet"
    before = path.read_bytes()
    path.write_bytes(b"no table")
    try:
        with pytest.raises(StoreError, match=r"slices\.parquet is damaged"):
            read_data(study)
    finally:
        path.write_bytes(before)
