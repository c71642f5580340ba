"""Types for studies of an arm over several numbers of clients or several sizes of its data: the scalability law, and
cliffs."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Estimate, Word


class Bounds(Record):
    """A quantity with its 95% interval. None stands for infinity: the interval has no limit on that side."""

    low: float | None
    value: float | None
    high: float | None


class Law(Record):
    """The universal scalability law of an arm: throughput over clients as g n / (1 + a (n - 1) + b n (n - 1))."""

    single: Bounds = Field(description="The parameter g of the scalability law: the tps of one client.")
    serial: Bounds = Field(
        description="The parameter a of the scalability law: the share of the work that cannot be done in parallel."
    )
    mutual: Bounds = Field(
        description="The parameter b of the scalability law: the cost of the coordination between clients. If "
        "it is 0, the throughput does not fall with more clients."
    )
    peak_clients: Bounds = Field(
        description="The number of clients at which the curve has the largest throughput; `value` is None if "
        "the throughput does not fall with more clients."
    )
    highest: Bounds = Field(description="The largest tps of the curve within the tested numbers of clients.")
    tps: list[Bounds] = Field(description="The tps of the curve at each tested number of clients.")
    misfit: float = Field(
        description="The distance between the curve and the means of the blocks, in ln tps: the root of the "
        "mean square."
    )
    noise: float = Field(
        description="The noise of a single block: the standard deviation of its ln tps about the means over the blocks."
    )
    fits: bool = Field(
        description="True if the blocks do not contradict the scalability law (by a test at 10%). Otherwise the "
        "curve must not be trusted. In studies by the older rule P8, true if the misfit is at most "
        "twice the noise."
    )


class Scaling(Record):
    """The throughput of an arm over six or more numbers of clients."""

    arm: str
    load_points: list[int] = Field(
        description="The indexes of the load points in load_points, in the order of their numbers of clients."
    )
    clients: list[int]
    blocks: int = Field(
        description="The number of blocks in which no trial of the arm at these load points failed; of "
        "deployments, if the arm names several servers of one product."
    )
    left_out: int = Field(description="The number of blocks with a failed trial, which the curve does not use.")
    tps: list[float] = Field(
        description="The geometric mean of tps at each number of clients; empty if there are no blocks."
    )
    law: Law | None = Field(
        description="The scalability law that fits the values; None if there are too few blocks, if the speed "
        "changes from one level to another within trials, or if no such law comes near the values."
    )
    verdict: Word | None = Field(
        None,
        description="The verdict on the largest throughput compared with that of the baseline; None for the "
        "baseline itself.",
    )
    difference: Estimate | None = Field(
        None,
        description="The relative difference of the largest tps within the tested numbers of clients, with the "
        "interval of the study's statistical rule.",
    )
    claims: int = Field(
        description="The number of comparisons of largest throughputs that share the error of each look "
        "(interim analysis)."
    )


class Cliff(Record):
    """A size of the data beyond which the throughput of an arm falls by 20% or more while the size doubles."""

    scale: Bounds
    change: float = Field(description="The relative change of tps from the size of the cliff to twice this size.")
    reads: list[str] | None = Field(
        description="The kinds of reads per transaction that begin to rise at the cliff: `buffers read` (into "
        "shared buffers) or `device reads` (from the disk). Empty if neither rises, so that the "
        "cliff has another cause; None if reads are not known."
    )


class SizeCurve(Record):
    """The throughput of an arm over six or more sizes of its data."""

    arm: str
    load_points: list[int] = Field(
        description="The indexes of the load points in load_points, in the order of their scales."
    )
    scales: list[int]
    blocks: int = Field(
        description="The number of blocks in which no trial of the arm at these load points failed; of "
        "deployments, if the arm names several servers of one product."
    )
    left_out: int = Field(description="The number of blocks with a failed trial, which the line does not use.")
    line: list[tuple[float, float]] = Field(
        description="Points of the broken line that fits the values, each with its scale and tps: the ends, the "
        "knots, and the tested sizes. Empty if there are too few blocks, or if the speed changes "
        "from one level to another within trials."
    )
    cliffs: list[Cliff]
    between: list[int] = Field(
        description="Further scales whose measurement would locate the first cliff more precisely, by bisection; "
        "empty if there are none."
    )
    verdict: Word | None = Field(
        None,
        description="The verdict on the size at the cliff compared with that of the baseline, where a larger size "
        "is better; None if the arm or the baseline has no cliff.",
    )
    difference: Estimate | None = Field(
        None,
        description="The relative difference of the size at which the throughput falls most, with the interval "
        "of the study's statistical rule.",
    )
    claims: int = Field(
        description="The number of comparisons of cliffs that share the error of each look (interim analysis)."
    )
