"""The report's tables as data: the page and the Markdown show the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from pgtrial.model.records.results import Claim, Level
from pgtrial.model.records.study import Measure, Trial
from pgtrial.model.units import percent, plural
from pgtrial.report.data import StudyData
from pgtrial.report.words import interval_name, interval_text, where
from pgtrial.statistics import p8
from pgtrial.statistics.deployments import is_fixed


@dataclass(frozen=True)
class Table:
    """A caption, column heads and rows of text; `numeric` columns are set flush right; `marked` rows stand out.

    `folded` says whether the page folds it away; None: as its section.
    """

    caption: str
    heads: list[str]
    rows: list[list[str]]
    numeric: frozenset[int] = frozenset()
    marked: frozenset[int] = field(default_factory=frozenset)
    folded: bool | None = None


NONE = "–"


def ratio_table(data: StudyData) -> Table:
    """Every claim with its interval, the primary ones first."""
    result = data.result
    several = len(data.plan.load_points) > 1
    whole = [c for primary in result.primary for c in [primary, *(result.claims(primary.arm) if several else [])]]
    claims = [part for claim in whole for part in claim.read]
    rows = [
        [
            f"{claim.arm} / {claim.baseline}",
            _subject(data, claim),
            percent(claim.difference.value, sign=True) if claim.difference else _running(claim),
            interval_text(claim.difference, sign=True) if claim.difference else NONE,
            claim.verdict + (", within the margin" if claim.within_margin and claim.verdict != "equivalent" else ""),
            _mean(claim),
            percent(claim.totals, sign=True) if claim.totals is not None else NONE,
            str(claim.blocks),
            str(claim.family),
        ]
        for claim in claims
    ]
    heads = ["arms", "load point", "difference", "95% interval", "verdict", "mean (95% t)",
             "in total", f"{claims[0].unit}s", "claims"]  # fmt: skip
    unit = claims[0].unit
    estimate = (
        f"the mean over pairs of deployments with its {interval_name(data.plan)}"
        if is_fixed(data.plan)
        else f"the Hodges-Lehmann estimate over {unit}s with its sequential interval"
    )
    caption = (
        f"{_COMPARED[data.plan.measure]} The difference is {estimate}. The intervals of one comparison's load points "
        "hold together (the last column counts them), and so do those of the primary claims."
    )
    marked = frozenset(i for i, claim in enumerate(claims) if claim.load_point is None and several)
    return Table(caption, heads, rows, frozenset({2, 3, 5, 6, 7, 8}), marked)


_COMPARED: dict[Measure, str] = {
    "goodput": "Goodput of each arm against the baseline.",
    "mean response time": "Speed of each arm against the baseline at the given rate: the baseline's mean response time "
    "by the arm's (+25%: the arm takes four fifths of the time).",
    "mean response time of tasks": "Speed of each arm against the baseline: the baseline's mean response time of all "
    "tasks by the arm's (+25%: the arm takes four fifths of the time). A task that failed counts with the time until "
    "it did.",
}


def _subject(data: StudyData, claim: Claim) -> str:
    primary = " (primary)" if claim.load_point is None and len(data.plan.load_points) > 1 else ""
    return where(claim, data.plan) + primary


def _running(claim: Claim) -> str:
    return f"{percent(claim.running, sign=True)} (running)" if claim.running is not None else NONE


def _mean(claim: Claim) -> str:
    if claim.mean is None:
        return NONE
    bounded = claim.mean.low is not None
    return percent(claim.mean.value, sign=True) + (f" ({interval_text(claim.mean, sign=True)})" if bounded else "")


def level_table(data: StudyData) -> Table:
    """tps of each arm at each load point."""
    rows = []
    for level in data.result.levels:
        if level.tps is None:
            kept = [spread.median for spread in (level.tps_before, level.tps_after) if spread is not None]
            spread = [levels_text(kept) if kept else NONE, NONE, NONE]
        else:
            known = level.tps_low is not None and level.tps_high is not None
            between = f"{level.tps_low:,.0f} to {level.tps_high:,.0f}" if known else NONE
            spread = [f"{level.tps.median:,.0f}", between, f"{level.tps.lowest:,.0f} to {level.tps.highest:,.0f}"]
        label = data.plan.load_points[level.load_point].label
        rows.append([label, level.arm, *spread, str(level.trials), str(level.failed_trials)])
    caption = (
        "Throughput of each arm: the median trial with a distribution-free interval of at least 95%. It describes an "
        "arm; arms are compared within blocks, so overlapping intervals here say nothing."
    )
    heads = ["load point", "arm", "median tps", "95% interval", "lowest to highest", "trials", "failed"]
    return Table(caption, heads, rows, frozenset({2, 3, 4, 5, 6}))


def levels_text(levels: list[float]) -> str:
    """Levels that followed each other, tps: `1,070 then 250`."""
    return " then ".join(f"{level:,.0f}" for level in levels)


def latency_table(data: StudyData) -> Table:
    """Latency of each arm at each load point."""
    names = list(data.result.levels[0].latency_us) if data.result.levels else []
    rows = [
        [data.plan.load_points[level.load_point].label, level.arm, *(_latency(level, name) for name in names)]
        for level in data.result.levels
    ]
    caption = (
        "Latency of committed transactions in milliseconds: the median trial, in brackets the lowest and highest "
        f"trial. A percentile stands only where every trial has 100 slower transactions. {_MEANING[data.plan.measure]}"
    )
    mixed = [cell for cell in data.result.regimes if cell.changes]
    if mixed:
        told = ", ".join(f"{cell.arm} at {data.plan.load_points[cell.load_point].label}" for cell in mixed)
        caption += f" It mixes the time before and after a change of regime: {told}."
    return Table(caption, ["load point", "arm", *names], rows, frozenset(range(2, 2 + len(names))))


_MEANING: dict[Measure, str] = {
    "goodput": "Under a closed loop as here, latency repeats the throughput comparison (Little's law) and is no second "
    "finding.",
    "mean response time": "It counts from the moment for which the rate had scheduled a transaction; the verdict is "
    "about its mean.",
    "mean response time of tasks": "It counts from the arrival of a task, its wait for a connection included; tasks "
    "that failed are not in it.",
}


def _latency(level: Level, name: str) -> str:
    spread = level.latency_us[name]
    if spread is None:
        return NONE
    return f"{_ms(spread.median)} ({_ms(spread.lowest)} to {_ms(spread.highest)})"


def _ms(microseconds: float) -> str:
    value = microseconds / 1000
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f}"


def block_table(data: StudyData) -> Table:
    """The unit of analysis: every block's log-ratios, with the order that the coin drew."""
    claims = [part for claim in data.result.by_load_point for part in claim.read]
    blocks = sorted({ratio.block for claim in claims for ratio in claim.ratios})
    rows = []
    for block in blocks:
        for claim in claims:
            for ratio in claim.ratios:
                if ratio.block != block or claim.load_point is None:
                    continue
                value = f"{ratio.log_ratio:+.4f}" if ratio.log_ratio is not None else "void" if ratio.failed else NONE
                remarks = [f"{', '.join(ratio.failed)} failed"] if ratio.failed else []
                remarks += [] if ratio.counted else ["provisional"]
                pair = f"{claim.arm} / {claim.baseline}"
                rows.append(
                    [str(block + 1), where(claim, data.plan), pair, ", ".join(ratio.order), value, "; ".join(remarks)]
                )
    compared = (
        "goodput / goodput of the baseline"
        if data.plan.measure == "goodput"
        else "mean response time of the baseline / mean response time"
    )
    unit = claims[0].unit
    caption = (
        f"Each block's ln({compared}), and the order of the arms as drawn before the study."
        if unit == "block"
        else f"Each pair of deployments' mean ln({compared}) over its blocks."
    )
    return Table(caption, [unit, "load point", "arms", "order", "log-ratio", "remark"], rows, frozenset({0, 4}))


