"""What is frozen before the first trial, as types: the load points, how trials take turns, and the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from pgtrial.model.metrics import METRICS
from pgtrial.model.records import FORMAT, Record, added
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.units import format_duration, plural, slug


class TaskLoad(Record):
    """The tasks of a load point; all numbers are of each application."""

    apps: int
    tasks: int
    arrival: str = Field(description="`at-once`, or tasks a second: `50` at equal distances, `poisson:50` at random.")
    pool: int = Field(description="Connections at most.")
    pool_timeout_s: float = Field(description="A task that waits longer for a connection has failed.")
    threads_in_table: int
    rows: int = Field(description="Of each thread in the table.")

    @property
    def label(self) -> str:
        """For people: `3 x 5,000 tasks at once on pools of 100`."""
        when = "at once" if self.arrival == "at-once" else f"at {self.arrival.removeprefix('poisson:')}/s each"
        return f"{self.apps} x {self.tasks:,} tasks {when} on pools of {self.pool}"


class BesideLoad(Record):
    """A load of pgbench at a rate, from before the start of a job to after its end."""

    script: str = Field(description="A script of pgbench's own, or the file name of one of the study's.")
    clients: int
    rate: float = Field(description="Transactions per second.")
    protocol: str

    @property
    def label(self) -> str:
        """`beside orders.sql, 8 clients, 200/s`."""
        return f"beside {self.script}, {plural(self.clients, 'client')}, {self.rate:,.10g}/s"


class JobLoad(Record):
    """The job of a load point, which runs once in a trial."""

    limit_s: float = Field(description="A job that takes longer has failed, seconds.")
    command: str | None = added(None, "The program with its options; None: a file of SQL.")
    beside: BesideLoad | None = added(None, "The load that runs beside it; None: it is alone.")

    @property
    def slugs(self) -> tuple[str, str]:
        """What stands before and after the name of the file and the size, for directory names."""
        return "job-", "" if self.beside is None else f"-c{self.beside.clients}-r{self.beside.rate:.10g}"


Weight = Annotated[int, Field(ge=0, le=1_000_000)]
"""How often a script is chosen, against the weights of the others."""


class Quality(Record):
    """A quality of the answers, such as recall. Arms are compared only where it is the same."""

    name: str = Field(min_length=1, max_length=40, description="For people: `recall@10`.")
    better: Literal["more", "less"] = Field("more", description="Whether a larger value is the better one.")
    tolerance: float = Field(
        0.01, ge=0, description="Medians of two arms that differ by no more than this count as equal; absolute."
    )
    at_least: float | None = added(
        None, "The worst value with which an arm gets a verdict: the least, or where less is better the most."
    )

    def reaches(self, value: float) -> bool:
        """Whether a value is as good as the study asks for."""
        if self.at_least is None:
            return True
        return value >= self.at_least if self.better == "more" else value <= self.at_least

    def text(self, value: float) -> str:
        """`recall@10 0.953`."""
        return f"{self.name} {value:.4g}"


class PackLoad(Record):
    """What runs at a load point."""

    name: str
    mix: str | None = added(None, "Which of the pack's mixes; None: it has but one.")
    scripts: dict[str, Weight] = Field(description="Weight of each script, by its file in the pack.")
    variables: dict[str, str] = Field(description="Values of the pack's variables, `scale` apart.")
    transaction: str = Field(description="What a transaction is.")
    mb_per_scale: float = Field(description="Megabytes of data of one scale unit, about; 0: unknown.")
    hold: str | None = added(None, "The setting of PostgreSQL that has the lab run hold.sql during the load.")
    quality: Quality | None = added(None, "What measure.sql finds out; None: there is no such file.")

    def __hash__(self) -> int:
        """Load points are keys of dictionaries, and dictionaries have no hash of their own."""
        return hash((self.name, self.mix))


class CapacityLoad(Record):
    """The promise of which the highest rate is looked for."""

    percentile: str
    limit_s: float
    failures: float = Field(description="The share of transactions that may fail.")

    @property
    def label(self) -> str:
        """For people: `p99 within 20ms`."""
        limit = f"{self.limit_s * 1000:.6g}ms" if self.limit_s < 1 else f"{self.limit_s:.6g}s"
        return f"{self.percentile} within {limit}"


class LoadPoint(Record):
    """One cell of workload x scale x clients x rate; tests of sysbench have the size of their tables for the scale."""

    workload: str = Field(
        description="A built-in workload, the file name of a script of the study's own, or a pack with its mix."
    )
    scale: int | float = Field(
        description="Of pgbench's tables, a pack's or a suite's, the last with decimals; 1 for tests of sysbench and "
        "replays."
    )
    sysbench: bool = added(False, "Whether it is a test of sysbench.")
    tables: int | None = added(None, "Tables of a test of sysbench; None: its own.")
    table_size: int | None = added(None, "Rows of each of them; None: the test's own.")
    tasks: TaskLoad | None = added(None, "Of the workload app-tasks: what runs.")
    mix: dict[str, Weight] = added(
        {}, "Of scripts with weights: how often each is chosen; the workload is all of them."
    )
    data: str | None = added(None, "The user's own data, for people; None: tables that pgtrial makes.")
    pack: PackLoad | None = added(None, "Of a workload that is a pack: what runs.")
    replay: ReplayLoad | None = added(None, "Of a replay: what runs.")
    suite: SuiteLoad | None = added(None, "Of a suite: what runs.")
    job: JobLoad | None = added(None, "Of a job: what runs; the workload is the name of its file or program.")
    programs: bool = added(False, "Whether the load is what the arms' client programs do.")
    clients: int = Field(description="Of tasks and replays the connections that there may be.")
    protocol: str
    rate: float | None = added(None, "Transactions per second; None: a closed loop.")
    capacity: CapacityLoad | None = added(None, "Where the highest rate is looked for: the promise that it keeps.")

    def __hash__(self) -> int:
        """Load points are keys of dictionaries, and dictionaries have no hash of their own."""
        return hash((self.workload, self.scale, self.clients, self.rate))

    @property
    def whole_scale(self) -> int:
        """The scale of tables that are not a suite's."""
        return int(self.scale)

    @property
    def label(self) -> str:
        """For people: `tpcb-like, scale 20, 8 clients`, with a rate `tpcb-like, scale 20, 8 clients, 500/s`."""
        if self.job is not None:
            return f"{self.load} {self.job.beside.label}" if self.job.beside is not None else self.load
        to_its_end = self.tasks or self.replay or self.suite
        if to_its_end is not None:
            return f"{self.load}, {to_its_end.label}"
        if self.programs:
            return self.load
        rate = f", {self.rate:,.10g}/s" if self.rate is not None else ""
        rate += f", {self.capacity.label}" if self.capacity is not None else ""
        return f"{self.load}, {self.clients} client{'s' if self.clients != 1 else ''}{rate}"

    @property
    def load(self) -> str:
        """Workload and data, for people: `tpcb-like, scale 20`, `oltp_write_only, 250 x 450,000 rows`."""
        if self.tasks is not None:
            return f"{self.workload}, {self.tasks.threads_in_table:,} x {self.tasks.rows:,} rows"
        if self.replay is not None:
            return f"replay of {self.replay.capture}"
        name = f"job {self.workload}" if self.job is not None else self.workload
        if self.data is not None:
            return f"{name} on {self.data}"
        if not self.sysbench and (self.suite is None or self.suite.data is not None):
            return f"{name}, scale {self.scale}"
        if self.table_size is not None:
            return f"{self.workload}, {f'{self.tables:,} x ' if self.tables else ''}{self.table_size:,} rows"
        return self.workload if self.tables is None else f"{self.workload}, {plural(self.tables, 'table')}"

    @property
    def slug(self) -> str:
        """For directory names: `tpcb-like-s20-c8`, with a rate `tpcb-like-s20-c8-r500`."""
        if self.tasks is not None:
            return f"{slug(self.workload)}-{self.tasks.apps}x{self.tasks.tasks}-p{self.tasks.pool}"
        if self.replay is not None:
            return slug(self.workload)
        if self.suite is not None:
            size = "own" if self.suite.data is None else f"s{self.scale}"
            return f"{slug(self.workload)}-{size}-{self.suite.cache}"
        rate = f"-r{self.rate:.10g}" if self.rate is not None else ""
        if self.sysbench:
            size = "x".join(str(part) for part in (self.tables, self.table_size) if part is not None)
            return f"{slug(self.workload)}{size and f'-t{size}'}-c{self.clients}{rate}"
        size = f"s{self.scale}" if self.data is None else "own"
        if self.job is not None or self.programs:
            before, after = self.job.slugs if self.job is not None else ("", "")
            return f"{before}{slug(self.workload)}-{size}{after}"
        return f"{slug(self.workload)}-{size}-c{self.clients}{rate}"


