"""Finds out in the first warm-up at a load point whether the slices of its trials are too short for their transactions,
and how long they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pgtrial.conduct.planning.interleaving import is_whole
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Phase
from pgtrial.model.units import format_duration, three_digits

_ROUNDING = 1e-9

_FACTORS = (1, 2, 4, 8, 12, 20, 40, 60, 120)
"""The factors by which slices may be lengthened. Slices of 250 ms become 0.5, 1, 2, 3, 5, 10, 15 or 30 s long."""

_FEWEST_ROUNDS = 2


class SlicesTooShort(Exception):
    """Raised if the slices of a load point are too short for enough transactions. Its trials, which are not stored yet,
    have to be repeated with longer slices."""

    def __init__(self, point: int, slice_s: float, why: str) -> None:
        super().__init__(why)
        self.point, self.slice_s = point, slice_s

    def lengthened(self, plan: Plan) -> Plan:
        """Returns the plan with slices of the new length at this load point."""
        assert plan.interleaving is not None
        longer = {**plan.interleaving.longer, self.point: self.slice_s}
        interleaving = plan.interleaving.model_copy(update={"longer": longer})
        return plan.model_copy(update={"interleaving": interleaving})


class WarmedLoad(NamedTuple):
    """The load of a trial at the end of its warm-up."""

    order: TrialOrder
    warmup: Phase | None
    """The results of the warm-up; None if there are none."""


def may_lengthen(plan: Plan, order: TrialOrder) -> bool:
    """True if the slices of a trial's load point may still be lengthened: the trial is of the first block, it has a
    warm-up, and the slices were not lengthened before.

    Slices of client programs are never lengthened, since a program completes its batch however short the slice is.
    """
    planned = order.planned
    if not order.point.kind.is_by_engine:
        return False
    unchanged = plan.interleaving is not None and planned.load_point not in plan.interleaving.longer
    return unchanged and planned.block == 0 and order.load.phases_s[0] > 0


def check_slices(plan: Plan, warmed: Sequence[WarmedLoad], longest_s: float | None = None) -> None:
    """Raises SlicesTooShort if the transactions of the warm-up took so long that too few of them fit into a slice.

    `longest_s` is the longest measured part that may still be chosen for the trials, in seconds. It is None if the
    lengths of the trials are fixed already.
    """
    if plan.interleaving is None or not warmed:
        return
    slowest = max(warmed, key=_median_s)
    median_s, now_s = _median_s(slowest), plan.interleaving.slice_s
    wanted_s = plan.interleaving.transactions * median_s
    order = slowest.order
    slice_s = _longer_slice(now_s, wanted_s, order, longest_s)
    if slice_s > now_s:
        raise SlicesTooShort(
            order.planned.load_point,
            slice_s,
            f"{order.point.label}: half of the transactions of {order.planned.arm} take "
            f"{three_digits(median_s * 1000)} ms "
            f"or longer, so the slices of all arms are {format_duration(slice_s)} here instead of "
            f"{format_duration(now_s)}",
        )


def _longer_slice(now_s: float, wanted_s: float, order: TrialOrder, longest_s: float | None = None) -> float:
    """Returns the new length of a slice in seconds: the shortest of the possible multiples of the present length that
    is at least `wanted_s` and fits the trials. If none is that long, returns the longest that fits. A slice fits if the
    measured part is a whole number of slices, and has at least two rounds of them.

    If the lengths of the trials are chosen later, `longest_s` is the longest measured part that may be chosen, and a
    slice fits if this has two rounds.
    """
    warmup_s, duration_s = order.load.phases_s
    lengths = [duration_s, *([warmup_s] if order.point.sysbench else [])]
    fitting = [
        now_s * factor
        for factor in _FACTORS
        if (longest_s or duration_s) >= _FEWEST_ROUNDS * now_s * factor - _ROUNDING
        and (longest_s is not None or all(is_whole(length, now_s * factor) for length in lengths))
    ]
    return next((slice_s for slice_s in fitting if slice_s >= wanted_s), max(fitting, default=now_s))


def _median_s(load: WarmedLoad) -> float:
    """Returns the median time of a transaction in the warm-up, in seconds. In a load with a rate, the time counts from
    the actual start of a transaction and not from its scheduled start.

    If the warm-up completed no transaction, returns the length of the warm-up, since transactions take longer than
    that.
    """
    warmup = load.warmup
    if warmup is None or warmup.latency_us is None:
        return load.order.load.phases_s[0]
    return (warmup.service_us or warmup.latency_us).p50 / 1e6
