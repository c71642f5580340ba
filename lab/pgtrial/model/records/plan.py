"""Types for what is frozen before the first trial: how trials take turns, how long they are, and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from pgtrial.model.metrics import METRICS, MetricName
from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.kind import PointKind
from pgtrial.model.records.load_point import LoadPoint, kind_of
from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.units import format_duration

DrawnPlace = Annotated[
    int | None,
    Field(
        exclude_if=lambda place: place is None,
        description="The place that was drawn, from 0: which of those that the arm's storage lists, which of the kept "
        "copies of the data, or which of the arm's deployments; None: nothing to draw.",
    ),
]


DrawnLayout = Annotated[
    int | None,
    Field(
        exclude_if=lambda layout: layout is None,
        description="The layout of the server's program that was drawn, from 1; None: as it was built.",
    ),
]


class Interleaving(Record):
    """The rules by which the trials of one load point of one block take turns: each has a slice of time, again and
    again."""

    slice_s: float = Field(
        description="The length of a slice in seconds. The measured part of each trial is a whole number of slices."
    )
    shared_server: bool = Field(False, description="True if all arms are sessions of one server with other settings.")
    transactions: int = added(5, "The number of median transactions of the slowest arm that a slice must hold.")
    longer: dict[int, float] = added(
        {},
        "The length of slices for all arms, by load point, where the first warm-up found slice_s to be too "
        "short for that.",
    )

    def slice_at(self, point: int) -> float:
        """Returns the length of a slice at a load point, seconds."""
        return self.longer.get(point, self.slice_s)


class WarmUpShape(Record):
    """How the speed of one arm changed after the start of its load, as the preliminary block measured it."""

    load_point: int = Field(description="The index of the load point in Plan.load_points.")
    arm: str
    step_s: float = Field(description="The length in seconds of the period of load to which each speed applies.")
    speeds: list[float] = Field(
        description="The speeds from the start of the load: transactions per second, or 1 / s if the load has a rate."
    )
    rises_s: float | None = Field(
        description="The time in seconds until which the speed rises; None if it still rises at the end."
    )


class PreliminaryBlock(Record):
    """The block before the first one. It sets the lengths of all others, and does not count."""

    wall_s: float = Field(description="The wall time in seconds, which is part of the budget.")
    load_s: float = Field(description="The time of load in each trial, in seconds.")
    overhead_s: float = Field(
        description="The wall time outside of the loads, for restoring, starting and stopping servers, in seconds."
    )
    checkpoint_s: float = Field(description="The time of the longest checkpoint in the warm-ups, in seconds.")
    shapes: list[WarmUpShape]

    @property
    def text(self) -> str:
        """Returns the result of the block for reports: `the speed rises for 2s after the start`."""
        still = next((shape for shape in self.shapes if shape.rises_s is None), None)
        if still is not None:
            return f"the speed of {still.arm} still rises {format_duration(self.load_s)} after the start"
        longest_s = max((shape.rises_s or 0.0 for shape in self.shapes), default=0.0)
        if not longest_s:
            return "the speed does not rise after the start"
        return f"the speed rises for {format_duration(longest_s)} after the start"


class Lengths(Record):
    """The reasons for the lengths of trials that pgtrial chose, which are Plan.warmup_s and Plan.duration_s."""

    wanted_warmup_s: float = Field(
        description="The warm-up that the preliminary block showed to be sufficient, in seconds."
    )
    expected_s: float = Field(description="The expected wall time of the preliminary block, in seconds.")
    from_noise: bool = Field(False, description="True if the measured part is longer because of the noise record.")
    preliminary: PreliminaryBlock | None = Field(
        None, description="The preliminary block; None if it has not run yet, so that the lengths may change."
    )


class Extension(Record):
    """One extension of a study after its end. The plan's own looks and trials include those that the extension
    added."""

    created: str = Field(description="The time of the extension: UTC, ISO 8601.")
    pgtrial: str = Field(description="The version of pgtrial that planned it.")
    after: int = Field(description="The number of blocks that were complete.")
    end: int = Field(description="The number of blocks after which the study ends now.")
    budget_s: float | None = Field(
        description="The time that the blocks may take, in seconds; None if it is not limited."
    )
    decided: bool = Field(
        description="True if all comparisons were decided already, so that only the last block ends the study."
    )


@dataclass(frozen=True)
class Drawn:
    """The values that the plan draws for the server of a trial. None means that nothing is drawn, and the study's own
    value holds."""

    place: int | None = None
    """The number of the place of the data, or of the deployment that serves, counted from 0."""
    layout: int | None = None
    """The number of the layout of the server's program, counted from 1."""