Measure = Literal[
    "goodput",
    "mean response time",
    "mean response time of tasks",
    "geometric mean of query times",
    "time of the job",
]


def measure_of(points: Sequence[LoadPoint]) -> Measure:
    """What claims compare unless the study says otherwise: how much is done, or where that is fixed, how soon."""
    if any(point.tasks is not None for point in points):
        return "mean response time of tasks"
    if any(point.suite is not None for point in points):
        return "geometric mean of query times"
    if any(point.job is not None for point in points):
        return "time of the job"
    if any(point.replay is not None and point.replay.speed is not None for point in points):
        return "mean response time"
    return "goodput" if all(point.rate is None for point in points) else "mean response time"


DrawnPlace = Annotated[
    int | None,
    Field(
        exclude_if=lambda place: place is None,
        description="The place that was drawn, from 0: which of those that the arm's storage lists, which of the kept "
        "copies of the data, or which of the arm's deployments; None: nothing to draw.",
    ),
]


class Interleaving(Record):
    """How the trials of one load point of one block run at the same time: in turns, a slice of time each."""

    slice_s: float = Field(description="Length of a slice; the measured part of each trial is a whole number of them.")
    shared_server: bool = Field(False, description="Whether all arms are sessions of one server with other settings.")
    transactions: int = added(5, "How many median transactions of the slowest arm a slice is to hold.")
    longer: dict[int, float] = added(
        {}, "By load point the length where slice_s was too short for that, as its first warm-up found; for all arms."
    )

    def slice_at(self, point: int) -> float:
        """Length of a slice at a load point."""
        return self.longer.get(point, self.slice_s)


