"""The result of a study in a few short lines, as the terminal prints it and as the report begins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.records.claims import Claim, Word
from pgtrial.model.records.load_point import measure_of, rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Failures, Level, StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import and_more, format_duration, percent, plural, shortened
from pgtrial.report.alone import alone_measured, capacity_text, interval_text, withheld_text
from pgtrial.report.instructions import instruction_texts
from pgtrial.report.never_measured import LONGEST_REASON, never_measured
from pgtrial.report.next_steps import against, steps_to_a_verdict, withholding
from pgtrial.report.screen import headline_claims, next_steps, pairs_text, rest_text
from pgtrial.report.statement_errors import NAMED_LENGTH, NAMED_STATEMENTS, errors_text
from pgtrial.report.sweep_words import next_sizes, peak_text, sweep_remarks
from pgtrial.report.tables.metrics import metric_text, metric_value
from pgtrial.report.tables.results import digits, median_tps, milliseconds
from pgtrial.report.words import (
    established,
    failures_text,
    headline,
    interval_name,
    interval_words,
    measure_text,
    measured_text,
    query_times_as_long,
    times_as_long,
    where,
)
from pgtrial.statistics import p8
from pgtrial.verdict.rules import title
from pgtrial.verdict.rules.case import listed
from pgtrial.verdict.rules.use import UNUSED
from pgtrial.verdict.transaction_costs import NOT_HOT
from pgtrial.verdict.units import looks_of


@dataclass(frozen=True)
class Line:
    """A short text with a label."""

    label: str
    text: str


@dataclass(frozen=True)
class Headline:
    """The result of one comparison: its verdict in one line, and further lines that belong to this comparison only."""

    verdict: Word | None
    """The verdict, or None if the study has a single arm and so compares nothing."""
    text: str
    lines: list[Line]
    not_worse: bool = False
    """True if the study only asks whether the arm is worse than the baseline, and has excluded that it is. The study is
    then done, although there is no verdict such as better or equivalent."""


@dataclass(frozen=True)
class Brief:
    """The headlines of all comparisons, followed by what applies to all of them."""

    headlines: list[Headline]
    measured: str
    failures: str
    missing: str | None
    """A sentence about the arms of which no trial completed, with the reasons; None if each arm was measured."""
    errors: str | None
    """The statements of a replay that failed on an arm although they did not fail when the sessions were recorded, and
    the number of failures that also occurred in the recording. None if no statement failed."""
    watched: list[str]
    """Warnings that a reader must know before using the verdict. The most important one comes first."""
    then: str | None
    """The next step: the command or the change of the study that leads to a verdict, or further sizes of the data to
    measure. Further sizes narrow down a cliff, which is a size above which the throughput falls. None if nothing is
    left to do."""
    factors: Sequence[Line] = ()
    """In a screening study: the factors that have no headline, and a hint at factors that seem to interact."""

    def lines(self, most: int | None = None) -> list[Line]:
        """Returns the lines below the headlines. At most `most` warnings are shown; a further line then says how many
        more there are."""
        left = len(self.watched) - most if most is not None else 0
        shown = [*self.watched[:most], *([f"{left} more: pgtrial verdict --all"] if left > 0 else [])]
        lines = [*self.factors, Line("measured", self.measured), Line("failures", self.failures)]
        lines += [Line("errors", self.errors)] if self.errors is not None else []
        lines += [Line("watch out", "; ".join(shown))] if shown else []
        lines += [Line("next", self.then)] if self.then is not None else []
        return [*lines, Line("missing", self.missing)] if self.missing is not None else lines


def brief(result: StudyResult, plan: Plan, directory: Path | None = None, trials: Sequence[Trial] = ()) -> Brief:
    """Returns the result in short form. `directory` is the directory of the study; it is needed for the command that
    continues the study. `trials` are the stored trials; they have the reasons of failed trials."""
    missing = never_measured(plan, trials)
    of_verdict = steps_to_a_verdict(result, plan, directory)
    if plan.factors and not any(claim.verdict == "withheld" for claim in result.primary):
        of_verdict = next_steps(result, plan, directory)
    steps = [] if missing else [next(of_verdict, None), next_sizes(result)]
    *before, last = [step for step in steps if step] or [""]
    return Brief(
        [_headline(claim, result, plan) for claim in headline_claims(result)]
        or [_alone(level, result, plan) for level in result.levels],
        measured=_measured(result, plan, result.primary[0]) if result.primary else alone_measured(result, plan),
        failures=_failures(result, plan, trials),
        missing=missing,
        factors=_factors(result),
        errors="; ".join(errors_text(of_arm) for of_arm in result.failures if of_arm.statements) or None,
        watched=_watched(result, plan),
        then="; ".join([*(step.removesuffix(".") for step in before), last]) or None,
    )


def _factors(result: StudyResult) -> list[Line]:
    if result.screen is None:
        return []
    texts = {"the rest": rest_text(result), "a hint": pairs_text(result.screen)}
    return [Line(label, text) for label, text in texts.items() if text]


def _alone(level: Level, result: StudyResult, plan: Plan) -> Headline:
    if (withheld := withheld_text(level, result)) is not None:
        estimate = Line("estimate", f"{capacity_text(level, plan)}, {interval_text(level)}")
        return Headline(None, withheld, [estimate])
    return Headline(None, capacity_text(level, plan), [Line("interval", interval_text(level))])


def _headline(claim: Claim, result: StudyResult, plan: Plan) -> Headline:
    if claim.verdict == "withheld":
        reasons = [finding.message for finding in withholding(result, claim)]
        lines = [Line("because", " ".join(reasons))]
        if claim.difference is not None:
            lines.append(Line("interval", f"{_difference(claim, plan)}: an estimate, and no verdict"))
        return Headline(claim.verdict, headline(claim, plan), [*lines, *_executed(claim, result)])
    tally = next((failure for failure in result.failures if failure.arm == claim.arm), None)
    if result.failures and all(of_arm.trials and of_arm.failed_trials == of_arm.trials for of_arm in result.failures):
        number = plural(max(of_arm.trials for of_arm in result.failures), "trial")
        return Headline(claim.verdict, f"all arms failed in all {number}", [])
    if tally is not None and tally.trials and tally.failed_trials == tally.trials:
        return Headline(claim.verdict, f"{claim.arm} failed in all {plural(tally.trials, 'trial')}", [])
    lines = [Line("medians", f"{levels}{_contrary(claim, result)}")] if (levels := _levels(claim, result)) else []
    lines += [Line(part.regime or "interval", _difference(part, plan)) for part in claim.read]
    if len(plan.load_points) > 1:
        counts = Counter(claim.verdict for claim in result.claims(claim.arm))
        lines.append(Line("by load", ", ".join(f"{word} at {number}" for word, number in counts.most_common())))
    secondary = [row for row in result.metrics if row.arm == claim.arm and not row.primary]
    lines += [Line("metric", f"{row.metric} {metric_text(row, rate_unit(plan.load_points))}") for row in secondary]
    lines += _executed(claim, result)
    lines += [Line("peak", peak)] if (peak := peak_text(result, claim.arm)) else []
    lines += [Line("slower", slower)] if (slower := _statements(result, claim)) else []
    lines += [Line("queries", queries)] if (queries := _queries(result, claim)) else []
    lines += [Line("plans", plans)] if (plans := _plans(result, claim)) else []
    lines += [Line("updates", updates)] if (updates := _updates(result, claim)) else []
    return Headline(claim.verdict, headline(claim, plan), lines, claim.not_worse)


def _executed(claim: Claim, result: StudyResult) -> list[Line]:
    """Returns the counted instructions of both arms, in a line for each load; no lines if they were not counted."""
    return [Line("executed", text) for text in instruction_texts(result, claim.arm)]


def _levels(claim: Claim, result: StudyResult) -> str:
    """Returns the throughput of both arms as text, such as `1,234 tps against 386 tps`, or their mean response times.
    The text is empty if there are several load points, or if the value of an arm is unknown."""
    if len(result.load_points) > 1:
        return ""
    if result.metrics:
        row = next(row for row in result.metrics if row.primary and row.arm == claim.arm)
        pair = [metric_value(row, arm, rate_unit(result.load_points)) for arm in (claim.arm, claim.baseline)]
        return " against ".join(text for text in pair if text) if all(pair) else ""
    texts = _level_texts(result)
    pair = [texts.get(arm) for arm in (claim.arm, claim.baseline)]
    return " against ".join(text for text in pair if text) if all(pair) else ""


def _contrary(claim: Claim, result: StudyResult) -> str:
    """Returns a remark if the estimated difference and the two medians may contradict each other; otherwise an empty
    text.

    The median throughput of an arm may be higher although the estimate, which compares the trials within each block,
    says that it is slower. Median response times are those of committed transactions alone.
    """
    if measure_of(result.load_points) == "mean response time" and not result.metrics:
        failing = {of_arm.arm for of_arm in result.failures if of_arm.failed_transactions}
        alone = not failing.isdisjoint((claim.arm, claim.baseline))
        return "; in the difference, failed transactions count as the slowest" if alone else ""
    medians = {level.arm: level.tps.median for level in result.levels if level.tps is not None}
    arm, baseline = medians.get(claim.arm), medians.get(claim.baseline)
    if measure_of(result.load_points) != "goodput" or claim.difference is None or arm is None or baseline is None:
        return ""
    contrary = (arm - baseline) * claim.difference.value < 0
    return "; the difference is taken within blocks" if contrary else ""


def _level_texts(result: StudyResult) -> dict[str, str]:
    """Returns the throughput of each arm as text, from its median trial. If the study compares times, it is the mean
    response time or the time of the job (such as CREATE INDEX) instead."""
    measure = measure_of(result.load_points)
    if measure == "goodput":
        unit = rate_unit(result.load_points)
        return {level.arm: f"{tps} {unit}" for level in result.levels if (tps := median_tps(level)) is not None}
    if result.queries:
        of_all = [claim.time_us for claim in result.queries if claim.query is None]
        return {arm: f"{milliseconds(us)} ms" for times in of_all for arm, us in times.items() if us is not None}
    if measure == "mean response time":
        means = {level.arm: level.latency_us["mean"] for level in result.levels}
        return {arm: f"{milliseconds(mean.median)} ms" for arm, mean in means.items() if mean is not None}
    if measure == "time of the job":
        times = {level.arm: level.latency_us["mean"] for level in result.levels}
        return {arm: f"{digits(time.median / 1e6)} s" for arm, time in times.items() if time is not None}
    of_tasks = [row.values for row in result.criteria if row.primary]
    return {arm: f"{digits(1000 * mean)} ms" for values in of_tasks for arm, mean in values.items() if mean is not None}


def _statements(result: StudyResult, claim: Claim) -> str:
    """Returns the statements that are slower on the arm as text, such as `1 of 6 statements: SELECT id, item … (26
    times as long)`. The text is empty if the load is not a replay of recorded sessions, and before the first look
    (planned interim analysis)."""
    of_arm = [statement for statement in result.statements if statement.arm == claim.arm]
    if all(statement.difference is None for statement in of_arm):
        return ""
    slower = [
        (statement.difference, statement.text)
        for statement in of_arm
        if statement.is_slower and statement.difference is not None
    ]
    slower.sort(key=lambda pair: (pair[0].value, pair[1]))
    named = [
        f"{shortened(text, NAMED_LENGTH)} ({times_as_long(difference)})"
        for difference, text in slower[:NAMED_STATEMENTS]
    ]
    if not slower:
        return f"not shown for any of {plural(len(of_arm), 'statement')}"
    return f"{len(slower)} of {plural(len(of_arm), 'statement')}: {', '.join(and_more(named, len(slower)))}"


def _queries(result: StudyResult, claim: Claim) -> str:
    """Returns the queries that are slower or faster on the arm as text, such as `of 22: 2 slower: q07 (3.1 times as
    long), q13 (2 times as long); 20 undecided`. The text is empty if the load is not a suite (queries in files, each of
    which is timed)."""
    of_arm = [row for row in result.queries if row.arm == claim.arm and row.query is not None]
    if all(row.difference is None for row in of_arm):
        return ""
    texts = []
    for word, verdict in (("slower", "worse"), ("faster", "better")):
        rows = [
            (row.difference, row)
            for row in of_arm
            if row.verdict == verdict and not row.within_margin and row.difference is not None
        ]
        rows.sort(key=lambda row: -abs(math.log1p(row[0].value)))
        named = [f"{row.query} ({query_times_as_long(row)})" for _, row in rows[:_NAMED_QUERIES]]
        texts += [f"{len(rows)} {word}: {', '.join(and_more(named, len(rows)))}"] if rows else []
    undecided = sum(row.verdict == "undecided" for row in of_arm)
    texts += [f"{undecided} undecided"] if undecided else []
    return f"of {len(of_arm)}: {'; '.join(texts) or 'none slower or faster'}"


def _plans(result: StudyResult, claim: Claim) -> str:
    """Returns the plans that differ between the two arms as text, such as `the plan of SELECT a FROM t ... differs: Seq
    Scan on t in off, Index Scan using t_a on t in on`. The text is empty if no plans differ."""
    of_arm = [plan for plan in result.plans if plan.arm == claim.arm]
    named = [
        f"the plan of {shortened(plan.statement, NAMED_LENGTH)} differs: {shortened(plan.at_baseline, _NODE_LENGTH)} "
        f"in {plan.baseline}, {shortened(plan.at_arm, _NODE_LENGTH)} in {plan.arm}"
        for plan in of_arm[:_NAMED_PLANS]
    ]
    return "; ".join(and_more(named, len(of_arm)))


def _updates(result: StudyResult, claim: Claim) -> str:
    """Returns the shares of HOT updates in both arms as text, such as `98% of them are HOT in day_only, 0% in indexed`.
    The text is empty if the two shares hardly differ, or if there are several load points."""
    if len(result.load_points) > 1:
        return ""
    medians = {cost.arm: cost.median for cost in result.costs if cost.what == NOT_HOT}
    arm, baseline = medians.get(claim.arm), medians.get(claim.baseline)
    if arm is None or baseline is None or abs(arm - baseline) < _NOTABLE_UPDATES:
        return ""
    return f"{100 - arm:.0f}% of them are HOT in {claim.arm}, {100 - baseline:.0f}% in {claim.baseline}"


_NAMED_PLANS = 3
_NODE_LENGTH = 80
_NOTABLE_UPDATES = 10
"""The shares of HOT updates are shown if those of the two arms differ by at least this many percentage points."""

_NAMED_QUERIES = 5


def _difference(claim: Claim, plan: Plan) -> str:
    """Returns the difference as text, such as `+96 to +168% (95% sequential interval), margin 1%`. The text begins with
    the estimate if the headline does not contain it."""
    return interval_words(claim, established(claim, plan), plan.primary_metric, plan.margin, interval_name(plan))


def _measured(result: StudyResult, plan: Plan, claim: Claim) -> str:
    """Returns what was measured as text, such as `mean response time, tpcb-like, scale 10, 8 clients; 8 blocks of 2 x
    5s in 2min 10s; this host`."""
    taken = f" in {format_duration(round(result.block_s * result.blocks_complete))}" if result.block_s else ""
    where_it_ran = plan.scope.partition(", ")[0]
    return f"{measure_text(plan)}, {where(claim, plan)}; {measured_text(claim, plan)}{taken}; {where_it_ran}"


_MANY_INTERRUPTIONS = 3
"""The short lines below the verdict mention interruptions of the study if there are at least this many."""


def _failures(result: StudyResult, plan: Plan, trials: Sequence[Trial]) -> str:
    """Returns the failures of each arm as text. If whole trials failed, the text has the reason of the first one."""
    failed = [
        failure
        for failure in result.failures
        if failure.failed_trials or failure.failed_transactions or failure.aborted_clients
    ]
    if not failed:
        return "none"
    rest = ", the other arms none" if len(plan.arms) > len(failed) else ""
    return ", ".join(f"{failures_text(of_arm, plan)}{_reason(of_arm, trials)}" for of_arm in failed) + rest


def _reason(failures: Failures, trials: Sequence[Trial]) -> str:
    reasons = [trial.reason for trial in trials if trial.arm == failures.arm and trial.reason]
    if not 0 < failures.failed_trials < failures.trials or not reasons:
        return ""  # if all trials of an arm failed, the line `missing` has the reasons
    first = "the first: " if len(set(reasons)) > 1 else ""
    return f" ({first}{shortened(' '.join(reasons[0].split()), LONGEST_REASON)})"


def _watched(result: StudyResult, plan: Plan) -> list[str]:
    """Returns the warnings that a reader must know before using the verdict: first the warnings about the comparisons,
    then those about single arms, and then the findings of the audit, which checks whether the comparison is fair."""
    notes = (
        ["no difference is declared: this is a check of the method"] if result.identical_arms and result.primary else []
    )
    notes += _choices(result, plan)
    parts = [part for claim in result.primary for part in claim.read] if not plan.factors else []
    notes += _of_arms("the effect changes during the study", [part.arm for part in parts if part.changing], plan)
    for unit in dict.fromkeys(part.unit for part in parts):
        odd = [part.arm for part in parts if part.unstable and part.unit == unit]
        notes += _of_arms(f"rare odd {unit}s pull the mean", odd, plan)
    notes += [*sweep_remarks(result), *_unsteady(result)]
    blocks = result.blocks_complete
    if plan.deployments == 1 and 0 < (waiting := p8.waiting(plan.looks, blocks)) < blocks:
        wait = "block waits" if waiting == 1 else f"{waiting} blocks wait"
        notes.append(
            f"the last {wait} for the next look at the verdict, after block {looks_of(plan).next_after(blocks)}"
        )
    return list(dict.fromkeys([*notes, *_warnings(result, plan)]))


def _of_arms(note: str, arms: Sequence[str], plan: Plan) -> list[str]:
    """Returns a list with a note on the comparisons of these arms with the baseline. The note names the comparisons if
    the study has others too. The list is empty if there are no arms."""
    if not arms:
        return []
    return [note if set(arms) == set(plan.others) else f"{note} ({against(arms, plan)})"]


def _unsteady(result: StudyResult) -> list[str]:
    """Returns one note with the names of the arms whose speed rises or falls steadily within their trials. The list is
    empty if the speed of every arm is steady."""
    verbs = {"rising": "faster", "falling": "slower"}
    changes = [
        f"{entry.arm} becomes {percent(abs(entry.trend or 0.0))} {verbs[entry.state]}"
        for entry in result.steadiness
        if entry.state in verbs
    ]
    return [f"during a trial {' and '.join(changes)}, so a longer warm-up is advised"] if changes else []


def _warnings(result: StudyResult, plan: Plan) -> Iterator[str]:
    """Yields the titles of the warnings among the findings, each once. A title names the arms that the warnings are
    about, unless these are all arms of the study.

    If a warning says that the load did not use the setting in which two arms differ, the title names both arms: for
    other pairs of arms the load may have used what differs between them.
    """
    warnings = [finding for finding in result.findings if finding.severity == "warning"]
    for words in dict.fromkeys(map(title, warnings)):
        of_title = [finding for finding in warnings if title(finding) == words]
        if of_title[0].rule == UNUSED and all(len(finding.arms) == 2 for finding in of_title):
            for finding in of_title:
                yield words.replace("the arms", listed(finding.arms))
            continue
        arms = list(dict.fromkeys(arm for finding in of_title for arm in finding.arms))
        others = [arm for arm in arms if arm != plan.baseline]
        if not arms or set(arms) == set(plan.arms):
            yield words
        elif others and all(len(finding.arms) == 2 and plan.baseline in finding.arms for finding in of_title):
            yield f"{words} ({against(others, plan)})"
        else:
            yield f"{words} ({listed(arms)})"


def _choices(result: StudyResult, plan: Plan) -> list[str]:
    """Returns notes about choices that somebody may have made after seeing results. There are two kinds of them: the
    same question was tried before, or trials were interrupted, which somebody could do whenever a trial looks bad.

    P8 is the statistical rule of older versions of pgtrial. Studies that were planned with it have no such notes, so
    that their stored results do not change.
    """
    if plan.spending is None:
        return []
    number = len(plan.earlier) + 1
    notes = [f"this is try {number} of the same question in this results directory"] if plan.earlier else []
    ended = sum(bool(interruption.trials) for interruption in result.interruptions)
    return [*notes, f"{ended} interruptions ended trials, which ran again"] if ended >= _MANY_INTERRUPTIONS else notes
