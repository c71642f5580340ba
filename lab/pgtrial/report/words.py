"""Describes claims in words. A claim is the comparison of an arm with the baseline at one load point or over all of
them. Its sentence contains the interval, the number of blocks, the conditions under which it holds, and the
failures."""

from __future__ import annotations

import math

from pgtrial.model.metrics import METRICS
from pgtrial.model.records.claims import PARTS, SIDES, Claim, Estimate
from pgtrial.model.records.load_point import LoadPoint, kind_of, rate_unit
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import CellRegimes, Cost, Failures, QueryClaim, Steadiness, StudyResult
from pgtrial.model.units import (
    TWICE,
    as_written,
    change,
    decimals_for,
    format_duration,
    percent,
    plural,
    times,
    times_between,
)
from pgtrial.statistics import p8
from pgtrial.verdict.units import is_fixed

_NOT_EVEN = {"block": 300, "deployment": 60}
"""The number of blocks, or of pairs of servers, that a forecast considers at most. The text for an undecided comparison
names this number if even so many would not lead to a verdict."""

_NEXT_TO_NONE = 200.0
"""If the costs (such as CPU time or WAL) of two arms differ by more than this factor, the text says in words that the
cost is almost zero in one of them (`from next to none`)."""

_TOLD_WITHIN = 10.0
"""If the bounds of a cost (such as CPU time or WAL) are further apart than this factor, the cost is not shown."""

_TELLING_MARGIN = 0.5
"""The text about an undecided comparison says that differences larger than a certain percentage are excluded, unless
this percentage is above 50%: so weak a statement is of no use."""

signed = change


def is_wide(difference: Estimate) -> bool:
    """True if the bounds of an interval are further apart than a factor of ten. Such an interval, for example `-4.4%
    (-99.9..+99900%)`, says nothing."""
    low, high = difference.low, difference.high
    return low is not None and high is not None and 1 + high > _TOLD_WITHIN * (1 + low)


def established(claim: Claim, plan: Plan) -> Estimate | None:
    """Returns the difference of an arm from the baseline, with its interval. If the verdict is `not worse`, the
    interval has only a lower bound, which is the loss that the study has excluded.

    A study that only asks whether the arm is worse allows nearly all of its 5% of wrong verdicts for the answer
    `worse`. The computed interval is therefore open or very wide on the side that shows `not worse`, and would
    contradict this verdict.
    """
    difference, least = claim.difference, -plan.margin
    if not claim.not_worse or difference is None or (difference.low is not None and difference.low >= least):
        return difference
    return Estimate(low=least, value=difference.value, high=None)


def bounds_text(difference: Estimate) -> str:
    """Returns the interval of a difference for running text, such as `+35 to +48%` or `48 to 50 times`."""
    return difference.text().replace("..", " to ")


def bounds_beside(metric: str | None, difference: Estimate) -> str:
    """Returns the interval in the same form as the text of `change_text` to which it belongs, such as `4.8 to 5.3 times
    as long`."""
    low, high = difference.low, difference.high
    if not takes_times_as_long(metric, difference.value) or low is None or high is None or low <= -1:
        return bounds_text(difference)
    return f"{' to '.join(times_between(*(1 / (1 + bound) for bound in (high, difference.value, low))))} times as long"


def open_end(difference: Estimate) -> str:
    """Returns a text such as `, no lower end yet` for an interval of which only the other end is known so far. For
    other intervals the text is empty."""
    if (difference.low is None) == (difference.high is None):
        return ""
    return f", no {'lower' if difference.low is None else 'upper'} end yet"


def takes_times_as_long(metric: str | None, difference: float) -> bool:
    """True if the arm has half the speed of the baseline or less. The text then compares the times and not the speeds,
    such as `takes 5 times as long`.

    It is false for an arm whose trials all failed. The difference of such an arm is only a placeholder for the worst
    possible value, and no time follows from it.
    """
    return _is_speed(metric) and difference <= -0.5 and math.log1p(max(difference, -0.9999)) > -p8.WORST + 1e-9


def _is_speed(metric: str | None) -> bool:
    return metric is None or (metric in METRICS and METRICS[metric].kind == "speed")