class WarmUpShape(Record):
    """How the speed of one arm changed after the start of its load in the preliminary block."""

    load_point: int = Field(description="Index into Plan.load_points.")
    arm: str
    step_s: float = Field(description="Time of the load's own that each speed is of, seconds.")
    speeds: list[float] = Field(description="From the start of the load; transactions a second, at a rate 1 / s.")
    rises_s: float | None = Field(description="Until when the speed rises, seconds; None: it still does at the end.")


class PreliminaryBlock(Record):
    """The block before the first one. It sets the lengths of all others, and does not count."""

    wall_s: float = Field(description="Wall time, seconds; it is part of the budget.")
    load_s: float = Field(description="Time of load of each trial, seconds.")
    overhead_s: float = Field(description="Wall time without the loads: starts, restores, stops; seconds.")
    checkpoint_s: float = Field(description="The longest of the checkpoints in the warm-ups, seconds.")
    shapes: list[WarmUpShape]

    @property
    def text(self) -> str:
        """For people: `the speed rises for 2s after the start`."""
        still = next((shape for shape in self.shapes if shape.rises_s is None), None)
        if still is not None:
            return f"the speed of {still.arm} still rises {format_duration(self.load_s)} after the start"
        longest_s = max((shape.rises_s or 0.0 for shape in self.shapes), default=0.0)
        if not longest_s:
            return "the speed does not rise after the start"
        return f"the speed rises for {format_duration(longest_s)} after the start"


class Lengths(Record):
    """How pgtrial chose the lengths of trials, which are Plan.warmup_s and Plan.duration_s."""

    wanted_warmup_s: float = Field(description="The warm-up that the preliminary block showed to be enough, seconds.")
    expected_s: float = Field(description="Expected wall time of the preliminary block, seconds.")
    from_noise: bool = Field(False, description="Whether the noise record asked for a longer measured part.")
    preliminary: PreliminaryBlock | None = Field(None, description="None: it has not run, and the lengths may change.")


class Extension(Record):
    """One step by which a study went on after its end; the plan's looks and trials hold what it added."""

    created: str = Field(description="UTC, ISO 8601.")
    pgtrial: str = Field(description="Version of the lab that planned it.")
    after: int = Field(description="Blocks that were complete.")
    end: int = Field(description="Blocks after which the study ends now.")
    budget_s: float | None = Field(description="Time that the blocks may take; None: not limited.")
    decided: bool = Field(description="Whether every comparison was decided: then only the end ends the study.")


class EarlierTry(Record):
    """A study of the same question that was there when this one began."""

    directory: str = Field(description="Its name, beside this study's directory.")
    created: str = Field(description="UTC, ISO 8601.")
    blocks: int = Field(description="Blocks that were complete.")
    planned: int = Field(description="Blocks that were planned.")


class PlannedTrial(Record):
    """One trial of the plan. `index` counts from 0 in the order of execution, `block` from 0."""

    index: int
    block: int
    load_point: int = Field(description="Index into Plan.load_points.")
    arm: str
    seed: int = Field(description="Random seed of the engine: the same for all arms at this load point of this block.")
    place: DrawnPlace = None


