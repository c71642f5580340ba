"""The summary of a gate as Markdown, short enough for a comment on a pull request. It contains the outcome, the speeds
of both arms, the costs of a transaction that explain the difference, and which differences can be found on this CI
runner."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.records.load_point import measure_of, rate_unit
from pgtrial.model.records.results import Cost, StudyResult
from pgtrial.model.units import as_written, format_duration, percent, plural, short_statement
from pgtrial.report.data import StudyData
from pgtrial.report.gate.outcome import Outcome
from pgtrial.report.gate.parts import Part, noun_of, parts_of
from pgtrial.report.gate.runner import change_of_runner
from pgtrial.report.gate.tries import Tries
from pgtrial.report.instructions import instruction_sentences, instructions_of
from pgtrial.report.markdown import escaped, table_lines
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.certificate import dated
from pgtrial.report.tables.instructions import function_table
from pgtrial.report.tables.metrics import metric_text
from pgtrial.report.tables.results import digits, median_tps, milliseconds, verdict_text
from pgtrial.report.words import cost_text, established, estimate_text, measure_text, measured_text, signed, where
from pgtrial.statistics.precision import precision
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.costs import clearly
from pgtrial.verdict.pace import measured_spread
from pgtrial.verdict.units import looks_of

MOST_ROWS = 40
"""A summary shows at most this number of load points, of all studies together, because a comment can have 65,536
characters."""
_MOST_COSTS = 8
_MOST_FUNCTIONS = 10
_MOST_NOTES = 6
_MOST_PLANS = 6


def summary(data: StudyData, of_gate: Outcome, bundle: str | None, tries: Tries | None = None) -> str:
    """Returns the summary of a gate whose study has run. `bundle` is the name of the bundle of the study, if there is
    one."""
    return "\n".join(_lines(data, of_gate, bundle, tries)).rstrip() + "\n"


def summary_without_study(base: str, head: str, of_gate: Outcome) -> str:
    """Returns the summary of a gate that has measured nothing."""
    return f"{_title(of_gate)}\n\n**{plain(head)} against {plain(base)}**: {plain(of_gate.sentence)}\n"


def _lines(data: StudyData, of_gate: Outcome, bundle: str | None, tries: Tries | None) -> Iterator[str]:
    yield from beginning(of_gate, tries)
    yield from results(data)
    if bundle is not None:
        yield f"Bundle: `{file_name(bundle)}`; `pgtrial report` shows all of it, `pgtrial verify` checks it."


def beginning(of_gate: Outcome, tries: Tries | None) -> Iterator[str]:
    """Yields the first lines of a summary: the outcome of the gate, and which try it is."""
    yield f"{_title(of_gate)}\n"
    yield f"**{plain(of_gate.sentence)}**\n"
    if tries is not None and tries.sentence is not None:
        yield f"{plain(tries.sentence)}\n"


def results(data: StudyData, *, heading: str = "####", most_rows: int = MOST_ROWS) -> Iterator[str]:
    """Yields the lines about the results of one study: a table of at most `most_rows` load points, what explains the
    difference, and which differences this CI runner can find. `heading` is the mark of a heading in Markdown."""
    result = data.result
    claim = claim_on_head(data)
    head = claim.arm
    yield from table(_comparison(data, claim, most_rows))
    more = len(result.claims(head)) - most_rows
    if more > 0:
        yield f"and {plural(more, 'more load point')}, see the report\n"
    yield from _differing_parts(data, head, most_rows)
    for row in result.metrics:
        if row.arm == head and not row.primary:
            yield f"- {plain(row.metric)}: {plain(metric_text(row, rate_unit(data.plan.load_points)))}"
    for failure in result.failures:
        if failure.failed_trials or failure.failed_transactions:
            failed = f"{failure.failed_trials} of {plural(failure.trials, 'trial')} failed"
            yield f"- {plain(failure.arm)}: {failed}, {failure.failed_transactions:,} failed transactions"
    warnings = [finding for finding in result.findings if finding.severity != "info"]
    yield from (f"- {finding.severity}: {plain(finding.message)}" for finding in warnings[:_MOST_NOTES])
    yield f"\n{heading} Causes per transaction\n"
    yield from _causes(data, claim)
    yield from _other_plans(data, head, heading)
    yield from _instructions(data, heading)
    yield f"\n{heading} What this runner can tell\n"
    yield from (f"- {plain(sentence)}" for sentence in _reach(data))
    yield ""
    yield plain(_measured(data, claim))


def claim_on_head(data: StudyData) -> Claim:
    """Returns the claim that decides the gate in a study: HEAD against BASE over all load points."""
    return next(claim for claim in data.result.primary if claim.arm == data.plan.arms[1])


def file_name(name: str) -> str:
    """Returns the name of a file without the characters that have a meaning in Markdown."""
    return "".join(character for character in name if character.isalnum() or character in "._-+=")


def _title(of_gate: Outcome) -> str:
    return f"### pgtrial gate: {of_gate.word}"


def plain(text: str) -> str:
    """Returns a text escaped for Markdown, and so that a forge does not turn parts of it, such as `git:.@main`, into
    mentions of people, issues or links."""
    return _unmentioned(escaped(text))


_LINKED = re.compile(r"[@#]|(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-)|(?<!\w)[!~%$&](?=[\w\"])", re.IGNORECASE)
"""Matches the positions in a text at which a forge would make a mention or a link. On GitLab, a sign such as `!` or `~`
before a number or a word links to a merge request or a label."""


def _unmentioned(text: str) -> str:
    return _LINKED.sub(r"\g<0><!-- -->", text)


def table(content: Table[Any]) -> Iterator[str]:
    """Yields the lines of a table, in which a forge finds no mention and no link."""
    yield from map(_unmentioned, table_lines(content))


@dataclass(frozen=True)
class Row:
    """A row of the comparison: a load point, the part of the trials at a load point before or after a lasting change of
    speed, or the mean over the load points."""

    load_point: str
    levels: dict[str, str]
    claim: Claim


def _comparison(data: StudyData, claim: Claim, most_rows: int) -> Table[Row]:
    plan, result = data.plan, data.result
    base, head = plan.arms[:2]
    several = len(plan.load_points) > 1
    claims = [claim, *(result.claims(head)[:most_rows] if several else [])]
    rows = [
        Row(where(part, plan) + (" (decides)" if several and part.load_point is None else ""), levels, part)
        for of_point in claims
        for levels in [_levels(result, of_point)]
        for part in of_point.read
    ]
    unit = rate_unit(plan.load_points) if plan.measure == "goodput" else "mean ms"
    return Table(
        "",
        rows,
        [
            Column("load", lambda row: row.load_point),
            *(number(f"{arm}, {unit}", partial(_level_of, arm)) for arm in (base, head)),
            number("difference", lambda row: estimate_text(row.claim, "so far")),
            number("95% interval", lambda row: established(row.claim, plan), Estimate.text),
            Column("verdict", lambda row: verdict_text(row.claim)),
        ],
    )


def _differing_parts(data: StudyData, head: str, most_rows: int) -> Iterator[str]:
    """Yields a table of the queries of a suite, or the statements of a replay, that are slower or faster on HEAD, and a
    line with the number of those that are undecided. Yields nothing if the load has no such parts."""
    plan, result = data.plan, data.result
    parts = parts_of(result, head)
    if not parts:
        return
    slower, faster = [part for part in parts if part.is_slower], [part for part in parts if part.is_faster]
    differing, noun = [*slower, *faster], noun_of(result)
    undecided = sum(part.verdict == "undecided" for part in parts)
    yield f"\nOf {plural(len(parts), noun)}: {len(slower)} slower, {len(faster)} faster, {undecided} undecided\n"
    if not differing:
        return

    def time(arm: str, part: Part) -> str | None:
        time_us = part.time_us.get(arm)
        return None if time_us is None else milliseconds(time_us)

    yield from table(
        Table(
            "",
            differing[:most_rows],
            [
                Column(noun, lambda part: part.name),
                *(number(f"{arm}, ms", partial(time, arm)) for arm in plan.arms[:2]),
                number("difference", lambda part: part.difference, lambda difference: signed(difference.value)),
                number("95% interval", lambda part: part.difference, Estimate.text),
                Column("verdict", lambda part: part.verdict),
            ],
        )
    )
    if (more := len(differing) - most_rows) > 0:
        yield f"and {more} more, see the report\n"


def _level_of(arm: str, row: Row) -> str | None:
    return row.levels.get(arm)


def _levels(result: StudyResult, claim: Claim) -> dict[str, str]:
    """Returns the speed of each arm as text: the throughput of the median trial, or its mean response time in
    milliseconds, which for a suite is the geometric mean over its queries. The result is empty if the claim
    (comparison) is about the mean over several load points."""
    if claim.load_point is None and len(result.load_points) > 1:
        return {}
    if result.queries:
        of_all = next(row.time_us for row in result.queries if row.query is None and row.arm == claim.arm)
        return {arm: milliseconds(us) for arm, us in of_all.items() if us is not None}
    by_goodput = measure_of(result.load_points) == "goodput"
    texts = {}
    for level in result.levels:
        mean = level.latency_us.get("mean")
        text = median_tps(level) if by_goodput else milliseconds(mean.median) if mean else None
        if level.load_point == (claim.load_point or 0) and text:
            texts[level.arm] = text
    return texts


def moved_costs(data: StudyData, claim: Claim) -> list[Cost]:
    """Returns the costs of a transaction in which an arm differs clearly from the baseline, beginning with the largest
    difference."""
    result, margin = data.result, data.plan.margin
    single = len(result.load_points) == 1
    moved = [
        cost
        for cost in result.costs
        if cost.arm == claim.arm and (cost.load_point is None or single) and clearly(cost, margin)
    ]
    return sorted(
        moved, key=lambda cost: -abs(math.log1p(max(cost.difference.value if cost.difference else 0.0, -0.9999)))
    )


def _causes(data: StudyData, claim: Claim) -> Iterator[str]:
    """Yields the lines of a table with the costs of a transaction that differ clearly between HEAD and BASE, beginning
    with the largest difference."""
    result = data.result
    single = len(result.load_points) == 1
    moved = moved_costs(data, claim)
    if not moved:
        yield _without_causes(data)
        return
    medians = {(cost.arm, cost.what): cost.median for cost in result.costs if single}
    yield from table_lines(
        Table(
            "",
            moved[:_MOST_COSTS],
            [
                Column("cost", lambda cost: f"{cost.what}, {cost.unit}" if cost.unit else cost.what),
                number("base", lambda cost: medians.get((data.plan.baseline, cost.what)), partial(digits, most=4)),
                number("head", lambda cost: medians.get((cost.arm, cost.what)), partial(digits, most=4)),
                number("difference", lambda cost: cost_text(cost) or signed(cost.difference.value)),
            ],
        )
    )


def _without_causes(data: StudyData) -> str:
    """Returns a sentence that says which costs of a transaction were measured, none of which differs clearly."""
    measured = list(dict.fromkeys(cost.what for cost in data.result.costs))
    known = f"None of the measured costs of a transaction differs clearly: {', '.join(measured)}."
    if not measured:
        known = "No cost was measured."
    elif len(measured) == 1:
        known = f"Of the costs of a transaction only {measured[0]} was measured, and it does not differ clearly."
    if data.plan.shares_server:
        known = f"{known} The server is not observed while sessions of all arms take turns on it."
    return known


def _other_plans(data: StudyData, head: str, heading: str) -> Iterator[str]:
    """Yields a line for each statement of the load whose plan differs between HEAD and BASE, with the first nodes that
    differ. Yields nothing if no plan differs."""
    of_head = [found for found in data.result.plans if found.arm == head]
    if not of_head:
        return
    yield f"\n{heading} Statements with another plan\n"
    for found in of_head[:_MOST_PLANS]:
        statement = short_statement(found.statement)
        yield f"- {plain(f'{statement}: {found.at_arm} in place of {found.at_baseline}')}"
    if (more := len(of_head) - _MOST_PLANS) > 0:
        yield f"- and {plural(more, 'more statement')}, see the report"


def _instructions(data: StudyData, heading: str) -> Iterator[str]:
    """Yields what the summary says about the counted instructions of HEAD: a line for each load, and the functions that
    differ most. Yields nothing if they were not counted."""
    of_head = instructions_of(data.result, data.plan.arms[1])
    if not of_head:
        return
    yield f"\n{heading} Instructions per transaction\n"
    yield from (f"- {plain(sentence)}" for sentence in instruction_sentences(data.result, data.plan.arms[1]))
    for one in of_head:
        if one.repeats and not one.is_same and one.functions:
            yield ""
            yield from table(function_table(one, _MOST_FUNCTIONS))


def _reach(data: StudyData) -> Iterator[str]:
    """Yields sentences about how small a difference this CI runner can find. They use the comparison of BASE with
    itself, the noise between the blocks, and an earlier self-test of the machine."""
    plan, result = data.plan, data.result
    again = [claim for claim in result.primary if claim.arm in plan.arms[2:]]
    for claim in again:
        interval = claim.difference.text() if claim.difference else "no interval yet"
        yield f"Base against base: {interval}, {verdict_text(claim)}."
    measured = measured_spread(Grid(plan, data.trials))
    if measured is None:
        yield "The noise of a block is known from four blocks on."
    else:
        spread, blocks = measured
        reach = precision(looks_of(plan).within(plan.max_blocks), len(plan.arms) - 1, spread)
        finds = (
            f"{plural(reach.blocks, 'block')}, the most of this plan, find a difference of "
            f"{percent(reach.difference)} with a power of 80%"
            if reach is not None
            else "so few blocks decide nothing"
        )
        yield f"The log-ratio of a block varies by {percent(spread)} over {plural(blocks, 'block')}: {finds}."
    if (change := change_of_runner(data)) is not None:
        yield change
    if data.certificate is not None:
        yield f"Self-test {dated(data.certificate)}."
    elif not again:
        yield "Base was not compared with itself: --base-twice does that, and pgtrial selftest once for this machine."


def _measured(data: StudyData, claim: Claim) -> str:
    plan, result = data.plan, data.result
    taken = f" in {format_duration(round(result.block_s * result.blocks_complete))}"
    return (
        f"{measure_text(plan)}, {measured_text(claim, plan)}{taken}; margin {as_written(plan.margin)}; {plan.scope}; "
        f"pgtrial {result.pgtrial}."
    )