def interval_name(plan: Plan) -> str:
    """Returns the name of the intervals in this study: `95% sequential interval`, or `95% t interval` if the study has
    a single interim analysis at its end."""
    return "95% t interval" if is_fixed(plan) else "95% sequential interval"


def measure_text(plan: Plan) -> str:
    """Returns the name of the quantity by which the study compares the arms, such as `committed transactions per
    second`, in words that need no explanation."""
    if plan.measure != "goodput":
        return plan.measure
    if plan.load_points[0].programs:
        return "operations of the client programs per second"
    return f"{_COMMITTED.get(transaction(plan.load_points), 'committed transactions')} per second"


_COMMITTED = {"statement": "statements"}
"""The words for what is counted per second, by the unit of work. Any other unit of work is called `committed
transactions`."""


def where(claim: Claim, plan: Plan) -> str:
    """Returns in words for which load a comparison holds: a load point, the mean over all load points, or the load
    points on one side of a cliff (a size of the data above which the throughput falls)."""
    points = plan.load_points
    if (side := side_of(claim)) is not None:
        return side
    if claim.load_point is None and len(points) > 1:
        return f"mean over {len(points)} load points{in_regime(claim)}"
    return points[claim.load_point or 0].label + in_regime(claim)


def side_of(claim: Claim) -> str | None:
    """Returns text such as `load points below the cliff` if the comparison is only about the load points on one side of
    a cliff (a size of the data above which the throughput falls); otherwise None."""
    return f"load points {PARTS[claim.regime]}" if claim.regime in SIDES else None


def in_regime(claim: Claim) -> str:
    """Returns text such as `, before the change` if the comparison is only about the time before or after a lasting
    change of speed within the trials, or about one side of a cliff (a size of the data above which the throughput
    falls). The text is empty for a comparison of whole trials."""
    return f", {PARTS[claim.regime]}" if claim.regime else ""


def estimate_text(claim: Claim, running: str) -> str | None:
    """Returns the estimated difference as text, such as `+41%`. Before the first look (planned interim analysis) it is
    the estimate from the blocks so far, followed by the words in `running`, such as `+41% so far`."""
    if claim.difference is not None:
        return signed(claim.difference.value)
    return f"{signed(claim.running)} {running}" if claim.running is not None else None


def change_text(
    metric: str | None, arm: str, difference: float, baseline: str = "", decimals: int | None = None, *, less: str = ""
) -> str:
    """Returns a difference in words, such as `off is 41% faster than on` or, for a percentile or cost, `p99 of off is
    12% lower than that of on`.

    If a ratio is two or more, it returns `off is 49 times as fast as on`, `off takes 5 times as long as on` or `p99 of
    off is 3 times that of on`.

    `metric` is the metric that decides the verdict or the name of a quantity that pgtrial does not know; None stands
    for speed. Without `baseline` the text ends before the word `than`. `less` is put before this word.
    """
    subject, words, of = _compared(metric, arm)
    if takes_times_as_long(metric, difference):
        return f"{subject} takes {times(1 / (1 + difference))} times as long{f' as {baseline}' if baseline else ''}"
    if difference >= TWICE:
        ratio = f"{subject} is {times(1 + difference)} times"
        if _is_speed(metric):
            return f"{ratio} as fast{f' as {baseline}' if baseline else ''}"
        return f"{ratio} {of}{baseline}" if baseline else f"{ratio} as high"
    than = f"{less} than {of}{baseline}" if baseline else ""
    return f"{subject} is {percent(abs(difference), decimals)} {words[difference < 0]}{than}"


def _direction(metric: str | None, arm: str, baseline: str, *, falls: bool) -> str:
    """Returns the direction of a difference in words, such as `off is faster than on` or, for a percentile or cost,
    `p99 of off is lower than that of on`."""
    subject, words, of = _compared(metric, arm)
    return f"{subject} is {words[falls]} than {of}{baseline}"


def _compared(metric: str | None, arm: str) -> tuple[str, tuple[str, str], str]:
    """Returns the subject of the comparison, the words for more and for less of it, and the words that precede the
    baseline."""
    if _is_speed(metric):
        return arm, ("faster", "slower"), ""
    return f"{metric} of {arm}", ("higher", "lower"), "that of "


