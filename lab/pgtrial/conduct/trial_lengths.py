"""The lengths of all trials of a study, and what a block takes beside their loads."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrial.model.records.plan import Lengths, Plan


@dataclass(frozen=True)
class TrialLengths:
    """Lengths of all trials of a study, and what a block takes beside their loads; seconds."""

    load_s: float
    """Of one trial, expected."""
    warmup_s: float
    """0 of loads that run to their end, as the measured part."""
    duration_s: float
    trials: int
    """Of a block."""
    overhead_s: float
    """Of a block."""
    chosen: Lengths | None = None
    """None: the study gives both lengths."""
    preliminary_s: float = 0.0
    """Wall time of the preliminary block, measured or expected; part of the budget."""

    @property
    def block_s(self) -> float:
        """Expected wall time of a block."""
        return self.overhead_s + self.trials * self.load_s

    @property
    def measured_share(self) -> float:
        """Share of a block's wall time in which trials are measured."""
        return self.trials * self.duration_s / self.block_s


def planned_lengths(plan: Plan) -> TrialLengths:
    """The lengths of a plan that has them."""
    trials = len(plan.arms) * len(plan.load_points)
    load_s = plan.warmup_s + plan.duration_s
    return TrialLengths(
        load_s or plan.trial_estimate_s,
        plan.warmup_s,
        plan.duration_s,
        trials,
        plan.block_estimate_s - trials * (load_s or plan.trial_estimate_s),
        plan.lengths,
        preliminary_time(plan),
    )


def preliminary_time(plan: Plan) -> float:
    """Wall time of the preliminary block, measured or expected, seconds; 0 where there is none."""
    lengths = plan.lengths
    if lengths is None:
        return 0.0
    return lengths.preliminary.wall_s if lengths.preliminary is not None else lengths.expected_s
