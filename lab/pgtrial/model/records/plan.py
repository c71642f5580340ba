"""Types for plan.json, which pgtrial fixes before the first trial: the order of the trials, how they alternate in
slices, and how long they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pgtrial.model.metrics import METRICS, MetricName
from pgtrial.model.paths import stays_below
from pgtrial.model.quoting import quoted
from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.kind import PointKind
from pgtrial.model.records.load_point import LoadPoint, kind_of
from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.model.records.screens import Factor
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.units import format_duration

DrawnPlace = Annotated[
    int | None,
    Field(
        exclude_if=lambda place: place is None,
        description="The number, counted from 0, that the plan drew at random for this trial. It selects an "
        "entry of the arm's list of storage places, a kept copy of the data, or one of the servers "
        "(deployments) that the arm names. None if there was nothing to draw.",
    ),
]


DrawnLayout = Annotated[
    int | None,
    Field(
        exclude_if=lambda layout: layout is None,
        description="The server's code can be linked in several orders in memory, called layouts. The number of "
        "the layout that was drawn for this trial, counted from 1; None if the server has only one "
        "layout.",
    ),
]


DrawnLevels = Annotated[
    str | None,
    Field(
        exclude_if=lambda levels: levels is None,
        pattern="^[01]+$",
        description="In a screening study: the level that was drawn for each factor of Plan.factors, in their order. 0 "
        "stands for the first level and 1 for the second one.",
    ),
]


def _within(name: str) -> str:
    """Returns the name of a script if it is a path within the folder of the study's scripts. Raises ValueError if not:
    the plan may be that of somebody else, and a rerun copies the scripts to the same paths of the new study."""
    if not stays_below(name):
        raise ValueError(f"{quoted(name)} is not the name of a script of the study")
    return name


class Interleaving(Record):
    """The rules by which the trials of one load point in one block alternate: each trial runs for a short slice of
    time, then the next trial, in several rounds."""

    slice_s: float = Field(
        description="The length of a slice in seconds. The measured part of each trial is a whole number of slices."
    )
    shared_server: bool = Field(
        False, description="True if all arms use one server and differ only in the settings of their sessions."
    )
    transactions: int = added(
        5, "The number of transactions of median length, on the slowest arm, that must fit into a slice."
    )
    longer: dict[int, float] = added(
        {},
        "For load points at which the first warm-up showed that `slice_s` is too short for "
        "`transactions`: the longer slices of all arms in seconds, by the index of the load point.",
    )

    def slice_at(self, point: int) -> float:
        """Returns the length of a slice at a load point, in seconds. `point` is the index of the load point."""
        return self.longer.get(point, self.slice_s)


class WarmUpShape(Record):
    """The speed of one arm from the start of its load on, as the preliminary block measured it. That block runs before
    the first block, so that pgtrial can choose the lengths of trials."""

    load_point: int = Field(description="The index of the load point in Plan.load_points, counted from 0.")
    arm: str
    step_s: float = Field(description="The length in seconds of the period over which each speed is measured.")
    speeds: list[float] = Field(
        description="The speeds in consecutive periods from the start of the load on, in transactions per "
        "second. For a load with a given rate, a speed is the inverse of the mean response time, in "
        "1 / s."
    )
    rises_s: float | None = Field(
        description="The time in seconds from the start of the load until the speed no longer rises; None if it "
        "still rises at the end."
    )


class PreliminaryBlock(Record):
    """The preliminary block, which runs before the first block. pgtrial uses it to choose the lengths of all other
    trials, and its results do not count in the comparison."""

    wall_s: float = Field(
        description="The wall time of the preliminary block in seconds. It counts as part of the budget."
    )
    load_s: float = Field(
        description="The time for which the load ran in each trial of the preliminary block, in seconds."
    )
    overhead_s: float = Field(
        description="The wall time in seconds of the preliminary block in which no load ran, since servers were "
        "restored, started and stopped."
    )
    checkpoint_s: float = Field(
        description="The time of the longest checkpoint in the warm-ups of the preliminary block, in seconds."
    )
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
    """The way in which pgtrial chose the lengths of trials, which are Plan.warmup_s and Plan.duration_s."""

    wanted_warmup_s: float = Field(
        description="The length of the warm-up that the preliminary block showed to be sufficient, in seconds."
    )
    expected_s: float = Field(description="The expected wall time of the preliminary block, in seconds.")
    from_noise: bool = Field(
        False,
        description="True if pgtrial made the measured part longer because of the noise that earlier studies "
        "recorded on this machine.",
    )
    preliminary: PreliminaryBlock | None = Field(
        None, description="The preliminary block; None if it has not run yet, so that the lengths may change."
    )


class Extension(Record):
    """One extension of a study after its end. Plan.looks and Plan.trials include what the extension added."""

    created: str = Field(description="The time of the extension: UTC, ISO 8601.")
    pgtrial: str = Field(description="The version of pgtrial that planned the extension.")
    after: int = Field(description="The number of blocks that were complete when the study was extended.")
    end: int = Field(description="The number of blocks after which the study ends now.")
    budget_s: float | None = Field(
        description="The time in seconds that the additional blocks may take; None if it is not limited."
    )
    decided: bool = Field(
        description="True if all comparisons were decided before the extension. The study then ends only at its "
        "last block."
    )


@dataclass(frozen=True)
class Drawn:
    """The values that the plan drew at random for the server of a trial. If a value is None, nothing was drawn, and the
    study file decides."""

    place: int | None = None
    """The number, counted from 0, of the storage place or the kept copy that holds the trial's data, or of the server
    (deployment) that the trial uses."""
    layout: int | None = None
    """The number of the layout (the order of the server's code in memory) that was drawn for the trial, counted
    from 1."""
    levels: str | None = None
    """The levels of a screening study's factors, as in `PlannedTrial.levels`."""


AS_IT_IS = Drawn()


class Spending(Record):
    """The distribution of the error of 5%, the probability of a wrong verdict on equal arms, over the interim analyses
    (looks) of a plan, as the statistical rule P9 makes it. The distribution is fixed before the first block."""

    end: int = Field(
        description="The number of blocks in the plan when it was made. An extension does not change this number."
    )
    kept: float = Field(
        description="The part of the error that the plan does not spend, so that the study can be extended and "
        "have further interim analyses after its planned end."
    )
    worse: float = added(
        0.5,
        'The part of the spent error that applies to the verdict "worse"; the rest applies to '
        '"better". It is larger in one-sided studies.',
    )

    @property
    def one_sided(self) -> bool:
        """True if the study asks only whether an arm is worse."""
        return self.worse > 0.5


class EarlierTry(Record):
    """An earlier study of the same question, which was in the results directory when this study began."""

    directory: str = Field(
        description="The name of the earlier study's directory, which is next to the directory of this study."
    )
    created: str = Field(description="The time at which the earlier study was planned: UTC, ISO 8601.")
    blocks: int = Field(description="The number of complete blocks of the earlier study.")
    planned: int = Field(description="The number of planned blocks of the earlier study.")


class PlannedTrial(Record):
    """One trial of the plan. `index` is the position of the trial in the order of execution and `block` the number of
    its block, both counted from 0."""

    index: int
    block: int
    load_point: int = Field(description="The index of the load point in Plan.load_points, counted from 0.")
    arm: str
    seed: int = Field(
        description="The random seed for the load engine. At one load point of one block, it is the same for all arms."
    )
    place: DrawnPlace = None
    layout: DrawnLayout = None
    levels: DrawnLevels = None

    @property
    def drawn(self) -> Drawn:
        """Returns the values that the plan drew for the trial's server."""
        return Drawn(self.place, self.layout, self.levels)


class Plan(Record):
    """The content of plan.json, which pgtrial fixes before the first trial. An extension of the study adds to the plan
    and changes nothing that it contains.

    The order of the trials is drawn at random for all `max_blocks` blocks at once.
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
        description="The planned looks (interim analyses) up to max_blocks, each as the number of blocks after "
        "which it takes place. If max_blocks is too small for any look, the list has the first "
        "possible look, which is larger."
    )
    spending: Spending | None = added(
        None,
        "How the looks (interim analyses) share the error under the statistical rule P9; None if "
        "the study was planned for the older rule P8, which needs no such key.",
    )
    metrics: list[str] = added(
        [],
        "The declared metrics that claims compare. The primary claims, which decide the verdict, "
        "compare the first of them. Empty if claims compare the usual measure of the load.",
    )
    own_metrics: dict[str, OwnMetric] = added({}, "The metrics that the study itself defines, by name.")
    prices: dict[str, float] = added(
        {}, "The price of each arm's server for an hour, in hundredths of its currency, by arm."
    )
    margin: float
    stop_early: bool
    drop_decided: bool = added(
        False,
        "True if pgtrial stops measuring an arm at the first look (interim analysis) at which all "
        "claims on the arm are decided.",
    )
    studies: int = added(
        1,
        "The number of studies, this one included, that together may give a wrong verdict with a "
        "probability of 5%. Each of them has an equal part of this error.",
    )
    families: int = added(
        1,
        "The number of families (groups of claims, such as those on speed or on failures) that "
        "share the error of 5%; 1 if each family has an error of 5% of its own.",
    )
    allow_busy_client: bool = Field(
        False,
        description="True if the study gives a verdict even if the load engine was the bottleneck in many trials.",
    )
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="The expected wall time of one trial with all phases, in seconds.")
    declared: dict[str, list[str]] = Field(
        description="For each arm, the names of the facts that may differ from the baseline because the study file "
        "says so, such as `settings.work_mem`."
    )
    factors: list[Factor] = added(
        [],
        "The factors of a screening study. Its arms are the two set-ups of each block: one with levels that were drawn "
        "at random, and its complement with the other level of each factor.",
    )
    scope: str = Field(description="The scope of the verdict, such as `this host, data directory swapped every trial`.")
    statistics: Literal["drawn", "same", "once"] = added(
        "once",
        "How the planner's statistics of fresh copies of the data are made. `drawn`: by an ANALYZE "
        "of its own for each trial. `same`: from one sample, the same in all arms. `once`: when the "
        "template was loaded, as in all studies that are older than this key.",
    )
    deployments: int = added(
        1,
        "The number of servers of one product, called deployments, that each arm names. If there "
        "are several, all trials of a block run on the deployments with the same number.",
    )
    hosts: dict[str, list[ServerHost]] = added(
        {},
        "The hosts of the servers by arm, with one host for each deployment; empty if all servers are "
        "on the machine of pgtrial.",
    )
    scripts: dict[Annotated[str, AfterValidator(_within)], str] = Field(
        {}, description="The SHA-256 of each script of the study, by its name."
    )
    interleaving: Interleaving | None = added(
        None, "How trials alternate in slices; None if each trial runs by itself."
    )
    lengths: Lengths | None = added(None, "How the lengths of trials were chosen; None if the study file gives them.")
    earlier: list[EarlierTry] = added(
        [], "Studies of the same question in the same results directory, the oldest one first."
    )
    left: dict[str, int] = added(
        {},
        "The arms that pgtrial has stopped measuring because all their claims were decided, each with "
        "the number of blocks in which it was measured.",
    )
    extensions: list[Extension] = added([], "The extensions of the study after its end, in the order of time.")
    trials: list[PlannedTrial]

    @property
    def identity(self) -> str:
        """Returns a text that identifies the study wherever its directory is: the time at which it was planned, and its
        seed."""
        return f"{self.created} {self.seed}"

    def sharing(self, claims: int, *, in_each_comparison: bool = False, over_studies: bool = False) -> int:
        """Returns the number of claims that share the error of each look (interim analysis), for a family that has
        `claims` claims. A family is a group of claims, such as those on single load points.

        By default each family of claims has its own error of 5%; with `in_each_comparison` the family has one for each
        comparison of an arm with the baseline. With `over_studies` the family shares its error with those of the other
        studies of a gate, as the primary claims do. If the study asks for a single error of 5% over everything that the
        report prints, all families of all comparisons and of all studies share it evenly (Bonferroni).
        """
        is_shared = self.families > 1
        comparisons = max(1, len(self.others)) if in_each_comparison and is_shared else 1
        return claims * comparisons * self.families * (self.studies if over_studies or is_shared else 1)

    @property
    def is_final(self) -> bool:
        """True if the planned looks (interim analyses) spend the whole error of 5%. The study then cannot be extended
        after its end, because further looks would have no error to spend."""
        return self.spending is not None and not self.spending.kept

    @property
    def is_one_sided(self) -> bool:
        """True if the study only asks whether an arm is worse than the baseline, so that it can end as soon as it has
        excluded this."""
        return self.spending is not None and self.spending.one_sided

    @property
    def others(self) -> list[str]:
        """Returns the arms that are compared with the baseline."""
        return [arm for arm in self.arms if arm != self.baseline]

    @property
    def looks_within(self) -> list[int]:
        """Returns the looks, as numbers of blocks after which an interim analysis is planned, that the planned blocks
        reach. The list is empty if the blocks are too few for a verdict."""
        return [look for look in self.looks if look <= self.max_blocks]

    @property
    def shares_server(self) -> bool:
        """True if all arms use one server, each of them with sessions of its own."""
        return self.interleaving is not None and self.interleaving.shared_server

    @property
    def server_hosts(self) -> list[str]:
        """Returns the hosts of the servers, sorted; an empty list if all servers are on pgtrial's machine."""
        return sorted({host.label for hosts in self.hosts.values() for host in hosts})

    @property
    def end(self) -> int:
        """Returns the number of blocks after which the study ends at the latest. It may be smaller than `max_blocks` if
        the study was extended."""
        return self.extensions[-1].end if self.extensions else self.max_blocks

    @property
    def wanted(self) -> list[PlannedTrial]:
        """Returns the planned trials, except trials of an arm in blocks after pgtrial stopped measuring the arm."""
        until = dict.fromkeys(self.arms, self.max_blocks) | self.left
        return [planned for planned in self.trials if planned.block < until[planned.arm]]

    @property
    def due(self) -> list[PlannedTrial]:
        """Returns the trials of `wanted` up to the study's end."""
        end = self.end
        return [planned for planned in self.wanted if planned.block < end]

    @property
    def block_estimate_s(self) -> float:
        """Returns the expected wall time of a block, in seconds."""
        return self.trial_estimate_s * len(self.load_points) * len(self.arms)

    @property
    def awaits_lengths(self) -> bool:
        """True if the preliminary block, which determines the lengths of trials, has not run yet."""
        return self.lengths is not None and self.lengths.preliminary is None

    @property
    def kind(self) -> PointKind:
        """Returns the kind of the load."""
        return kind_of(self.load_points)

    @property
    def primary_metric(self) -> str | None:
        """Returns the declared metric that the primary claims compare; None if they compare the usual measure of the
        load."""
        return self.metrics[0] if self.metrics else None

    def named_metric(self, name: str) -> MetricName:
        """Returns a metric by its name. The metric comes with pgtrial, or the study defines it."""
        own = self.own_metrics.get(name)
        return METRICS[name] if own is None else own.named(name)

    @property
    def is_paced(self) -> bool:
        """True if the load fixes the number of transactions, so that a faster server only answers sooner."""
        return self.kind.measure != "goodput"

    @property
    def repeated_metrics(self) -> list[str]:
        """Returns the declared metrics that follow from the throughput, because each client starts a transaction as
        soon as its last one has ended (a closed loop; Little's law)."""
        return [] if self.is_paced else [name for name in self.metrics if self.named_metric(name).follows_throughput]

    @property
    def measure(self) -> str:
        """Returns the name of what the study's primary claims compare: a declared metric, or the usual measure of the
        load."""
        return self.named_metric(self.metrics[0]).noun if self.metrics else self.kind.measure