def failure_table(data: StudyData) -> Table:
    """Failures by arm."""
    rows = [
        [
            entry.arm,
            f"{entry.failed_trials} of {entry.trials}",
            f"{entry.transactions:,}",
            f"{entry.failed_transactions:,}",
            percent(entry.share),
            ", ".join(f"{kind}: {number:,}" for kind, number in entry.by_kind.items()) or NONE,
            str(entry.aborted_clients),
        ]
        for entry in data.result.failures
    ]
    heads = ["arm", "failed trials", "committed", "failed", "share failed", "by SQLSTATE or kind", "aborted clients"]
    return Table(
        "Failures over all trials. Failed transactions are not goodput.", heads, rows, frozenset({1, 2, 3, 4, 6})
    )


def failed_trial_table(data: StudyData) -> Table:
    """Every failed trial with its reason."""
    rows = [
        [
            str(failed.index + 1),
            str(failed.block + 1),
            failed.arm,
            data.plan.load_points[failed.load_point].label,
            failed.reason,
            "void: both failed" if failed.void else "counts as the worst rank",
        ]
        for failed in data.result.failed_trials
    ]
    return Table("Failed trials.", ["trial", "block", "arm", "load point", "reason", "effect"], rows, frozenset({0, 1}))


def steadiness_table(data: StudyData) -> Table:
    """Whether tps still moved within the measured part."""
    rows = [
        [
            entry.arm,
            entry.state,
            percent(entry.trend, sign=True) if entry.trend is not None else NONE,
            str(entry.rising),
            str(entry.falling),
            str(entry.blocks),
        ]
        for entry in data.result.steadiness
    ]
    caption = (
        "Trend of tps from start to end of the measured part (Theil-Sen slope per trial, averaged within a block; sign "
        "test over blocks). Trends below 1% are not called trends."
    )
    heads = ["arm", "state", "median trend", "blocks rising", "blocks falling", "blocks"]
    return Table(caption, heads, rows, frozenset({2, 3, 4, 5}))


