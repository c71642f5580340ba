"""Renders the pages of the local web server as HTML, by filling templates with the data of studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import polars as pl
from jinja2 import Environment

from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import plural, three_digits
from pgtrial.report.brief import brief
from pgtrial.report.charts.trial import LATENCIES, trial_charts
from pgtrial.report.data import StudyData, seconds_of
from pgtrial.report.history_drawing import SIZE, drawn
from pgtrial.report.html import cards, lines_below, specs, templates
from pgtrial.report.sections import Section, Topic
from pgtrial.report.serve import drawing
from pgtrial.report.serve.catalogue import UNREADABLE, WORDS, Glance, Query
from pgtrial.report.serve.histories import History
from pgtrial.report.serve.live import Look, SoFar
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import levels_beside
from pgtrial.report.tables.where import facts_beside
from pgtrial.report.words import bounds_beside, change_text, headline, in_regime
from pgtrial.store.tables import WAITS_SCHEMA
from pgtrial.verdict.rules import title

_SIZE = {
    "width": drawing.WIDTH,
    "height": drawing.HEIGHT,
    "left": drawing.LEFT,
    "inner": drawing.WIDTH - drawing.LEFT - drawing.RIGHT,
}


class Pages:
    """Renders all pages except the page of a refused request. The addresses in the pages begin with `base`."""

    def __init__(self, base: str, folders: str):
        self._base = base
        self._folders = folders
        """The paths that are served, as text."""

    @cached_property
    def _templates(self) -> Environment:
        made = templates("serve/page", "page")
        made.globals |= {"base": self._base, "size": _SIZE, "spark": drawing.spark, "title": title}
        return made

    def _render(self, name: str, **values: Any) -> str:
        return self._templates.get_template(f"{name}.html.j2").render(**values)

    def sentence(self, sentence: str) -> str:
        """Returns a page with one sentence and a link to the list of studies."""
        return self._render("sentence", sentence=sentence)

    def list(self, studies: Sequence[Glance], histories: Sequence[History], query: Query, refused: str | None) -> str:
        """Returns the page with the studies that match the query, the search form, and all histories. `refused` is a
        sentence about invalid input in the form."""
        return self._render(
            "list",
            studies=[study for study in studies if query.fits(study)],
            total=len(studies),
            histories=histories,
            query=query,
            refused=refused,
            words=WORDS,
            folders=self._folders,
        )

    def study(self, study: Glance, data: StudyData | None, look: Look | None, others: Sequence[Glance]) -> str:
        """Returns the page of a study, with its verdict and its trials, or with its progress. `look` is given if the
        study is running or may be running."""
        return self._render(
            "study",
            study=study,
            **(_brief(study, data) if data is not None else {"claims": None, "brief": []}),
            trials=data.trials if data is not None else [],
            others=[other for other in others if other.key != study.key and other.words != [UNREADABLE]],
            **{"unit": rate_unit(data.plan.load_points) if data is not None else "tps"}
            | (_live_values(look) if look is not None else {"look": None}),
        )

    def parts(self, look: Look) -> dict[str, str]:
        """Returns the parts of the page of a running study that change, by their names in the page."""
        values = _live_values(look)
        return {"now": self._render("now", **values), "so-far": self._render("so_far", **values)}

    def compare(self, studies: Sequence[tuple[Glance, StudyData]]) -> str:
        """Returns the page that shows two studies side by side."""
        (one, of_one), (other, of_other) = studies
        names = (one.name, other.name if other.name != one.name else f"{other.name} (2)")
        return self._render(
            "compare",
            sides=[{"study": study, **_brief(study, data)} for study, data in studies],
            levels=levels_beside(of_one, of_other, names),
            facts=facts_beside(of_one, of_other, names),
        )

    def history(self, history: History, studies: Sequence[Glance]) -> str:
        """Returns the page of a history, with links to those of its studies that are in the list."""
        addresses = {study.identity: f"{self._base}/study/{study.key}" for study in studies if study.identity}
        series = [drawn(of_machine, addresses) for of_machine in history.series]
        return self._render("history", history=history, series=series, size=SIZE)

    def trial(self, study: Glance, data: StudyData, trial: Trial) -> str:
        """Returns the page of one trial, second by second."""
        index = data.trials.index(trial)
        topic = Topic("trial", f"Trial {trial.index + 1}", "")
        section = Section(topic, trial_charts(data, trial), [_seconds(data, trial), _waits(data, trial)])
        return self._render(
            "trial",
            study=study,
            trial=trial,
            about=_about(trial),
            section=section,
            specs=specs([section]),
            before=data.trials[index - 1] if index else None,
            after=data.trials[index + 1] if index + 1 < len(data.trials) else None,
        )


def refusal(sentence: str) -> str:
    """Returns a page with one sentence for a request that is refused. The page contains no address of this server."""
    return templates("serve/page").get_template("sentence.html.j2").render(sentence=sentence, base=None)


def _brief(study: Glance, data: StudyData) -> dict[str, Any]:
    """Returns the values of the template that shows the verdict of each comparison, and the further lines about the
    study."""
    short = brief(data.result, data.plan, None if study.is_bundle else study.path, data.trials)
    return {"claims": cards(data, short), "brief": lines_below(short)}


def _live_values(look: Look) -> dict[str, Any]:
    plan = look.plan
    if plan is None:
        return {"look": look, "estimates": [], "drawing": None, "findings": []}
    colours = {arm: number % 6 + 1 for number, arm in enumerate(plan.arms)}
    units = plan.deployments if look.so_far and look.so_far[0].claim.unit == "deployment" else plan.end
    return {
        "look": look,
        "unit": rate_unit(plan.load_points),
        "colour": colours.__getitem__,
        "estimates": [_estimate(estimate, look, plan) for estimate in look.so_far if look.blocks],
        "drawing": drawing.narrowing(look.so_far, plan.arms, plan.margin, units),
        "findings": [finding for finding in look.findings if finding.severity != "info"],
    }


def _estimate(comparison: SoFar, look: Look, plan: Plan) -> tuple[str, str]:
    """Returns two sentences about a comparison: the difference that the complete blocks show, and how certain it is,
    such as its interval or after how many blocks it was decided."""
    claim, difference = comparison.claim, comparison.estimate
    if claim.verdict not in ("undecided", "withheld"):
        return headline(claim, plan), f"Decided after {plural(claim.blocks, claim.unit)}."
    blocks = f"after {plural(look.blocks, 'block')}"
    value = difference.value if difference is not None else claim.running
    if value is None:
        return f"{claim.arm} against {claim.baseline}: nothing is known {blocks}.", ""
    change = change_text(plan.primary_metric, claim.arm, value, claim.baseline)
    text = f"{change}{in_regime(claim)} so far"
    if difference is None or difference.low is None:
        return text, f"An interval needs more than {plural(look.blocks, 'block')}."
    upcoming = next((look_at for look_at in plan.looks if look_at > look.blocks), None)
    next_look = f"; the next look at the verdict is after block {upcoming}" if upcoming is not None else ""
    return text, f"95% interval {bounds_beside(plan.primary_metric, difference)}, {blocks}{next_look}."


def _about(trial: Trial) -> list[tuple[str, str]]:
    """Returns pairs of a term and its description for the head of a trial's page."""
    measured = trial.measured
    latency = measured.latency_us if measured else None
    mean, p99 = (three_digits(of / 1000) for of in (latency.mean, latency.p99)) if latency else ("", "")
    return [
        ("load", trial.load_point.label),
        ("block", str(trial.block + 1)),
        ("started", trial.started[:19].replace("T", " ")),
        ("outcome", f"failed: {trial.reason}" if trial.reason else trial.status),
        *([("committed", f"{measured.tps:,.0f} {rate_unit([trial.load_point])}")] if measured else []),
        *([("latency", f"mean {mean} ms, 99% {p99} ms")] if latency else []),
        *([("failed transactions", f"{sum(measured.failures.values()):,}")] if measured else []),
    ]