AS_IT_IS = Drawn()


class Spending(Record):
    """The shares in which the rule P9 spends the error of 5% over the looks of a plan, fixed before the first block."""

    end: int = Field(description="The number of blocks in the plan when it was made. An extension does not change it.")
    kept: float = Field(description="The part of the error that is kept for looks after the end of the plan.")
    worse: float = added(
        0.5, "The part of the error that is spent on the side of worse. It is larger in one-sided studies."
    )

    @property
    def one_sided(self) -> bool:
        """True if the study asks only whether an arm is worse."""
        return self.worse > 0.5


class EarlierTry(Record):
    """A study of the same question that was there when this one began."""

    directory: str = Field(description="The name of the study's directory, next to that of this study.")
    created: str = Field(description="The time at which the study was planned: UTC, ISO 8601.")
    blocks: int = Field(description="The number of blocks that were complete.")
    planned: int = Field(description="The number of blocks that were planned.")


class PlannedTrial(Record):
    """One trial of the plan. `index` counts from 0 in the order of execution, `block` from 0."""

    index: int
    block: int
    load_point: int = Field(description="The index of the load point in Plan.load_points.")
    arm: str
    seed: int = Field(
        description="The random seed of the engine. It is the same for all arms at this load point of this block."
    )
    place: DrawnPlace = None
    layout: DrawnLayout = None

    @property
    def drawn(self) -> Drawn:
        """Returns the values that the plan drew for the trial's server."""
        return Drawn(self.place, self.layout)


