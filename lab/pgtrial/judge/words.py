"""Puts a judgement into words: a headline for each comparison, and short lines with labels, as in the result of a
study."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pgtrial.judge.draw import can_be_drawn
from pgtrial.judge.judgement import Judgement, Level
from pgtrial.model.metrics import TPS
from pgtrial.model.records.claims import Claim
from pgtrial.model.units import TWICE, as_written, change, percent, plural, times
from pgtrial.report.brief import Headline, Line
from pgtrial.report.tables.results import digits
from pgtrial.report.words import bounds_text, forecast, interval_words, verdict_words

_BLOCKS = 12
"""The number of blocks that pgtrial proposes if the noise is not known, or if more than `_MOST_PROPOSED` blocks would
be needed."""

_MOST_PROPOSED = 200


@dataclass(frozen=True)
class JudgementInWords:
    """A judgement in words, as the terminal prints it."""

    headlines: list[Headline]
    """A headline for each comparison, or a single one if there is a single arm."""
    lines: list[Line]
    """The lines that apply to all comparisons."""

    @property
    def sentences(self) -> list[str]:
        """Returns each headline with its own lines as one text."""
        return [
            "; ".join([headline.text, *(f"{line.label}: {line.text}" for line in headline.lines)])
            for headline in self.headlines
        ]


def in_words(judgement: Judgement) -> JudgementInWords:
    """Returns a judgement in words."""
    if not judgement.primary:
        return JudgementInWords([_alone(judgement)], list(_lines(judgement)))
    return JudgementInWords([_headline(claim, judgement) for claim in judgement.primary], list(_lines(judgement)))


def _metric(judgement: Judgement) -> str | None:
    """Returns the name of the values that are compared, in the form in which `change_text` needs it: None stands for
    transactions per second."""
    return None if judgement.column == TPS and judgement.better == "more" else f"the {judgement.column}"


def _alone(judgement: Judgement) -> Headline:
    level = judgement.levels[0]
    text = f"{level.arm} alone: {plural(level.runs, 'run')}, which compare nothing"
    return Headline(None, text, [Line("median", _level(level)), Line("runs", _extremes(level))])


def _level(level: Level) -> str:
    if level.low is None or level.high is None:
        return digits(level.median)
    return f"{digits(level.median)} ({digits(level.low)} to {digits(level.high)}, 95% interval of the median)"


def _extremes(level: Level) -> str:
    return f"{digits(level.lowest)} to {digits(level.highest)}, the highest {_times(level.highest / level.lowest)}"


def _times(ratio: float) -> str:
    return f"{percent(ratio - 1)} above the lowest" if ratio < 1 + TWICE else f"{times(ratio)} times the lowest"


def _headline(claim: Claim, judgement: Judgement) -> Headline:
    metric, withheld = _metric(judgement), claim.verdict == "withheld"
    levels = {level.arm: level for level in judgement.levels}
    lines = [Line("because", " ".join(judgement.withheld))] if withheld else []
    lines.append(Line("medians", " against ".join(digits(levels[arm].median) for arm in (claim.arm, claim.baseline))))
    if not withheld:
        name = "95% sequential interval"
        lines.append(Line("interval", interval_words(claim, claim.difference, metric, judgement.margin, name)))
    elif claim.difference is not None:
        lines.append(Line("interval", _conditional(claim, judgement)))
    return Headline(claim.verdict, verdict_words(claim, metric, judgement.margin), lines)


def _conditional(claim: Claim, judgement: Judgement) -> str:
    """Returns the difference of a withheld claim as text. The text says under which condition the interval is valid,
    and whether the difference is larger than the noise of the runs."""
    difference = claim.difference
    if difference is None:
        return ""
    if difference.low is None or difference.high is None:
        return (
            f"{change(difference.value)}; a single run of an arm does not show its noise, so that there is no interval"
        )
    condition = "only if a coin ordered the blocks" if judgement.drawn else "only if nothing drifted between the runs"
    weighed = _weighed(claim, judgement)
    return f"{change(difference.value)}, {bounds_text(difference)} (95% interval, {condition}): {weighed}"


def _weighed(claim: Claim, judgement: Judgement) -> str:
    """Returns a clause on what the size of a difference without a verdict shows, compared with the noise and the drift
    of the runs."""
    if judgement.drift is not None and not judgement.drawn:
        return f"but the runs did drift, and the drift alone makes {change(judgement.drift.by_arm[claim.arm])}"
    difference = claim.difference
    if difference is None or difference.low is None or difference.high is None:
        return ""
    if difference.low <= 0 <= difference.high:
        return "the runs of one arm differ by as much, so that the arms may be equal"
    return (
        "the runs of one arm differ by less than that, so it is not chance alone; the cause is the arms, or another "
        "change between the runs"
    )


def _lines(judgement: Judgement) -> Iterator[Line]:
    if judgement.drift is not None and not judgement.drawn:
        yield Line("drift", _drift(judgement))
    yield Line("measured", _measured(judgement))
    if (noise := _noise(judgement)) is not None:
        yield Line("noise", noise)
    if judgement.cautions:
        yield Line("watch out", "; ".join(judgement.cautions))
    if any(claim.verdict in ("better", "worse", "equivalent") for claim in judgement.primary):
        yield Line("holds if", _assumed(judgement))
    if (then := _next(judgement)) is not None:
        yield Line("next", then)


def _drift(judgement: Judgement) -> str:
    drift = judgement.drift
    if drift is None:
        return ""
    if judgement.primary:
        return f"within each arm {change(drift.each_run)} from run to run"
    return (
        f"{change(drift.each_run)} from run to run: these runs have no constant level, and the next run may be beyond "
        "them"
    )


def _measured(judgement: Judgement) -> str:
    parts = [f"{judgement.column}, {judgement.better} is better"]
    runs = {level.arm: level.runs for level in judgement.levels}
    if judgement.drawn and judgement.blocks is not None:
        each = judgement.runs_in_block
        of_block = {1: "", None: ", the mean of its runs"}.get(each, f", the mean of {each} runs")
        blocks = f"{plural(judgement.blocks, 'block')} of {len(judgement.arms)} arms{of_block}"
        parts.append(blocks)
    elif len(set(runs.values())) == 1:
        each_arm = " of each arm" if len(runs) > 1 else ""
        parts.append(f"{plural(next(iter(runs.values())), 'run')}{each_arm}")
    else:
        parts.append(", ".join(f"{plural(number, 'run')} of {arm}" for arm, number in runs.items()))
    return "; ".join([*parts, judgement.source])


def _noise(judgement: Judgement) -> str | None:
    """Returns a line on how the runs scatter, and on what the same number of blocks in a drawn order would find; None
    if the scatter is not known."""
    if judgement.scatter is None:
        return None
    scatter = f"runs of one arm scatter by {percent(judgement.scatter)} (standard deviation)"
    reach = judgement.precision
    if reach is None:
        return scatter
    margin = f"a margin of {_size(reach.margin)}" if reach.margin < 1 else "no margin"
    blocks = plural(reach.blocks, "block")
    return (
        f"{scatter}; {blocks} in a drawn order find a difference of {_size(reach.difference)} and establish {margin}, "
        "each in four of five cases"
    )


def _size(share: float) -> str:
    return percent(share) if share < TWICE else f"{times(1 + share)} times"


def _assumed(judgement: Judgement) -> str:
    blocks = plural(judgement.blocks_planned or 0, "block")
    return (
        f"the order in each block was drawn before it ran, no run was left out, and {blocks} were planned before the "
        "first run (otherwise give the planned number by --blocks)"
    )


def _next(judgement: Judgement) -> str | None:
    """Returns a line on what the user can do to get a verdict; None if each arm has one."""
    if judgement.drawn and not judgement.withheld:
        undecided = [claim for claim in judgement.primary if claim.verdict == "undecided"]
        return _more(max(undecided, key=lambda claim: claim.more_blocks or 0), judgement) if undecided else None
    number = judgement.blocks_to_tell
    proposed = number if number is not None and number <= _MOST_PROPOSED else _BLOCKS
    text = f"{_command(judgement, proposed)} prints an order to run"
    if judgement.scatter is None:
        return text
    larger = any(_exceeds(claim, judgement) for claim in judgement.primary)
    margin = as_written(judgement.margin)
    what = "a difference as large as this one" if larger else f"that a difference is below {margin}"
    if number == proposed:
        return f"{text}; {proposed} blocks {'find' if larger else 'establish'} {what} in four of five cases"
    many = f"{number:,} blocks" if number is not None else "more blocks than can be run"
    return (
        f"{text}; to {'find' if larger else 'establish'} {what} takes {many} by this noise, and fewer with longer runs "
        "or on a quieter machine"
    )


def _more(claim: Claim, judgement: Judgement) -> str:
    planned = max(judgement.blocks_planned or 0, claim.fewest_blocks)
    return forecast(claim, f"; judge them together with these, with --blocks {planned}")


def _exceeds(claim: Claim, judgement: Judgement) -> bool:
    return claim.difference is not None and abs(claim.difference.value) > judgement.margin


def _command(judgement: Judgement, blocks: int) -> str:
    names = judgement.arms if len(judgement.arms) > 1 else [judgement.arms[0], "OTHER"]
    arms = ",".join(names) if all(map(can_be_drawn, names)) else "ARM,ARM"
    return f"pgtrial judge --draw {shlex.quote(arms)} --blocks {blocks}"
