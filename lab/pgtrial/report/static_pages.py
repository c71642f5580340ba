"""Static pages, which need no server and no script: the histories of a project, and the results of many studies by
their question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pgtrial.model.resources import resource
from pgtrial.model.units import grouped
from pgtrial.report.history import Series
from pgtrial.report.history_drawing import SIZE, drawn
from pgtrial.report.html import static_page
from pgtrial.report.serve.catalogue import Glance


def history_page(histories: Mapping[str, Sequence[Series]]) -> str:
    """Returns the page with all these histories, which are given by their names."""
    parts = {name: [drawn(of) for of in series] for name, series in histories.items()}
    history_styles = Markup(resource("page/history.css", __package__))
    return static_page("histories.html.j2", parts=parts, size=SIZE, history_styles=history_styles)


def index_page(studies: Sequence[Glance], addresses: Mapping[str, str]) -> str:
    """Returns the page with many studies, grouped by their question. `addresses` has the address of each study's page,
    by the key of the study."""
    by_question = grouped((study.question or study.name, study) for study in studies)
    return static_page("results.html.j2", questions=by_question, addresses=addresses, total=len(studies))