def headline(claim: Claim, plan: Plan) -> str:
    """Returns the verdict in words, without its evidence, such as `off is 41% faster than on`."""
    name = plan.primary_metric
    is_cost = name is not None and not _is_speed(name) and plan.named_metric(name).better == "less"
    return verdict_words(claim, name, plan.margin, less_is_better=is_cost)


def verdict_words(claim: Claim, metric: str | None, within: float, *, less_is_better: bool = False) -> str:
    """Returns the verdict in words, without its evidence. `within` is the margin, and `metric` has the same meaning as
    in `change_text`.

    `less_is_better` is true if smaller values of the metric are better, such as for a percentile or a cost. It is false
    for a mean time that is compared as a speed (1/s), since a larger speed is better.
    """
    arm, baseline, difference, margin = claim.arm, claim.baseline, claim.difference, as_written(within)
    pair = f"{arm} against {baseline}"
    sides = any(part.regime == "below" for part in claim.parts)
    both = " below and above a cliff" if sides else " before and after a change of regime"
    twice = both if claim.parts else ""
    if claim.verdict == "withheld" or len(claim.parts) == 1:
        beyond = "" if claim.verdict == "withheld" else " beyond a change of regime"
        return f"No verdict{beyond} on {pair}"
    if claim.verdict == "undecided" and claim.parts:
        why = "throughput falls off a cliff" if sides else "the regime changes"
        return f"Two verdicts, for {why}: {pair}"
    if claim.verdict == "undecided":
        excluded = f"No loss of {margin} or more on {pair}"
        return excluded if claim.not_worse else f"Undecided after {plural(claim.blocks, claim.unit)}: {pair}"
    if claim.verdict == "equivalent":
        return f"No difference larger than {margin} between {arm} and {baseline}{twice}"
    if difference is None:
        falls = (claim.verdict == "better") == less_is_better
        return f"{_direction(metric, arm, baseline, falls=falls)}{twice}"
    less = f", by less than the margin of {margin}," if claim.within_margin else ""
    return change_text(metric, arm, difference.value, baseline, decimals_for(difference.known), less=less)


def interval_words(claim: Claim, difference: Estimate | None, metric: str | None, within: float, name: str) -> str:
    """Returns a difference as text, such as `+96 to +168% (95% sequential interval), margin 1%`. The text begins with
    the estimate if the headline does not contain it. `name` is the name of the interval, and `within` the margin."""
    if difference is None:
        so_far = f"{signed(claim.running)} so far; " if claim.running is not None else ""
        return f"{so_far}a verdict needs at least {plural(claim.fewest_blocks, claim.unit)}"
    in_headline = not claim.regime and claim.verdict in ("better", "worse")
    value = "" if in_headline else f"{signed(difference.value, decimals_for(difference.known))}, "
    bounds = bounds_beside(metric, difference) if in_headline else bounds_text(difference)
    end = "" if claim.not_worse else open_end(difference)
    return f"{value}{bounds}{end} ({name}), margin {as_written(within)}"


def sentence(claim: Claim, plan: Plan, result: StudyResult, *, withheld: list[str]) -> str:
    """Returns the complete sentence about a primary claim, which is the comparison that decides the verdict on an arm.
    `withheld` are the reasons why there is no verdict."""
    pair = (claim.arm, claim.baseline)
    counts = sorted(
        (failure for failure in result.failures if failure.arm in pair), key=lambda count: pair.index(count.arm)
    )
    failed = ", ".join(failures_text(count, plan) for count in counts)
    lead = f"Failures of {failed}. " if set(pair) & set(result.failures_lead) else ""
    tail = "" if lead else f"; failures {failed}"
    if claim.verdict == "withheld":
        return f"{lead}{headline(claim, plan)}: {' '.join(withheld)}"
    parts = [f"{headline(claim, plan)} ({measure_text(plan)}, {where(claim, plan)})"]
    if claim.parts:
        parts[0] += f": {by_regime(claim, plan, result.regimes)}"
    elif (difference := established(claim, plan)) is not None:
        parts.append(_figures(difference, claim, plan))
    parts += [measured_text(claim, plan), f"margin {as_written(plan.margin)}", f"scope: {plan.scope}"]
    evidence = ", ".join(parts)
    if claim.verdict == "undecided" and not claim.parts:
        evidence += f"; {outlook(claim, plan)}"
    mean = f"; mean ratio {signed(claim.mean.value)}" if claim.mean else ""
    steady = [of_arm for of_arm in result.steadiness if of_arm.arm in pair]
    cells = [cell for cell in result.regimes if cell.arm in pair]
    return f"{lead}{evidence}{tail}{mean}; regime: {regime(steady, cells, plan)}."


