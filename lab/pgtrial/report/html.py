"""The report as an HTML page: one file that contains its styles, scripts, charts and data, and that needs no
network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import vl_convert
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from pgtrial.model.printable import printable, printable_json
from pgtrial.model.records.claims import Claim
from pgtrial.model.resources import resource
from pgtrial.model.units import change, decimals_for
from pgtrial.report.brief import Brief, Headline, Line, brief
from pgtrial.report.data import StudyData
from pgtrial.report.design import design
from pgtrial.report.screen import headline_claims
from pgtrial.report.sections import Section
from pgtrial.report.words import bounds_text
from pgtrial.store.state import kept
from pgtrial.verdict.rules import title

_MOST_ROWS = 500
"""A table that is hidden until the reader opens it is in the page as plain HTML if it has at most this number of rows.
A longer table is stored compressed."""

_LONG = 2**18
"""If the charts take more than this number of bytes, the page stores them compressed."""

_ICONS = {"better": "▲", "worse": "▼", "equivalent": "=", "undecided": "?", "withheld": "!"}


def render(data: StudyData, parts: Sequence[Section]) -> str:
    """Returns the report of a study as an HTML page with these sections."""
    short = brief(data.result, data.plan, trials=data.trials)
    return _page().render(
        data=data,
        result=data.result,
        claims=cards(data, short),
        brief=lines_below(short),
        title=title,
        sections=parts,
        design=design(data),
        styles=_inline("report.css"),
        scripts=_inline("report.js"),
        vega=vega(),
        specs=specs(parts),
        most_rows=_MOST_ROWS,
    )


@cache
def _page() -> Template:
    return templates("page").get_template("report.html.j2")


def static_page(name: str, **values: object) -> str:
    """Returns a page without scripts, made from a template of the folder `page` with these values."""
    return templates("page").get_template(name).render(styles=_inline("report.css"), **values)


def templates(*folders: str) -> Environment:
    """Returns the Jinja environment that loads the templates in these folders of the report."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader("pgtrial.report", folder) for folder in folders]),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["packed"] = _packed
    made.filters["code"] = _code
    return made


def _code(text: str) -> Markup:
    """Returns a text as HTML, in which the parts between backticks are marked as code."""
    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(printable(text)))))


_BACKTICKS = re.compile(r"`([^`\n]+)`")


def _visible(content: object) -> object:
    """Returns a value in the form in which a template shows it. In text, control characters and characters that reorder
    text are replaced by visible signs, since the text may come from somebody else."""
    return printable(content) if isinstance(content, str) and not isinstance(content, Markup) else content


def cards(data: StudyData, short: Brief) -> list[dict[str, Any]]:
    """Returns the values for the head of the page: a card (a box with the verdict) for each comparison, and in a
    screening study for each factor that matters. The result is empty for a study with a single arm."""
    sentences = data.result.sentences if data.result.primary else []
    compared = [headline for headline in short.headlines if headline.verdict is not None]
    shown = headline_claims(data.result)
    of_claims = {claim.arm: text for claim, text in zip(data.result.primary, sentences, strict=True)}
    return [card(data, claim, of_claims[claim.arm], headline) for claim, headline in zip(shown, compared, strict=True)]


def lines_below(short: Brief) -> list[Line]:
    """Returns the short lines of text below the cards, which show the verdicts. For a study with a single arm the list
    begins with the highest rates (capacities) that the arm keeps."""
    alone = [headline for headline in short.headlines if headline.verdict is None]
    capacities = [line for headline in alone for line in (Line("capacity", headline.text), *headline.lines)]
    return [*capacities, *short.lines()]


def card(data: StudyData, claim: Claim, sentence: str, headline: Headline) -> dict[str, Any]:
    """Returns the values that the card for one comparison shows at the head of the page."""
    difference = claim.difference
    value = difference.value if difference else claim.running
    return {
        "claim": claim,
        "icon": _ICONS[claim.verdict],
        "headline": headline.text,
        "lines": [line for line in headline.lines if line.label != "interval"],
        "number": _by_regime(claim)
        if claim.parts
        else change(value, decimals_for(_numbers(claim)))
        if value is not None
        else "–",
        "interval": bounds_text(difference) if difference else "",
        "sentence": sentence,
        "strip": strip(claim, data.plan.margin),
    }


def _by_regime(claim: Claim) -> str:
    """Returns the differences before and after a lasting change of speed within the trials as text, such as `+12%
    before, -3% after`."""
    values = [(part.difference.value if part.difference else part.running, part.regime) for part in claim.parts]
    return ", ".join(f"{change(value) if value is not None else '–'} {when}" for value, when in values)


def _numbers(claim: Claim) -> list[float]:
    difference = claim.difference
    bounds = [difference.low, difference.value, difference.high] if difference else [claim.running]
    return [value for value in bounds if value is not None]


def strip(claim: Claim, margin: float) -> dict[str, float] | None:
    """Returns the positions of an interval, of zero and of the margin in the strip that draws them, in percent of its
    width. Returns None if the interval has no bounds."""
    if claim.difference is None or claim.difference.low is None:
        return None
    low, value, high = _numbers(claim)
    reach = max(abs(low), abs(high), 1.5 * margin)
    left, right = min(low, -0.25 * reach), max(high, 0.25 * reach)
    pad = 0.08 * (right - left)
    left, right = left - pad, right + pad

    def at(share: float) -> float:
        return round(100 * (min(max(share, left), right) - left) / (right - left), 2)

    return {
        "low": at(low),
        "value": at(value),
        "high": at(high),
        "zero": at(0.0),
        "margin_low": at(-margin),
        "margin_high": at(margin),
    }


def _inline(name: str) -> Markup:
    return Markup(resource(f"page/{name}", __package__))


@cache
def vega() -> Markup:
    """Returns Vega, Vega-Lite and Vega-Embed as one script. It is kept in a file, because making it takes longer than
    the rest of most reports."""
    make = partial(vl_convert.javascript_bundle, "window.vegaEmbed = vegaEmbed;")
    bundle = kept(f"vega-{version('vl-convert-python')}.js", make)
    return Markup(bundle.replace("</script", "<\\/script"))


def specs(parts: Sequence[Section]) -> Markup:
    """Returns the script element with the charts as JSON. Characters that could end the element are escaped, and long
    JSON is compressed."""
    by_key = {f"{part.topic.key}-{i}": figure.spec for part in parts for i, figure in enumerate(part.figures)}
    text = json.dumps(by_key, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    kind, content = "json", printable_json(text).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    if len(content) > _LONG:
        kind, content = "gzip", _packed(content)
    return Markup(f'<script type="application/{kind}" id="charts">{content}</script>')


def _packed(text: str) -> str:
    """Returns the text as gzip in base64. The time stamp of gzip is left out, so that the same text always gives the
    same page."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
