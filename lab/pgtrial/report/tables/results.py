"""The tables of the result: differences, throughputs, latencies, lasting changes of speed within trials, blocks, and
the looks (the planned interim analyses, each of which may give a verdict)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from pgtrial.model.metrics import CAPACITY
from pgtrial.model.records.claims import BlockRatio, Claim, Estimate
from pgtrial.model.records.kind import Measure
from pgtrial.model.records.load_point import measure_of, rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import (
    CellRegimes,
    Level,
    MetricClaim,
    PlannedLook,
    QueryClaim,
    Spread,
    StatementClaim,
    Steadiness,
)
from pgtrial.model.records.trial import TrialRegime
from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, by_position, number, range_text
from pgtrial.report.words import established, estimate_text, interval_name, measure_text, signed, where
from pgtrial.statistics import p8
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.units import is_fixed


def ratio_table(data: StudyData) -> Table[Claim]:
    """Returns the table of all comparisons of an arm with the baseline, with their intervals. The comparisons over all
    load points, which decide the verdict, come first, followed by those at the single load points."""
    several = len(data.plan.load_points) > 1
    claims = [
        part
        for primary in data.result.primary
        for claim in [primary, *(data.result.claims(primary.arm) if several else [])]
        for part in claim.read
    ]
    unit = claims[0].unit
    estimate = (
        f"the mean over pairs of deployments with its {interval_name(data.plan)}"
        if is_fixed(data.plan)
        else f"the Hodges-Lehmann estimate over {unit}s with its sequential interval"
    )
    caption = (
        f"{_compared(data.plan)} The difference is {estimate}. The intervals of one comparison's load points "
        "hold together (the last column counts them), and so do those of the primary claims."
    )

    def is_mean(claim: Claim) -> bool:
        return claim.load_point is None and several

    return Table(
        caption,
        claims,
        [
            Column("arms", lambda claim: f"{claim.arm} / {claim.baseline}"),
            # the verdict comes before the wide columns, because a phone shows only the first columns
            Column("verdict", verdict_text),
            Column("load point", lambda claim: where(claim, data.plan) + (" (primary)" if is_mean(claim) else "")),
            number("difference", lambda claim: estimate_text(claim, "(running)")),
            number("95% interval", lambda claim: established(claim, data.plan), Estimate.text),
            number("mean (95% t)", lambda claim: claim.mean, _mean),
            number("in total", lambda claim: claim.totals, signed),
            number(f"{unit}s", lambda claim: claim.blocks),
            number("claims", lambda claim: claim.family),
        ],
        is_mean,
    )


def _compared(plan: Plan) -> str:
    metric = plan.named_metric(plan.primary_metric) if plan.primary_metric is not None else None
    if metric is not None and metric.kind != "speed":
        return f"{metric.noun[:1].upper()}{metric.noun[1:]} of each arm against the baseline's (-20%: four fifths)."
    if plan.measure == "goodput":
        measure = measure_text(plan)
        return f"{measure[:1].upper()}{measure[1:]} of each arm against the baseline."
    return _COMPARED[plan.measure]


_COMPARED: dict[str, str] = {
    "mean response time": (
        "The speed of each arm relative to the baseline at the given rate: the mean response time of the "
        "baseline divided by that of the arm (+25% means that the arm takes four fifths of the time)."
    ),
    "time of the job": (
        "The speed of each arm relative to the baseline: the time of the job on the baseline divided by "
        "that on the arm (+25% means that the arm takes four fifths of the time)."
    ),
    "mean response time of tasks": (
        "The speed of each arm relative to the baseline: the mean response time of all tasks on the "
        "baseline divided by that on the arm (+25% means that the arm takes four fifths of the time). A "
        "task that failed counts with the time until it failed."
    ),
    "geometric mean of query times": (
        "The speed of each arm relative to the baseline: the geometric mean of the times of all queries "
        "on the baseline divided by that on the arm (+25% means that the arm takes four fifths of the "
        "time). A query that failed counts with its limit."
    ),
}


def verdict_text(claim: Claim | StatementClaim | QueryClaim | MetricClaim) -> str:
    """Returns the verdict as text, such as `better, within the margin`. If the study only asks whether the arm is worse
    and has excluded that it is, returns `not worse`."""
    if isinstance(claim, Claim) and claim.not_worse and claim.verdict == "undecided":
        return "not worse"
    return claim.verdict + (", within the margin" if claim.within_margin and claim.verdict != "equivalent" else "")


def _mean(mean: Estimate) -> str:
    return signed(mean.value) + (f" ({mean.text()})" if mean.low is not None else "")


def level_table(data: StudyData) -> Table[Level]:
    """Returns the table of the throughput of each arm at each load point."""
    return Table(
        f"{_level_of(data.plan)} of each arm: the median trial with a distribution-free interval of at least 95%. It "
        "describes an arm; arms are compared within blocks, so overlapping intervals here say nothing.",
        data.result.levels,
        [
            Column("load point", lambda level: data.labels[level.load_point]),
            Column("arm", lambda level: level.arm),
            number(f"median {rate_unit(data.plan.load_points)}", median_tps),
            number("95% interval", lambda level: range_text(level.tps_low, level.tps_high)),
            number("lowest to highest", lambda level: level.tps and range_text(level.tps.lowest, level.tps.highest)),
            *_quality(data),
            number("trials", lambda level: level.trials),
            number("failed", lambda level: level.failed_trials),
        ],
    )


def _level_of(plan: Plan) -> str:
    return "Capacity" if plan.primary_metric == CAPACITY else "Throughput"


def levels_beside(one: StudyData, other: StudyData, names: tuple[str, str]) -> Table[Sequence[str | None]]:
    """Returns a table that compares two studies: the throughput of each arm at each load point that one of them has."""
    levels = [
        {(data.labels[level.load_point], level.arm): median_tps(level) for level in data.result.levels}
        for data in (one, other)
    ]
    rows = [[*cell, *(known.get(cell) for known in levels)] for cell in dict.fromkeys(chain(*levels))]
    unit = rate_unit(one.plan.load_points)
    caption = f"Throughput of each arm in either study: {unit} of the median trial."
    return Table(caption, rows, by_position("load point", "arm", *names, right=[2, 3]))


def _quality(data: StudyData) -> list[Column[Level]]:
    """Returns a column for each quality that the packs (workloads in folders) of the study measure. A quality is a
    number that says how good the answers of an arm are, such as the recall of a search."""
    packs = [point.pack for point in data.plan.load_points]
    names = [pack.quality.name if pack and pack.quality else None for pack in packs]

    def of(name: str, level: Level) -> Spread | None:
        return level.quality if names[level.load_point] == name else None

    return [number(name, partial(of, name), partial(_spread, form=".4g")) for name in dict.fromkeys(names) if name]


def median_tps(level: Level) -> str | None:
    """Returns the throughput of the median trial as text. If the speed changes for good within the trials, returns the
    throughput before and after this change."""
    spreads = [level.tps] if level.tps else [level.tps_before, level.tps_after]
    return levels_text([spread.median for spread in spreads if spread is not None]) or None


def levels_text(levels: list[float]) -> str:
    """Returns the throughput before and after a lasting change of speed as text, such as `1,070 then 250`."""
    return " then ".join(f"{level:,.0f}" for level in levels)


def latency_table(data: StudyData) -> Table[Level]:
    """Returns the table of the latency of each arm at each load point."""
    caption = (
        "Latency of committed transactions in milliseconds: the median trial, in brackets the lowest and highest "
        f"trial. A percentile stands only where every trial has 100 slower transactions. {_meaning(data.plan)}"
    )
    mixed = ", ".join(f"{cell.arm} at {data.labels[cell.load_point]}" for cell in data.result.regimes if cell.changes)
    if mixed:
        caption += f" It mixes the time before and after a change of regime: {mixed}."
    levels = data.result.levels
    names = list(levels[0].latency_us) if levels else []
    return Table(
        caption,
        levels if any(any(level.latency_us.values()) for level in levels) else [],
        [
            Column("load point", lambda level: data.labels[level.load_point]),
            Column("arm", lambda level: level.arm),
            *(number(name, _latency(name), _spread_ms) for name in names),
        ],
    )


def _meaning(plan: Plan) -> str:
    meaning = _MEANING[measure_of(plan.load_points)]
    return meaning.replace("; the verdict is about its mean.", ".") if plan.metrics else meaning


_MEANING: dict[Measure, str] = {
    "goodput": (
        "Without a rate, as here, latency repeats the comparison of throughput (Little's law) and is no second result."
    ),
    "mean response time": "It counts from the moment for which the rate had scheduled a transaction; the verdict is "
    "about its mean.",
    "time of the job": "It is the time of the whole job.",
    "mean response time of tasks": "It counts from the arrival of a task, its wait for a connection included; tasks "
    "that failed are not in it.",
    "geometric mean of query times": "It is that of all runs of all queries; the verdict is about the geometric mean "
    "over queries.",
}


def _latency(name: str) -> Callable[[Level], Spread | None]:
    return lambda level: level.latency_us[name]


def _spread_ms(spread: Spread) -> str:
    return f"{milliseconds(spread.median)} ({range_text(spread.lowest, spread.highest, milliseconds)})"


def milliseconds(microseconds: float) -> str:
    """Returns a time in milliseconds as text, in the form of `digits`."""
    return digits(microseconds / 1000)


def digits(value: float, most: int = 3) -> str:
    """Returns a number as text: from 1 to 100 with three significant digits, from 100 on without decimals, and below
    one with `most` decimals."""
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else most
    return f"{value:,.{decimals}f}"


def regime_table(data: StudyData) -> Table[CellRegimes]:
    """Returns the table of the lasting changes of speed within trials: what kind of change it is, the throughput before
    and after it, and the time at which it happened."""
    return Table(
        "The levels that the trials kept, each as the median second, and the time of the change: the "
        "median trial, and in brackets the lowest and highest trial. If more than one in four trials of "
        "an arm change, no average across the change is given. Burst credits are used up by work, so the "
        "number of committed transactions stands next to the time.",
        data.result.regimes,
        [
            Column("load point", lambda cell: data.labels[cell.load_point]),
            Column("arm", lambda cell: cell.arm),
            number("trials", lambda cell: cell.trials),
            Column("classes", lambda cell: ", ".join(f"{shape}: {n}" for shape, n in cell.shapes.items()) or None),
            number(f"{rate_unit(data.plan.load_points)} before", lambda cell: cell.before, _spread),
            number(f"{rate_unit(data.plan.load_points)} after", lambda cell: cell.after, _spread),
            number("changes at s", lambda cell: cell.changed_s, _spread),
            number("settled from s", lambda cell: cell.settled_s, _spread),
            number("committed by then", lambda cell: cell.changed_committed, _spread),
            Column("read as", lambda cell: "by regime" if cell.changes else "whole trials"),
        ],
        lambda cell: cell.changes,
    )


def _spread(spread: Spread, form: str = ",.0f") -> str:
    middle = format(spread.median, form)
    if spread.lowest == spread.highest:
        return middle
    return f"{middle} ({range_text(spread.lowest, spread.highest, form)})"


def regime_trial_table(data: StudyData) -> Table[tuple[CellRegimes, TrialRegime]]:
    """Returns the table of the trials whose throughput was not the same over the whole measured part, with the
    throughput of each part of such a trial."""
    trials = [(cell, trial) for cell in data.result.regimes for trial in cell.not_flat]
    return Table(
        f"The trials that did not keep one level: {rate_unit(data.plan.load_points)} of each level, and the "
        "time at which it ended.",
        sorted(trials, key=lambda row: row[1].index),
        [
            number("trial", lambda row: row[1].index + 1),
            number("block", lambda row: row[1].block + 1),
            Column("load point", lambda row: data.labels[row[0].load_point]),
            Column("arm", lambda row: row[0].arm),
            Column("class", lambda row: row[1].regime.shape),
            Column("levels", lambda row: levels_text([segment.tps for segment in row[1].regime.segments])),
            Column(
                "changes at s", lambda row: ", ".join(str(segment.end_s) for segment in row[1].regime.segments[:-1])
            ),
            Column(
                "committed by then",
                lambda row: ", ".join(f"{segment.committed:,}" for segment in row[1].regime.segments[:-1]),
            ),
        ],
    )


def block_table(data: StudyData) -> Table[tuple[Claim, BlockRatio]]:
    """Returns the table of the blocks. A row has the logarithm of the ratio of the arm to the baseline in this block,
    from which the verdict is computed, and the random order of the arms in the block."""
    ratios = [(claim, ratio) for whole in data.result.by_load_point for claim in whole.read for ratio in claim.ratios]
    measure = measure_text(data.plan).removesuffix(" of tasks")
    declared = data.plan.primary_metric
    more = data.plan.named_metric(declared).better == "more" if declared is not None else data.plan.measure == "goodput"
    compared = f"{measure} / {measure} of the baseline" if more else f"{measure} of the baseline / {measure}"
    unit = data.unit
    return Table(
        f"Each block's ln({compared}), and the order of the arms as drawn before the study."
        if unit == "block"
        else f"Each pair of deployments' mean ln({compared}) over its blocks.",
        sorted(ratios, key=lambda row: row[1].block),
        [
            number(unit, lambda row: row[1].block + 1),
            Column("load point", lambda row: where(row[0], data.plan)),
            Column("arms", lambda row: f"{row[0].arm} / {row[0].baseline}"),
            Column("order", lambda row: ", ".join(row[1].order)),
            number("log-ratio", lambda row: _log_ratio(row[1])),
            Column("remark", lambda row: _remark(row[1])),
        ],
    )


def _log_ratio(ratio: BlockRatio) -> str | None:
    if ratio.log_ratio is None:
        return "void" if ratio.failed else None
    return f"{ratio.log_ratio:+.4f}"


def _remark(ratio: BlockRatio) -> str:
    remarks = [f"{', '.join(ratio.failed)} failed"] if ratio.failed else []
    return "; ".join([*remarks, *([] if ratio.counted else ["provisional"])])


def look_table(data: StudyData) -> Table[PlannedLook]:
    """Returns the table of the planned looks. A look is an interim analysis after a certain number of blocks, and its
    row has the probability of a wrong verdict that the plan allows at this look."""
    claims, unit = primary_sharing(data.plan), data.unit
    too_few = f"too few {unit}s"
    by_p8 = data.plan.spending is None and not is_fixed(data.plan)

    def threshold(look: PlannedLook) -> str:
        ranks = p8.rejection_threshold(look.blocks, look.alpha / claims)
        return str(ranks) if ranks >= 0 else too_few

    columns = [
        number(f"{unit}s", lambda look: look.blocks),
        number("error of the look", lambda look: look.alpha, ".5f"),
        number("per primary claim", lambda look: look.alpha / claims, ".5f"),
        *([number("threshold", threshold)] if by_p8 else []),
        Column("load points decidable", lambda look: "yes" if look.secondary_possible else too_few),
        Column("state", lambda look: "reached" if look.reached else "not reached"),
    ]
    return Table(_caption_of_looks(data, claims), data.result.looks if data.plan.others else [], columns)


def _caption_of_looks(data: StudyData, claims: int) -> str:
    shared = plural(claims, "primary claim")
    if data.plan.families > 1:
        shared = f"all claims of {data.plan.families} families, the primary ones among them"
    if is_fixed(data.plan):
        return f"One look, at the end: the t interval over pairs of deployments, its error shared by {shared}."
    if data.plan.spending is None:
        return (
            f"Planned looks of the rule P8. The errors of all looks, now or later, sum to 5% over {shared}; a claim "
            "is decided when the smaller sum of signed ranks is at most the threshold."
        )
    sides = ", nine tenths of it on the side of worse" if data.plan.spending.one_sided else ""
    return (
        f"Planned looks of the rule P9. The plan fixed before its first block what each look may add to the error that "
        f"has been spent. All looks, now or later, err in at most 5% of studies over {shared}{sides}."
    )


def steadiness_table(data: StudyData) -> Table[Steadiness]:
    """Returns the table of the trends: whether the throughput of each arm rises or falls steadily within the measured
    part of its trials."""
    return Table(
        f"Trend of {rate_unit(data.plan.load_points)} from start to end of the measured part (Theil-Sen slope per "
        "trial, averaged within a block; sign test over blocks). Trends below 1% are not called trends.",
        data.result.steadiness,
        [
            Column("arm", lambda entry: entry.arm),
            Column("state", lambda entry: entry.state),
            number("median trend", lambda entry: entry.trend, signed),
            number("blocks rising", lambda entry: entry.rising),
            number("blocks falling", lambda entry: entry.falling),
            number("blocks", lambda entry: entry.blocks),
        ],
    )
