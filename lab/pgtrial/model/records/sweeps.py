"""Types for an arm over several numbers of clients or sizes of its data: the scalability law, and cliffs."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Estimate, Word


class Bounds(Record):
    """A quantity with its 95% interval. None: without limit on that side."""

    low: float | None
    value: float | None
    high: float | None


class Law(Record):
    """The universal scalability law of an arm: throughput over clients as g n / (1 + a (n - 1) + b n (n - 1))."""

    single: Bounds = Field(description="g: tps of one client.")
    serial: Bounds = Field(description="a: the part that is done one after the other, a share.")
    mutual: Bounds = Field(description="b: what clients cost each other; 0: the throughput falls nowhere.")
    peak_clients: Bounds = Field(description="Clients with the largest throughput; None: it falls nowhere.")
    highest: Bounds = Field(description="The largest tps within the tested numbers of clients.")
    tps: list[Bounds] = Field(description="The curve at each tested number of clients.")
    misfit: float = Field(description="Root of the mean square distance of the means from the curve, in ln tps.")
    noise: float = Field(description="Standard deviation of a block's ln tps about the means.")
    fits: bool = Field(
        description="True if the blocks do not speak against the law (10%); else the curve is not to be believed. "
        "Studies by the rule P8: true if the misfit is at most twice the noise."
    )


class Scaling(Record):
    """The throughput of an arm over six or more numbers of clients."""

    arm: str
    load_points: list[int] = Field(description="Indexes into load_points, by number of clients.")
    clients: list[int]
    blocks: int = Field(description="Blocks, or deployments, without a failed trial of the arm at these load points.")
    left_out: int = Field(description="Blocks with a failed trial: the curve is drawn without them.")
    tps: list[float] = Field(description="Geometric mean at each number of clients; empty without blocks.")
    law: Law | None = Field(description="None: too few blocks, the regime changes, or no law comes near.")
    verdict: Word | None = Field(None, description="Of the peak against the baseline's; None: the arm is the baseline.")
    difference: Estimate | None = Field(
        None,
        description="Relative difference of the most tps within the tested numbers, by the study's rule over blocks.",
    )
    claims: int = Field(description="Number of peaks that share the error of each look.")


class Cliff(Record):
    """A size of the data beyond which the throughput of an arm falls by 20% or more while the size doubles."""

    scale: Bounds
    change: float = Field(description="Relative change of tps from there to twice the size.")
    reads: list[str] | None = Field(
        description="Which reads per transaction begin to rise there, `buffers read` or `device reads`; empty: none, "
        "so the cause is another; None: reads are not known."
    )


class SizeCurve(Record):
    """The throughput of an arm over six or more sizes of its data."""

    arm: str
    load_points: list[int] = Field(description="Indexes into load_points, by scale.")
    scales: list[int]
    blocks: int = Field(description="Blocks, or deployments, without a failed trial of the arm at these load points.")
    left_out: int = Field(description="Blocks with a failed trial: the line is drawn without them.")
    line: list[tuple[float, float]] = Field(
        description="Scale and tps of the broken line at its ends, knots and sizes; empty: too few blocks, or the "
        "regime changes."
    )
    cliffs: list[Cliff]
    between: list[int] = Field(description="Scales that would narrow the first cliff, by bisection; empty: none.")
    verdict: Word | None = Field(
        None, description="Of the cliff's size against the baseline's: better is larger. None: not both have one."
    )
    difference: Estimate | None = Field(
        None, description="Relative difference of the size of the steepest fall, by the study's rule over blocks."
    )
    claims: int = Field(description="Number of cliffs that share the error of each look.")
