"""The noise of a machine's studies, which the state directory keeps, and what a plan can tell in such noise."""

from __future__ import annotations

from pydantic import Field

from pgtrial.model.records import Record, added

FEWEST_BLOCKS = 4
"""Blocks from which a study's noise is known well enough to be told."""


class Conditions(Record):
    """What the noise of a block depends on; only studies under the same conditions speak for each other."""

    lab_host: str = Field(description="Name of the lab's machine.")
    servers: list[str] = Field(description="Hosts of the servers, sorted; empty: all on the lab's machine.")
    fleet: str | None = Field(None, description="Address of the fleet that makes the load; None: the lab's machine.")
    load_points: list[str] = Field(description="Workload, data, clients and rate of each, and its protocol; sorted.")
    arms: int
    duration_s: float = Field(
        ge=0, allow_inf_nan=False, description="Measured part of a trial; 0: as long as the load point's tasks take."
    )
    slice_s: float | None = added(None, "Length of the slices in which trials alternate; None: each runs by itself.")


class Noise(Record):
    """The noise of one study."""

    study: str
    created: str = Field(description="When the study was planned: UTC, ISO 8601.")
    conditions: Conditions
    blocks: int = Field(ge=FEWEST_BLOCKS)
    spread: float = Field(
        ge=0,
        le=20,
        allow_inf_nan=False,
        description="Robust standard deviation of a block's log-ratio, the mean over the load points; of several "
        "comparisons the largest.",
    )


class NoiseRecord(Record):
    """noise.json of the state directory: the latest studies, in the order in which their noise became known."""

    format: int = 1
    studies: list[Noise] = Field([])


class Precision(Record):
    """What a plan can tell with a probability of 80%, as shares."""

    difference: float = Field(description="The smallest difference that gets a verdict by the end of the plan.")
    margin: float = Field(description="The smallest margin that is established by then if the arms do not differ.")
    blocks: int = Field(description="Blocks at the last planned look.")