def look_table(data: StudyData) -> Table:
    """The planned looks and the error that each may spend."""
    primary = len(data.result.primary)
    fixed, unit = is_fixed(data.plan), data.result.primary[0].unit
    rows = []
    for look in data.result.looks:
        threshold = p8.rejection_threshold(look.blocks, look.alpha / primary)
        too_few = f"too few {unit}s"
        rows.append(
            [
                str(look.blocks),
                f"{look.alpha:.5f}",
                f"{look.alpha / primary:.5f}",
                NONE if fixed else str(threshold) if threshold >= 0 else too_few,
                "yes" if look.secondary_possible else too_few,
                "reached" if look.reached else "not reached",
            ]
        )
    caption = (
        f"Planned looks of the rule P8. The errors of all looks, now or later, sum to 5% over "
        f"{plural(primary, 'primary claim')}; a claim is decided when the smaller sum of signed "
        "ranks is at most the threshold."
        if not fixed
        else f"One look, at the end: the t interval over pairs of deployments, its error shared by "
        f"{plural(primary, 'primary claim')}."
    )
    heads = [f"{unit}s", "error of the look", "per primary claim", "threshold", "load points decidable", "state"]
    return Table(caption, heads, rows, frozenset({0, 1, 2, 3}))


def phase_table(data: StudyData) -> Table:
    """Where the wall time of a trial goes."""
    names = list(dict.fromkeys(name for trial in data.trials for name in trial.phases_s))
    rows = []
    for arm in data.plan.arms:
        own = [trial for trial in data.trials if trial.arm == arm]
        spent = [[t.phases_s[name] for t in own if name in t.phases_s] for name in names]
        rows.append([arm, *(f"{median(values):.2f}" if values else NONE for values in spent), str(len(own))])
    return Table("Median wall time of a trial's phases, seconds.", ["arm", *names, "trials"], rows,
                 frozenset(range(1, len(names) + 2)))  # fmt: skip