class Plan(Record):
    """plan.json: frozen before the first trial; an extension adds to it and changes nothing.

    The order is drawn for `max_blocks` blocks at once.
    """

    format: int = FORMAT
    name: str
    created: str = Field(description="The time at which the study was planned: UTC, ISO 8601.")
    pgtrial: str = Field(description="The version of pgtrial that planned the study.")
    seed: int
    baseline: str
    arms: list[str]
    load_points: list[LoadPoint]
    max_blocks: int
    looks: list[int] = Field(
        description="The planned looks up to max_blocks, as numbers of blocks. If max_blocks is too small for a "
        "look, the first look beyond it."
    )
    spending: Spending | None = added(
        None, "How the looks of the rule P9 share the error; None if the study was planned for the rule P8."
    )
    metrics: list[str] = added(
        [],
        "The metrics that claims compare. The first one is that of the primary claims. Empty for the usual "
        "measure of the load.",
    )
    own_metrics: dict[str, OwnMetric] = added({}, "The metrics among them that the study itself defines, by name.")
    prices: dict[str, float] = added({}, "The price of an hour by arm, in hundredths of its currency.")
    margin: float
    stop_early: bool
    drop_decided: bool = added(False, "True if an arm leaves at the look at which all its claims are decided.")
    studies: int = added(1, "The number of studies that share the error of 5%, this one included.")
    families: int = added(
        1, "The number of families of claims that share the error of 5%; 1 if each family errs in 5% by itself."
    )
    allow_busy_client: bool = Field(
        False, description="True if trials in which the load engine was the bottleneck may decide."
    )
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="The expected wall time of one trial with all phases, in seconds.")
    declared: dict[str, list[str]] = Field(
        description="The keys in which the study file states that an arm differs, by arm."
    )
    scope: str = Field(description="The scope of the verdict, e.g. `this host, data directory swapped every trial`.")
    statistics: Literal["drawn", "same", "once"] = added(
        "once",
        "The planner's statistics of fresh copies: drawn by ANALYZE for each trial, the same in all arms, or "
        "made once when the template was loaded, as in all studies that are older than this key.",
    )
    deployments: int = added(
        1,
        "The number of given servers of one product that each arm names. If there are several, all trials of "
        "a block run on those with the same number.",
    )
    hosts: dict[str, list[ServerHost]] = added(
        {},
        "The hosts of the servers by arm, one for each deployment; empty if all servers are on the machine of pgtrial.",
    )
    scripts: dict[str, str] = Field({}, description="The SHA-256 of each script of the study, by its name.")
    interleaving: Interleaving | None = added(None, "How trials alternate; None if each trial runs by itself.")
    lengths: Lengths | None = added(None, "How the lengths of trials were chosen; None if the study file gives them.")
    earlier: list[EarlierTry] = added(
        [], "Studies of the same question in the same results directory, the oldest one first."
    )
    left: dict[str, int] = added(
        {},
        "The arms that have left because all their claims were decided, each with the number of blocks after "
        "which it left.",
    )
    extensions: list[Extension] = added([], "The extensions by which the study went on after its end, in order.")
    trials: list[PlannedTrial]

    @property
    def identity(self) -> str:
        """Returns the identity of the study, which stays the same wherever its directory is: when it was planned, and
        its seed."""
        return f"{self.created} {self.seed}"

    def sharing(self, claims: int, *, in_each_comparison: bool = False) -> int:
        """Returns the number of claims that share the error of each look, for a family that has `claims` claims.

        By default each family of claims has an error of its own; a family with `in_each_comparison` has one for each
        comparison. If the study asks for one error over everything that the report prints, all families of all
        comparisons share it evenly (Bonferroni).
        """
        comparisons = max(1, len(self.others)) if in_each_comparison and self.families > 1 else 1
        return claims * comparisons * self.families

    @property
    def is_final(self) -> bool:
        """True if the looks spend the whole error, so that the study cannot go on after its end."""
        return self.spending is not None and not self.spending.kept

    @property
    def others(self) -> list[str]:
        """Returns the arms that are compared with the baseline."""
        return [arm for arm in self.arms if arm != self.baseline]

    @property
    def looks_within(self) -> list[int]:
        """Returns the looks that the planned blocks reach; none if the blocks are too few for a verdict."""
        return [look for look in self.looks if look <= self.max_blocks]

    @property
    def shares_server(self) -> bool:
        """True if all arms are sessions of one server."""
        return self.interleaving is not None and self.interleaving.shared_server

    @property
    def server_hosts(self) -> list[str]:
        """Returns the hosts of the servers, sorted; empty if all servers are on the lab's machine."""
        return sorted({host.label for hosts in self.hosts.values() for host in hosts})

    @property
    def end(self) -> int:
        """Returns the number of blocks after which the study ends at the latest. An extension may ask for fewer blocks
        than are planned."""
        return self.extensions[-1].end if self.extensions else self.max_blocks

    @property
    def wanted(self) -> list[PlannedTrial]:
        """Returns the planned trials without those of an arm after the block at which it has left."""
        until = dict.fromkeys(self.arms, self.max_blocks) | self.left
        return [planned for planned in self.trials if planned.block < until[planned.arm]]

    @property
    def due(self) -> list[PlannedTrial]:
        """Returns the wanted trials up to the study's end."""
        end = self.end
        return [planned for planned in self.wanted if planned.block < end]

    @property
    def block_estimate_s(self) -> float:
        """Returns the expected wall time of a block, seconds."""
        return self.trial_estimate_s * len(self.load_points) * len(self.arms)

    @property
    def awaits_lengths(self) -> bool:
        """True if the preliminary block, which sets the lengths of trials, is still to run."""
        return self.lengths is not None and self.lengths.preliminary is None

    @property
    def kind(self) -> PointKind:
        """Returns the kind of the load."""
        return kind_of(self.load_points)

    @property
    def primary_metric(self) -> str | None:
        """Returns the declared metric of the primary claims; None if they compare the measure of the load."""
        return self.metrics[0] if self.metrics else None

    def named_metric(self, name: str) -> MetricName:
        """Returns a declared metric by its name: one of pgtrial, or one that the study defines."""
        own = self.own_metrics.get(name)
        return METRICS[name] if own is None else own.named(name)

    @property
    def is_paced(self) -> bool:
        """True if the number of transactions is fixed, so that a faster server only answers sooner."""
        return self.kind.measure != "goodput"

    @property
    def repeated_metrics(self) -> list[str]:
        """Returns the declared metrics that follow from the throughput because the load is a closed loop (Little's
        law)."""
        return [] if self.is_paced else [name for name in self.metrics if self.named_metric(name).follows_throughput]

    @property
    def measure(self) -> str:
        """Returns the name of what the study's primary claims compare: a Measure, or a declared metric."""
        return self.named_metric(self.metrics[0]).noun if self.metrics else self.kind.measure
