"""Charts are Vega-Lite as plain dictionaries."""

from __future__ import annotations

import re

import pytest

import pgtrial
from pgtrial.report.charts.parts import log_ticks
from pgtrial.report.charts.vega import Layer, channel
from tests.verdict.studies import make_plan, run

from .conftest import Audit, write_study


def test_a_layer_is_what_vega_lite_has_for_it():
    layer = Layer("rows0").transform({"filter": "datum.a > 1"}).mark("rule", opacity=0.5)
    drawn = layer.encode(x="a:Q", x2="b:Q", y=channel("c:N", title=None), tooltip=["d:N", channel("e:Q", format=".2f")])
    assert drawn.spec() == {
        "data": {"name": "rows0"},
        "transform": [{"filter": "datum.a > 1"}],
        "mark": {"type": "rule", "opacity": 0.5},
        "encoding": {
            "x": {"field": "a", "type": "quantitative"},
            "x2": {"field": "b"},
            "y": {"field": "c", "type": "nominal", "title": None},
            "tooltip": [
                {"field": "d", "type": "nominal"},
                {"field": "e", "type": "quantitative", "format": ".2f"},
            ],
        },
    }


def test_each_step_gives_a_new_layer():
    base = Layer("rows0").mark("line")
    assert base.encode(x="a:Q").encode(y="b:Q").spec()["encoding"].keys() == {"x", "y"}
    assert base.spec() == {"data": {"name": "rows0"}, "mark": {"type": "line"}, "encoding": {}}


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.86, 1.15, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]),
        (0.0004, 1.15, [0.0001, 0.001, 0.01, 0.1, 1, 10]),
        (0.9, 3000, [0.1, 1, 10, 100, 1000, 10_000]),
    ],
)
def test_a_logarithmic_axis_has_ticks_over_its_whole_range(low, high, ticks):
    assert log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(("lowest", "begins_at_zero"), [(2.0, True), (900.0, False)])
def test_no_axis_of_rates_begins_below_zero(tmp_path, lowest, begins_at_zero):
    plan = make_plan()
    trials = run(plan, lambda planned: lowest + 40.0 * planned.block + (5.0 if planned.arm == "off" else 0.0))
    study = write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Which is faster?")
    pgtrial.open(study.path).plot.tps().save(str(tmp_path / "tps.svg"))
    drawn = re.findall(r">([-−]?[\d,.]+)</text>", (tmp_path / "tps.svg").read_text())
    assert drawn
    assert not [label for label in drawn if label.startswith(("-", "−"))]
    assert ("0" in drawn) == begins_at_zero