def _seconds(data: StudyData, trial: Trial) -> Table[dict[str, Any]]:
    def ms(name: str) -> Callable[[dict[str, Any]], float | None]:
        return lambda row: row[name] / 1000 if row[name] is not None else None

    return Table(
        "Seconds of the trial, negative in the warm-up: committed and failed transactions, latency in milliseconds.",
        seconds_of(trial, data.timelines[trial.index]).to_dicts(),
        [
            number("second", lambda row: row["s"]),
            number("transactions", lambda row: row["transactions"], ","),
            number("failures", lambda row: row["failures"], ","),
            *(number(head, ms(name), ".3f") for name, head in LATENCIES.items()),
        ],
    )


def _waits(data: StudyData, trial: Trial) -> Table[dict[str, Any]]:
    """Returns the table of the mean number of active sessions over the measured part."""
    waits = data.waits.get(trial.index, pl.DataFrame(schema=WAITS_SCHEMA))
    measured = waits.filter((pl.col("second") >= 0) & (pl.col("state") == "active"))
    seconds = measured["second"].n_unique()
    named = measured.group_by("wait_event_type", "wait_event").agg(pl.col("sessions").sum() / seconds)
    return Table(
        "Active sessions by what they waited for, mean over the measured part.",
        named.sort("sessions", descending=True).to_dicts(),
        [
            Column("waits for", lambda row: _event(row["wait_event_type"], row["wait_event"])),
            number("sessions", lambda row: row["sessions"], ".2f"),
        ],
    )


def _event(kind: str | None, event: str | None) -> str:
    return f"{kind}:{event}" if event is not None else "nothing: on a CPU, or in the queue for one"
