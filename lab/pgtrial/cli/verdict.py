"""Prints verdicts on the terminal. No information is in the colours alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pgtrial.cli.terminal import VERDICT_STYLES, for_terminal
from pgtrial.model import marks
from pgtrial.model.marks import in_toml
from pgtrial.model.records.claims import Claim, Word
from pgtrial.model.records.load_point import measure_of, rate_unit
from pgtrial.model.records.results import Criterion, MetricClaim, StudyResult
from pgtrial.model.records.where_it_ran import MachinePart, WhereItRan
from pgtrial.report.brief import Brief, Headline, Line
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.metrics import metric_value
from pgtrial.report.tables.results import median_tps
from pgtrial.report.tables.screen import factor_table
from pgtrial.report.tables.tasks import criterion_value
from pgtrial.report.words import estimate_text, in_regime, signed

_MOST_MACHINES = 12
_LABEL = 9
"""The width in characters of the longest label."""

_WATCHED = 2
"""The number of warnings that the terminal shows below the verdict. All warnings are in the report."""

_SEVERITIES = {"withhold": "bold red", "warning": "yellow"}


def in_short(brief: Brief, reword: Callable[[str], str] = in_toml) -> RenderableType:
    """Returns a headline for each comparison, and short lines with labels. `reword` changes their texts: these contain
    stored findings, which use the words of the study file."""
    return comparisons_in_short(brief.headlines, brief.lines(_WATCHED), reword)


def comparisons_in_short(
    headlines: Sequence[Headline], lines: Sequence[Line], reword: Callable[[str], str] = str
) -> RenderableType:
    """Returns each headline with the lines that belong to it, and then the lines that apply to all comparisons."""
    parts: list[RenderableType] = []
    for headline in headlines:
        text = headline.text.removeprefix("Undecided ")
        word = "not worse" if headline.not_worse else headline.verdict
        parts += [_headline(headline.verdict, text, word), _grid(headline.lines, reword)]
    return Group(*parts, _grid(lines, reword))


def _headline(verdict: Word | None, text: str, word: str | None = None) -> Text:
    """Returns the verdict in capitals, or `word` in its place, followed by the text. If there is no verdict, because
    the study has a single arm, returns the text alone."""
    if verdict is None:
        return Text(text, "bold")
    return Text.assemble((f"{(word or verdict).upper()}  ", f"bold {VERDICT_STYLES[verdict]}"), (text, "bold"))


def _grid(lines: Sequence[Line], reword: Callable[[str], str]) -> Padding:
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_LABEL, no_wrap=True, style="dim")
    grid.add_column()
    for line in lines:
        grid.add_row(line.label, Text(reword(marks.stored(line.text))))
    return Padding(grid, (0, 0, 0, 2))


def in_full(result: StudyResult) -> RenderableType:
    """Returns the complete result as text: the findings, the sentences of the verdict, the notes, and a table with a
    row for each comparison and load point."""
    parts: list[RenderableType] = [
        Text.assemble((f"{finding.severity}: ", _SEVERITIES[finding.severity]), f"{finding.message} {finding.cure}")
        for finding in result.findings
        if finding.severity != "info"
    ]
    words: list[Word | None] = [claim.verdict for claim in result.primary] or [None for _ in result.sentences]
    parts += [_headline(word, sentence) for word, sentence in zip(words, result.sentences, strict=True)]
    parts += [Text(sentence) for sentence in result.moved]
    parts += [Text(f"note: {note}") for note in result.notes]
    parts += ["", for_terminal(_comparisons(result) if result.screen is None else factor_table(result))]
    if result.criteria:
        parts += ["", for_terminal(_criteria(result))]
    if any(not row.primary for row in result.metrics):
        parts += ["", for_terminal(_metrics(result))]
    if result.where is not None and result.where.machines:
        parts += ["", for_terminal(_fleet(result.where))]
        if (more := len(result.where.machines) - _MOST_MACHINES) > 0:
            parts.append(f"and {more} more machines, see the report")
    return Group(*parts)


@dataclass(frozen=True)
class _Row:
    """A row of the table of comparisons. It shows an arm at a load point, or the mean over the load points, or only the
    part of the trials before or after a lasting change of speed."""

    load_point: str
    arm: str
    measured: str | None = ""
    claim: Claim | None = None
    """The claim about the arm, which is its comparison with the baseline; None in the row of the baseline."""

    @property
    def verdict(self) -> Word | None:
        return self.claim.verdict if self.claim else None

    @property
    def difference(self) -> str | None:
        """Returns the estimated difference from the baseline as text; None if it is not known. The text is empty for
        the baseline, and for a claim (comparison) that is divided into parts (such as before and after a change of
        speed), because each part has its own row and estimate."""
        return estimate_text(self.claim, "so far") if self.claim and not self.claim.parts else ""

    @property
    def interval(self) -> str:
        return self.claim.difference.text() if self.claim and self.claim.difference else ""


def _comparisons(result: StudyResult) -> Table[_Row]:
    """Returns a table with a row for each load point and arm, so that any number of arms fits into the width of the
    terminal."""
    by_goodput = measure_of(result.load_points) == "goodput"
    metric = next((row.metric for row in result.metrics if row.primary), None)
    compared = f"{metric} / {result.baseline}" if metric is not None else f"/ {result.baseline}"
    return Table(
        "",
        list(_rows(result, by_goodput=by_goodput)),
        [
            Column("load point", lambda row: row.load_point),
            Column("arm", lambda row: row.arm),
            number(rate_unit(result.load_points) if by_goodput else "mean ms", lambda row: row.measured),
            number(compared, lambda row: row.difference, verdict=lambda row: row.verdict),
            number("95% interval", lambda row: row.interval, verdict=lambda row: row.verdict),
            Column("verdict", lambda row: row.verdict or "", verdict=lambda row: row.verdict),
        ],
    )


def _rows(result: StudyResult, *, by_goodput: bool) -> Iterator[_Row]:
    claims = {(claim.load_point, claim.arm): claim for claim in result.by_load_point}
    # the mean over tasks includes failed tasks, which the level leaves out
    means = {arm: value for row in result.criteria if row.primary for arm, value in row.values.items()}
    means |= {arm: us and us / 1e6 for row in result.queries if row.query is None for arm, us in row.time_us.items()}
    for level in result.levels:
        if by_goodput:
            measured = median_tps(level)
        else:
            latency = level.latency_us["mean"]
            mean_s = means.get(level.arm, latency.median / 1e6 if latency else None)
            measured = f"{mean_s * 1000:,.3f}" if mean_s is not None else None
        label = result.load_points[level.load_point].label if level.arm == result.arms[0] else ""
        yield from _with_parts(_Row(label, level.arm, measured, claims.get((level.load_point, level.arm))))
    for claim in result.primary if len(result.load_points) > 1 else ():
        yield from _with_parts(_Row("mean (primary)" if claim is result.primary[0] else "", claim.arm, claim=claim))


def _with_parts(row: _Row) -> Iterator[_Row]:
    """Yields a row, followed by a row for each part of its claim. A claim (the comparison of an arm with the baseline)
    has parts if the speed changes within the trials: one before and one after the change."""
    yield row
    for part in row.claim.parts if row.claim else ():
        yield _Row("", f"-{in_regime(part).removeprefix(',')}", claim=part)


def _criteria(result: StudyResult) -> Table[Criterion]:
    """Returns a table of the criteria by which a study of an application's tasks compares the arms, such as the longest
    task. Their intervals are left out here, and are only in the report."""
    return Table(
        "",
        result.criteria,
        [
            Column("criterion", lambda row: row.what),
            number("baseline", lambda row: f"{row.baseline}: {criterion_value(row, row.baseline)}"),
            number("arm", lambda row: f"{row.arm}: {criterion_value(row, row.arm)}"),
            Column("winner", lambda row: row.winner, verdict=lambda row: row.verdict),
        ],
        lambda row: row.primary,
    )


def _metrics(result: StudyResult) -> Table[MetricClaim]:
    """Returns a table of the metrics that the study file declares, with the difference from the baseline and the
    verdict on each. Their intervals are left out here, and are only in the report."""
    rate = rate_unit(result.load_points)
    return Table(
        "",
        result.metrics,
        [
            Column("metric", lambda row: row.metric + (" (primary)" if row.primary else "")),
            number("baseline", lambda row: _with_name(row, row.baseline, rate)),
            number("arm", lambda row: _with_name(row, row.arm, rate)),
            number("difference", lambda row: row.difference and signed(row.difference.value)),
            Column("verdict", lambda row: row.verdict, verdict=lambda row: row.verdict),
        ],
    )


def _with_name(row: MetricClaim, arm: str, rate: str) -> str:
    value = metric_value(row, arm, rate)
    return f"{arm}: {value}" if value is not None else arm


def _fleet(where: WhereItRan) -> Table[MachinePart]:
    """Returns a table of the machines that made the load, with their round-trip times to the servers. It shows only the
    first of them; all machines are in the report."""
    ways = {(way.machine, way.arm): way.round_trip_us for way in where.ways}

    def way_to(arm: str) -> Callable[[MachinePart], float | None]:
        return lambda part: ways.get((part.machine, arm))

    return Table(
        "",
        where.machines[:_MOST_MACHINES],
        [
            Column("load from", lambda part: f"{part.machine} (slow)" if part.slower_by is not None else part.machine),
            number("share", lambda part: part.share, ".1%"),
            *(number(f"us to {arm}", way_to(arm), ",.0f") for arm in dict.fromkeys(way.arm for way in where.ways)),
        ],
    )