class Plan(Record):
    """plan.json: frozen before the first trial; an extension adds to it and changes nothing.

    The order is drawn for `max_blocks` blocks at once.
    """

    format: int = FORMAT
    name: str
    created: str = Field(description="UTC, ISO 8601.")
    pgtrial: str = Field(description="Version of the lab that planned.")
    seed: int
    baseline: str
    arms: list[str]
    load_points: list[LoadPoint]
    max_blocks: int
    looks: list[int] = Field(description="Planned looks up to max_blocks, in blocks.")
    metrics: list[str] = added([], "What claims compare, the first the primary ones; empty: the measure of the load.")
    prices: dict[str, float] = added({}, "Per arm the price of an hour, in hundredths of its currency.")
    margin: float
    stop_early: bool
    drop_decided: bool = added(False, "Whether an arm leaves at the look at which all its claims are decided.")
    studies: int = added(1, "How many studies share the error of 5%, this one among them.")
    allow_busy_client: bool = Field(False, description="Whether trials in which the client was a limit may decide.")
    warmup_s: float
    duration_s: float
    trial_estimate_s: float = Field(description="Expected wall time of one trial, all phases.")
    declared: dict[str, list[str]] = Field(description="Per arm, the keys in which the study says that it differs.")
    scope: str = Field(description="What the verdict speaks of, e.g. `this host, data directory swapped every trial`.")
    deployments: int = added(
        1,
        "Given servers of one product that each arm names. With several, all trials of a block run on "
        "those of one number, their place.",
    )
    hosts: dict[str, list[ServerHost]] = added(
        {}, "Per arm where its server is, one for each deployment; empty where all are on the lab's machine."
    )
    scripts: dict[str, str] = Field({}, description="SHA-256 of each script of the study's own, by its name.")
    interleaving: Interleaving | None = added(None, "How trials alternate; None: each runs by itself.")
    lengths: Lengths | None = added(None, "How the lengths of trials were chosen; None: the study gives them.")
    earlier: list[EarlierTry] = added(
        [], "Studies of the same question in the same results directory, the oldest first."
    )
    left: dict[str, int] = added({}, "Arms that have left: after how many blocks, all their claims being decided.")
    extensions: list[Extension] = added([], "How the study went on after its end, in order.")
    trials: list[PlannedTrial]

    @property
    def others(self) -> list[str]:
        """The arms that are compared with the baseline."""
        return [arm for arm in self.arms if arm != self.baseline]

    @property
    def shares_server(self) -> bool:
        """Whether all arms are sessions of one server."""
        return self.interleaving is not None and self.interleaving.shared_server

    @property
    def server_hosts(self) -> list[str]:
        """Hosts of the servers, sorted; empty: all on the lab's machine."""
        return sorted({host.label for hosts in self.hosts.values() for host in hosts})

    @property
    def end(self) -> int:
        """Blocks after which the study ends at the latest: an extension may ask for fewer than are planned."""
        return self.extensions[-1].end if self.extensions else self.max_blocks

    @property
    def wanted(self) -> list[PlannedTrial]:
        """The planned trials without those of arms that have left before."""
        until = dict.fromkeys(self.arms, self.max_blocks) | self.left
        return [planned for planned in self.trials if planned.block < until[planned.arm]]

    @property
    def due(self) -> list[PlannedTrial]:
        """The wanted trials up to the end."""
        end = self.end
        return [planned for planned in self.wanted if planned.block < end]

    @property
    def block_estimate_s(self) -> float:
        """Expected wall time of a block, seconds."""
        return self.trial_estimate_s * len(self.load_points) * len(self.arms)

    @property
    def awaits_lengths(self) -> bool:
        """Whether the preliminary block, which sets the lengths of trials, is still to run."""
        return self.lengths is not None and self.lengths.preliminary is None

    @property
    def runs_once(self) -> bool:
        """Whether a trial is a job or the queries of a suite, and no load of transactions."""
        return any(point.job is not None or point.suite is not None for point in self.load_points)

    @property
    def runs_job(self) -> bool:
        """Whether a trial is one run of a job."""
        return any(point.job is not None for point in self.load_points)

    @property
    def primary_metric(self) -> str | None:
        """The declared metric of the primary claims; None: the measure of the load."""
        return self.metrics[0] if self.metrics else None

    @property
    def is_paced(self) -> bool:
        """Whether the number of transactions is fixed, so that a faster server only answers sooner."""
        return measure_of(self.load_points) != "goodput"

    @property
    def repeated_metrics(self) -> list[str]:
        """The declared metrics that follow from the throughput, since the load is a closed loop (Little's law)."""
        return [] if self.is_paced else [name for name in self.metrics if METRICS[name].follows_throughput]

    @property
    def measure(self) -> str:
        """What the study's primary claims compare: a Measure, or a declared metric."""
        return METRICS[self.metrics[0]].noun if self.metrics else measure_of(self.load_points)
