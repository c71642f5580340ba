"""Charts are altair's, made in a shorter way where its own takes long."""

from __future__ import annotations

import altair as alt
import pytest
from altair.utils.schemapi import SchemaBase

from pgtrial.report.charts.parts import Canvas, log_ticks


def test_channels_that_are_strings_are_what_altair_makes_of_them_without_its_search_through_all_schemas(monkeypatch):
    channels = {
        "x": "a:Q",
        "x2": "b:Q",
        "y": alt.Y("c:Q", title=None),
        "strokeDash": "d:N",
        "detail": "e:N",
        "text": "f:N",
        "tooltip": ["g:N", alt.Tooltip("h:Q", format=".2f")],
    }
    theirs = alt.Chart(alt.NamedData(name="rows0")).mark_rule().encode(**channels).to_dict(validate=False)

    def search(*_: object, **__: object) -> None:
        raise AssertionError("altair looks for the class of a channel")

    monkeypatch.setattr(SchemaBase, "from_dict", search)
    ours = Canvas().chart([]).mark_rule().encode(**channels).to_dict(validate=False)
    assert ours["encoding"] == theirs["encoding"]
    assert ours == theirs


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