def _figures(difference: Estimate, claim: Claim, plan: Plan) -> str:
    """Returns the interval of the difference as text. The text begins with the estimate if the headline of the
    comparison does not contain it."""
    value = f"{signed(difference.value)}, " if claim.verdict in ("equivalent", "undecided") else ""
    if not value and takes_times_as_long(plan.primary_metric, difference.value):
        return f"{interval_name(plan)} {bounds_beside(plan.primary_metric, difference)}"
    return f"{value}{interval_name(plan)} {difference.text(sign=False)}"


def by_regime(claim: Claim, plan: Plan, regimes: list[CellRegimes]) -> str:
    """Returns the results for the two parts of a comparison in words, such as `before the change off is 12% faster than
    on (...); after it ...`. The parts are the time before and after a lasting change of speed, or the load points on
    the two sides of a cliff (a size of the data above which the throughput falls)."""
    pair = [cell for cell in regimes if cell.changes and cell.arm in (claim.arm, claim.baseline)]
    falls = any("collapse" in cell.shapes or "slow-down" in cell.shapes for cell in pair)
    burst, sustained = (" (burst)", " (sustained)") if falls else ("", "")
    names = {**PARTS, "before": f"{PARTS['before']}{burst}", "after": f"after it{sustained}"}
    parts = []
    for part in claim.parts:
        name = names[part.regime or "before"]
        if (difference := established(part, plan)) is None:
            parts.append(f"{name} undecided; {outlook(part, plan)}")
            continue
        words = headline(part, plan)
        if part.verdict in ("equivalent", "undecided"):
            words = words[0].lower() + words[1:]
        more = f"; {outlook(part, plan)}" if part.verdict == "undecided" else ""
        parts.append(f"{name} {words} ({_figures(difference, part, plan)}{more})")
    if len(claim.parts) == 1:
        parts.append(f"{names['after']} nothing is known, for {_unsettled(claim, plan, regimes)}")
    return "; ".join(parts)


def _unsettled(claim: Claim, plan: Plan, regimes: list[CellRegimes]) -> str:
    """Returns the reason why the study says nothing about the time after the change of speed, such as `off has not
    changed within 1min; longer trials would tell`."""
    longer = "longer trials would tell"
    points = {claim.load_point} if claim.load_point is not None else {c.load_point for c in regimes if c.changes}
    for arm in (claim.arm, claim.baseline):
        if any(cell.arm == arm and cell.load_point in points and not cell.changes for cell in regimes):
            return f"{arm} has not changed within {format_duration(plan.duration_s)}; {longer}"
    return f"too few trials kept a level to the end; {longer}"


