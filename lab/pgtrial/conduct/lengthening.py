"""Slices too short for the transactions: found by the first warm-up at a load point, and lengthened for all arms."""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.conduct.course import Course
from pgtrial.conduct.interleaving import is_whole
from pgtrial.model.records.plan import Plan
from pgtrial.model.units import format_duration

_FACTORS = (1, 2, 4, 8, 12, 20, 40, 60, 120)
"""Of 250 ms: 0.5, 1, 2, 3, 5, 10, 15 and 30 s."""

_FEWEST_ROUNDS = 2
_ROUNDING = 1e-9


class SlicesTooShort(Exception):
    """The slices of a load point do not hold enough transactions; its trials, not stored yet, are to begin anew."""

    def __init__(self, point: int, slice_s: float, why: str) -> None:
        super().__init__(why)
        self.point, self.slice_s = point, slice_s

    def lengthened(self, plan: Plan) -> Plan:
        """The plan with slices that are long enough."""
        assert plan.interleaving is not None
        longer = {**plan.interleaving.longer, self.point: self.slice_s}
        return plan.model_copy(
            update={"interleaving": plan.interleaving.model_copy(update={"longer": longer})},
        )


def may_lengthen(plan: Plan, course: Course) -> bool:
    """Whether these are the first trials at their load point, with a warm-up, and slices as they were planned."""
    planned = course.planned
    unchanged = plan.interleaving is not None and planned.load_point not in plan.interleaving.longer
    return unchanged and planned.block == 0 and course.load.warmup > 0


def check_slices(plan: Plan, warmed: Sequence[Course]) -> None:
    """Raise SlicesTooShort if the warm-up of the arms shows transactions that are too long for the slices."""
    if plan.interleaving is None or not warmed:
        return
    slowest = max(warmed, key=_median_s)
    median_s, now_s = _median_s(slowest), plan.interleaving.slice_s
    wanted_s = plan.interleaving.transactions * median_s
    slice_s = longer_slice(now_s, wanted_s, slowest)
    if slice_s > now_s:
        raise SlicesTooShort(
            slowest.planned.load_point,
            slice_s,
            f"{slowest.point.label}: half of the transactions of {slowest.planned.arm} take {median_s * 1000:,.3g} ms "
            f"or longer, so the slices of all arms are {format_duration(slice_s)} here instead of "
            f"{format_duration(now_s)}",
        )


def longer_slice(now_s: float, wanted_s: float, course: Course) -> float:
    """The least multiple of the present length that is long enough and fits the trials; else the longest that fits."""
    load = course.load
    lengths = [load.duration, *([load.warmup] if course.point.sysbench else [])]
    fitting = [
        now_s * factor
        for factor in _FACTORS
        if load.duration >= _FEWEST_ROUNDS * now_s * factor - _ROUNDING
        and all(is_whole(each, now_s * factor) for each in lengths)
    ]
    return next((each for each in fitting if each >= wanted_s), max(fitting, default=now_s))


def _median_s(course: Course) -> float:
    """Median transaction of a warm-up, at a rate from its actual start.

    Without any the length of the warm-up, which is then shorter than a transaction.
    """
    warmup = course.outcome.warmup
    if warmup is None or warmup.latency_us is None:
        return course.load.warmup
    return (warmup.service_us or warmup.latency_us).p50 / 1e6
