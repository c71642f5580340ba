"""Describes the events of a running study in words, for the lines of progress and for the live display."""

from __future__ import annotations

from pgtrial.conduct.planning.outlook import in_words
from pgtrial.conduct.progress import BlockEnds, JobProgress, StudyBegins
from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.load_point import rate_unit
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import and_more, format_duration, plural
from pgtrial.report.tables.results import digits
from pgtrial.report.words import bounds_beside, change_text


def describe(trial: Trial) -> str:
    """Returns the outcome of a trial in a few words: its throughput and latency, or why it failed."""
    if trial.status == "failed":
        return f"failed: {trial.reason}"
    measured = trial.measured
    if measured is None:
        return "completed"
    if trial.load_point.kind.is_timed and measured.latency_us is not None:
        return f"{digits(measured.latency_us.mean / 1e6)} s{_written(trial)}"
    failed = sum(measured.failures.values())
    if trial.suite is not None:
        mean = trial.suite.mean_us
        shown = f"geometric mean {digits(mean / 1000)} ms" if mean is not None else "no query has a time"
        return f"{shown}{f', {failed:,} failed' if failed else ''}"
    latency = f", latency {measured.latency_us.mean / 1000:.2f} ms" if measured.latency_us else ""
    warned = "".join(f", {warning.kind}" for warning in trial.client.warnings) if trial.client else ""
    if trial.capacity is not None:
        return f"capacity {trial.capacity:,.4g}/s by {plural(len(trial.probes), 'probe')}{warned}"
    unit = rate_unit([trial.load_point])
    return f"{measured.tps:,.0f} {unit}{latency}{f', {failed:,} failed' if failed else ''}{warned}"


def _written(trial: Trial) -> str:
    wal = trial.job.wal_bytes if trial.job is not None else None
    return f", {wal / 1e6:,.1f} MB of WAL" if wal is not None else ""


def how_far(event: JobProgress) -> str:
    """Returns the progress of a job as text: `second 12, create index: building index: loading tuples, 45%, about 8s
    left of it`."""
    parts = [f"second {event.second}"]
    if event.command is not None:
        parts.append(f"{event.command}: {event.phase}" if event.phase else event.command)
    if event.share is not None:
        parts.append(f"{event.share:.0%}")
    if event.left_s is not None:
        parts.append(f"about {format_duration(round(event.left_s) or 1)} left of it")
    return ", ".join(parts)


def running_estimate(event: BlockEnds) -> str:
    """Returns the estimated differences from all blocks so far, such as `off is 153% faster (+120 to +190% at the last
    look)`. A look is a planned interim analysis. An interval is computed only at a look, so that the text has the
    interval of the latest look."""
    largest = sorted(event.running, key=lambda arm: -abs(event.running[arm]))[:_NAMED]
    texts = [
        f"{change_text(event.metric, arm, difference)}{_interval(event, arm)}"
        for arm, difference in event.running.items()
        if arm in largest
    ]
    return ", ".join(and_more(texts, len(event.running)))


_NAMED = 4
"""The largest number of comparisons that a line of progress names."""


def _interval(event: BlockEnds, arm: str) -> str:
    if arm not in event.intervals:
        return ""
    low, high = event.intervals[arm]
    when = "" if event.look else " at the last look"
    return f" ({bounds_beside(event.metric, Estimate(low=low, value=event.running[arm], high=high))}{when})"


def by_the_end(event: BlockEnds) -> str:
    """Returns which difference the study can probably still find if it runs all its planned blocks.

    The text is empty if there is nothing to foresee: before the fourth block, because the noise is not known yet, after
    the last block, and as soon as all comparisons are decided.
    """
    reach = event.precision
    return in_words(reach) if reach is not None and event.block + 1 < reach.blocks and not event.decided else ""


def state(event: BlockEnds) -> str:
    """Returns `decided` if all comparisons have their verdict after this block, otherwise `not yet decided`."""
    return "decided" if event.decided else "not yet decided"


def beginning(event: StudyBegins) -> str:
    """Returns the directory of the study, the number of trials that have still to run, and about how long they take."""
    return (
        f"{event.directory}: {event.planned - event.stored} of {event.planned} trials to run, "
        f"{plural(event.blocks, 'block')}, about {format_duration(event.left_s)}"
    )