def measured_text(claim: Claim, plan: Plan) -> str:
    """Returns what was measured as text, such as `8 blocks of 2 x 6s`, `8 blocks of 2 x 15,000 tasks`, `12 blocks of 2
    x one replay`, `8 blocks of 2 x 22 queries`, or with several load points `8 blocks of 2 arms x 6 load points x 6s`.

    If each arm runs on at least four deployments (servers of the same product), it returns text such as `6 deployments
    of each arm with 4 blocks of 2 x 6s each`.
    """
    points = len(plan.load_points)
    trials = f"{len(plan.arms)} arms x {points} load points" if points > 1 else f"{len(plan.arms)}"
    length = f"{trials} x {_length(plan)}"
    if claim.unit == "deployment":
        blocks = plural(plan.max_blocks // plan.deployments, "block")
        return f"{plural(claim.blocks, 'deployment')} of each arm with {blocks} of {length} each"
    return f"{plural(claim.blocks, 'block')} of {length}"


def _length(plan: Plan) -> str:
    """Returns the length of the measured part of a trial as text, such as `6s`, `15,000 tasks` or `one replay`."""
    return plan.kind.amount or format_duration(plan.duration_s)


def times_as_long(difference: Estimate) -> str:
    """Returns how many times as long the arm took as the baseline, as text: `3.1 times as long`. `difference` is the
    difference of their speeds."""
    return f"{times(1 / (1 + difference.value))} times as long"


def query_times_as_long(claim: QueryClaim) -> str:
    """Returns how many times as long a query took on the arm as on the baseline, as text: `3.1 times as long`.

    If runs of the query on the arm were cancelled at the time limit, its true time is longer, and the text begins with
    `at least`. If runs on the baseline were cancelled, it begins with `at most`.
    """
    if claim.difference is None:
        return ""
    bound = "at least " if claim.over_limit.get(claim.arm) else ""
    bound = bound or ("at most " if claim.over_limit.get(claim.baseline) else "")
    return f"{bound}{times_as_long(claim.difference)}"


_LEAST_CHANCE = 0.05
"""pgtrial proposes further blocks only if the probability that they lead to a verdict is at least this large."""


def can_decide(claim: Claim) -> bool:
    """True if pgtrial forecasts that a certain number of further blocks would lead to a verdict, and if the probability
    of this verdict is worth the time (5% or more)."""
    return claim.more_blocks is not None and (claim.more_chance is None or claim.more_chance >= _LEAST_CHANCE)


def outlook(claim: Claim, plan: Plan) -> str:
    """Returns what a verdict on an undecided comparison still needs, such as a number of further blocks, and which
    differences are excluded so far. If all planned blocks are complete, the text includes the command that runs more
    blocks."""
    if claim.not_worse:
        return "this study asks only for a loss, and ends where one of the margin is excluded"
    ended = sum(ratio.counted for ratio in claim.ratios) == plan.end
    goes_on = claim.unit == "block" and not plan.kind.counts_blocks_of_parts and ended and not plan.is_final
    return forecast(claim, f" (pgtrial run DIRECTORY --more {claim.more_blocks})" if goes_on else "", plan.is_final)


def forecast(claim: Claim, how: str = "", ends_for_good: bool = False) -> str:
    """Returns what a verdict on an undecided comparison still needs, such as `about 12 more blocks`, and which
    differences are excluded so far. `how` is a text that is put after the number of further blocks, such as the command
    that runs them. `ends_for_good` is true if the study cannot have further blocks."""
    parts = []
    if claim.blocks < claim.fewest_blocks:
        parts.append(f"a verdict on {plural(claim.family, 'claim')} needs at least {claim.fewest_blocks} {claim.unit}s")
    elif claim.more_blocks is None and ends_for_good:
        parts.append(
            "at the present spread no look of this plan would decide, and the study cannot be continued beyond its plan"
        )
        parts.append("a study with more time, longer trials, less noise or a wider margin may")
    elif claim.more_blocks is None:
        parts.append(f"at the present spread even {_NOT_EVEN[claim.unit]} {claim.unit}s would not decide")
        parts.append("longer trials, less noise or a wider margin help")
    elif not can_decide(claim):
        parts.append(f"{plural(claim.more_blocks, f'more {claim.unit}')} would hardly decide")
        parts.append("longer trials, less noise or a wider margin help")
    if claim.more_blocks is not None and can_decide(claim):
        more = f"about {plural(claim.more_blocks, f'more {claim.unit}')}"
        if claim.more_s:
            more += f" ({format_duration(60 * round(claim.more_s / 60) if claim.more_s >= 600 else claim.more_s)})"
        more += " would decide if the difference is as estimated"
        if claim.more_chance is not None:
            more += f", with a probability of {percent(claim.more_chance, 0)}"
        parts.append(f"{more}{how}")
    if claim.established_margin is not None and claim.established_margin < _TELLING_MARGIN:
        parts.append(f"so far only differences larger than {percent(claim.established_margin)} are excluded")
    return "; ".join(parts)


def transaction(points: list[LoadPoint]) -> str:
    """Returns the word for a unit of work: `transaction`, or `statement` for a replay, `execution` for a suite of
    queries, and `job` for a job."""
    return kind_of(points).noun


def failures_text(counts: Failures, plan: Plan) -> str:
    """Returns how many transactions and trials of an arm failed, as text: `off: 0`, `off: 12 of 3,400 transactions
    (0.35%)`, `off: 2 of 8 trials`."""
    parts = []
    if counts.failed_trials:
        parts.append(f"{counts.failed_trials} of {plural(counts.trials, 'trial')}")
    if counts.failed_transactions:
        what = "task" if plan.measure == "mean response time of tasks" else transaction(plan.load_points)
        total = counts.failed_transactions + counts.transactions
        parts.append(f"{counts.failed_transactions:,} of {total:,} {what}s ({percent(counts.share)})")
    if counts.aborted_clients:
        parts.append(plural(counts.aborted_clients, "aborted client"))
    return f"{counts.arm}: {' and '.join(parts) or '0'}"


def regime(steady: list[Steadiness], cells: list[CellRegimes], plan: Plan) -> str:
    """Returns words that say whether the speed of the arms changed within trials, such as `steady` or `changes`, and
    which part of the trials the verdict is about."""
    changing = [cell for cell in cells if cell.changes]
    cyclic = dict.fromkeys(cell.arm for cell in cells if 2 * cell.shapes.get("cyclic", 0) > cell.trials)
    parts = []
    if changing:
        arms = dict.fromkeys(cell.arm for cell in changing)
        parts.append(f"changes ({'; '.join(_change(arm, changing, plan) for arm in arms)})")
    if cyclic:
        parts.append(f"cyclic ({' and '.join(cyclic)}: levels come and go within a trial)")
    if trends := moving(steady):
        parts.append(
            f"not at steady state ({' and '.join(trends)}); this speaks of the first "
            f"{format_duration(plan.duration_s)} after a warm-up of {format_duration(plan.warmup_s)}, a longer warm-up "
            "is advised"
        )
    elif not changing and any(entry.state == "unknown" for entry in steady):
        parts.append("not checked (too few blocks or seconds)")
    elif not changing:
        parts.append("steady" if steady else "not checked")
    return ", ".join(parts)


def _change(arm: str, changing: list[CellRegimes], plan: Plan) -> str:
    """Returns the change of an arm as text, such as `off: collapse in 12 of 12 trials, 1,070 tps until 34s and 36,380
    transactions, then 250 tps`."""
    unit = rate_unit(plan.load_points)
    cell, *others = [cell for cell in changing if cell.arm == arm]
    shape = next(shape for shape in cell.shapes if shape not in ("flat", "cyclic"))
    at = f" at {plan.load_points[cell.load_point].label}" if len(plan.load_points) > 1 else ""
    text = f"{arm}: {shape} in {cell.shapes[shape]} of {plural(cell.trials, 'trial')}{at}"
    if cell.before and cell.changed_s and cell.changed_committed:
        text += f", {cell.before.median:,.0f} {unit} until {format_duration(round(cell.changed_s.median))} "
        text += f"and {cell.changed_committed.median:,.0f} transactions"
        if cell.after and cell.settled_s:
            later = round(cell.settled_s.median) > round(cell.changed_s.median)
            start = f" from {format_duration(round(cell.settled_s.median))} on" if later else ""
            text += f", then {cell.after.median:,.0f} {unit}{start}"
        else:
            text += ", then no level to the end"
    return f"{text}, and at {plural(len(others), 'more load point')}" if others else text


def moving(steady: list[Steadiness]) -> list[str]:
    """Returns text such as `off rises 4.1% within a trial`, for each arm whose speed rises or falls steadily within its
    trials."""
    verbs = {"rising": "rises", "falling": "falls"}
    known = [(entry, verbs[entry.state]) for entry in steady if entry.state in verbs]
    return [f"{entry.arm} {verb} {percent(abs(entry.trend or 0.0))} within a trial" for entry, verb in known]


def cost_text(cost: Cost) -> str:
    """Returns the difference of a cost from the baseline's cost as text, such as `-12% (-13..-11%)`. If the cost is
    almost zero in one of the two arms, a percentage would mean nothing, and the text is `from next to none` or `to next
    to none`. The text is empty if the difference is not known."""
    difference = cost.difference
    if difference is None:
        return ""
    if difference.value >= _NEXT_TO_NONE:
        return "from next to none"
    if difference.value <= -1 + 1 / _NEXT_TO_NONE:
        return "to next to none"
    if is_wide(difference):
        return ""
    return f"{signed(difference.value)} ({difference.text()})"
