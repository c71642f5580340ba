"""Charts are altair's, made in a shorter way where its own takes long."""

from __future__ import annotations

import altair as alt
from altair.utils.schemapi import SchemaBase

from pgtrial.report.charts.parts import Canvas


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
