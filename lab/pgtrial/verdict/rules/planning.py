"""Rules on planning: whether one arm makes a plan for each execution while another arm uses one generic plan, and
whether plans depend on the random sample of ANALYZE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pgtrial.model.records.trial import Trial
from pgtrial.model.units import shortened, three_digits
from pgtrial.verdict.plans import PlanInTrials, load_statements, plan_pairs, varying_plans
from pgtrial.verdict.rules.case import Case, Concern, listed, rule


@rule("planned_each_time", "one arm makes a plan for each execution", over_trials=True)
def planned_each_time(case: Case) -> Iterator[Concern]:
    """Yields a concern (problem) for each arm that makes a plan for each execution while the other arm of the
    comparison does not. The time for planning is then a part of the comparison."""
    for arm in case.others:
        base, other = (load_statements(case.completed(name)) for name in (case.baseline, arm))
        pairs = {text: pair for text, pair in plan_pairs(base, other).items() if pair.kinds_differ}
        for anew in (case.baseline, arm):
            planned = [
                (text, of_arm.planning_ms)
                for text, pair in pairs.items()
                if (of_arm := pair.base if anew == case.baseline else pair.other).chosen == "custom"
            ]
            if not planned:
                continue
            once = arm if anew == case.baseline else case.baseline
            named = [
                f"{shortened(text, _NAMED)} ({three_digits(planning_ms)} ms)"
                if planning_ms
                else shortened(text, _NAMED)
                for text, planning_ms in planned
            ]
            yield Concern(
                [case.baseline, arm],
                f"{anew} makes a plan for each execution of {listed(named)}, where {once} takes one plan for all "
                f"values: {_weight(case.completed(anew), anew, [ms for _, ms in planned if ms])}.",
                "Nothing to do; plan_cache_mode says which plan a server takes, and the report shows both.",
                "info",
            )


_NAMED = 60
"""The number of characters of a statement that a message shows."""

_MOST = 0.5
"""If planning takes more than this share of a transaction's time, the message says that the time goes into planning."""


def _weight(trials: Sequence[Trial], arm: str, planning_ms: Sequence[float]) -> str:
    """Returns words that say how much planning contributes to the time of a transaction.

    The planning time is the shortest of a few measurements, and is therefore compared with the shortest transactions;
    both grow in the same way if many clients share few CPUs. If the load has several scripts, the shortest transaction
    may be one without these statements, so such trials are left out.
    """
    shortest_ms = [
        trial.measured.latency_us.min / 1000
        for trial in trials
        if trial.measured and trial.measured.latency_us and not trial.load_point.mix and trial.load_point.pack is None
    ]
    if shortest_ms and sum(planning_ms) > _MOST * median(shortest_ms):
        return f"planning is where the time of {arm} goes"
    return "planning is a part of the difference"


@rule("plans_vary", "plans depend on the sample of ANALYZE", over_trials=True)
def plans_vary(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each arm whose plans depend on the random sample of ANALYZE. This randomness is
    included in the arm's trials, and therefore in the interval of the verdict."""
    for arm in case.plan.arms:
        named = [
            f"{shortened(text, _NAMED)}: {listed(_share(text, plan) for plan in plans)}"
            for point in case.plan.load_points
            for text, plans in varying_plans(
                trial for trial in case.completed(arm) if trial.load_point == point
            ).items()
        ]
        if not named:
            continue
        more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        yield Concern(
            [arm],
            f"In {arm} the plan is another one from trial to trial, as ANALYZE samples: "
            f"{'; '.join(named[:_MOST_NAMED])}{more}.",
            "Nothing to do: the verdict takes it for noise. A higher statistics target makes the plan steadier.",
            "info",
        )


_MOST_NAMED = 5
"""The number of statements that a message names."""


def _share(text: str, plan: PlanInTrials) -> str:
    """Returns a plan and its frequency in words, such as `Hash Join in 7 of 12 trials (304 ms)`. The time is left out
    unless the load is a suite of queries, since only a suite measures each statement."""
    times = [time_ms for trial in plan.trials if (time_ms := _time_ms(trial, text)) is not None]
    time = f" ({three_digits(median(times))} ms)" if times else ""
    return f"{plan.node} in {len(plan.trials)} of {plan.of} trials{time}"


def _time_ms(trial: Trial, query: str) -> float | None:
    """Returns the time of a suite's query in a trial, which is the geometric mean of its runs, in milliseconds. Returns
    None if the trial has no such time."""
    if trial.suite is None:
        return None
    times = (one.time_us(trial.suite.limit_s) for one in trial.suite.queries if one.query == query)
    time_us = next(times, None)
    return None if time_us is None else time_us / 1000