def client_table(data: StudyData) -> Table:
    """What the client used; without rows for trials that are older than the engine's self-check."""
    rows = []
    for point in data.plan.load_points:
        for arm in data.plan.arms:
            used = [t.client for t in data.trials if (t.load_point, t.arm) == (point, arm) and t.client]
            costs = [use.cpu_per_transaction_us for use in used if use.cpu_per_transaction_us is not None]
            if not costs:
                continue
            shares = [use.busiest_thread_share for use in used]
            warned = sum(bool(use.warnings) for use in used)
            rows.append(
                [
                    *(point.label, arm, f"{median(costs):.2f}"),
                    *(f"{median(shares):.0%}", f"{max(shares):.0%}", f"{warned} of {len(used)}"),
                ]
            )
    caption = (
        "The client: CPU time of its load threads by transaction, microseconds, and of the busiest of them by wall "
        "time, in the median and the highest trial. In the trials of the last column the engine warned that it was a "
        "limit itself; with more than one in eight for an arm, the comparison is withheld unless the study allows it."
    )
    heads = ["load point", "arm", "client us per transaction", "busiest thread", "highest", "trials with a warning"]
    return Table(caption, heads, rows, frozenset({2, 3, 4, 5}))


def trial_table(data: StudyData) -> Table:
    """Every trial in the order of execution; the client's CPU time and round trips only where they were recorded."""
    timed = any(t.round_trip_us is not None for t in data.trials)
    told = any(t.client and t.client.cpu_per_transaction_us is not None for t in data.trials)
    kept = {t.index: t.regime.segments for cell in data.result.regimes for t in cell.not_flat}
    rows = []
    for t in data.trials:
        measured = t.measured
        latency = measured.latency_us if measured else None
        rows.append(
            [
                str(t.index + 1),
                str(t.block + 1),
                t.load_point.label,
                t.arm,
                t.status,
                levels_text([segment.tps for segment in kept[t.index]])
                if t.index in kept
                else f"{measured.tps:,.1f}"
                if measured
                else NONE,
                f"{measured.transactions:,}" if measured else NONE,
                f"{sum(measured.failures.values()):,}" if measured else NONE,
                _ms(latency.mean) if latency else NONE,
                _ms(latency.p50) if latency else NONE,
                _ms(latency.p99) if latency else NONE,
                *([_client_cost(t)] if told else []),
                f"{t.client.busiest_thread_share:.0%}" if t.client else NONE,
                *([NONE if t.round_trip_us is None else f"{t.round_trip_us:,.0f}"] if timed else []),
                str(t.seed),
                t.started.replace("T", " ")[:19],
                " ".join(f"{name} {seconds:.1f}" for name, seconds in t.phases_s.items()),
                "; ".join([*([t.reason] if t.reason else []), *t.notes, *_client_warnings(t)]),
            ]
        )
    trip = "lab's round trip us" if any(t.machines for t in data.trials) else "round trip us"
    heads = ["trial", "block", "load point", "arm", "status", "tps", "committed", "failed", "mean ms", "p50 ms",
             "p99 ms", *(["client us"] if told else []), "busiest thread", *([trip] if timed else []),
             "seed", "started (UTC)", "phases, s", "remarks"]  # fmt: skip
    numeric = frozenset({0, 1, *range(5, heads.index("started (UTC)"))})
    return Table("Every trial in the order of execution.", heads, rows, numeric)


def _client_cost(trial: Trial) -> str:
    cost = trial.client.cpu_per_transaction_us if trial.client else None
    return f"{cost:.2f}" if cost is not None else NONE


def _client_warnings(trial: Trial) -> list[str]:
    return [warning.message for warning in trial.client.warnings] if trial.client else []


SECTIONS: dict[str, list[Callable[[StudyData], Table]]] = {
    "tps": [level_table],
    "ratio": [ratio_table],
    "latency": [latency_table],
    "blocks": [block_table],
    "failures": [failure_table, failed_trial_table],
    "method": [look_table, steadiness_table, client_table, phase_table],
    "trials": [trial_table],
}
"""The tables of each section of the report, in order."""
