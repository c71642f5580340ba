"""Checks that plans keep what they say before they run: the promises of `precision`, in noise that was recorded.

`python -m bench.forecasts` writes bench/forecasts.json and prints the table of docs/method.md. The noise is that of
equal arms in bench/campaign.json: the record of 12 blocks comes from the same self-test as the study, or from another
one of the same load. A simulated study is planned by the record. Its blocks are those that were recorded, in an order
and with signs that are drawn, since under the rule these are a coin; a difference is added to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from bench.campaign import Recorded
from bench.figures import read_figures, write_figures
from pgtrial.model.records import Record
from pgtrial.model.units import percent
from pgtrial.statistics.p8 import ratio_limits
from pgtrial.statistics.precision import precision
from pgtrial.statistics.rules import Looks, planned
from pgtrial.statistics.shamos import spread

Noise = npt.NDArray[np.float64]
Origin = Literal["same", "another"]
"""The self-test that the record of the noise comes from: the one of the study, or another one of the same load."""

_FIGURES = Path(__file__).with_name("forecasts.json")
_CAMPAIGN = Path(__file__).with_name("campaign.json")
_RECORD = 12
"""The number of blocks of the noise record."""
_PLANS = (8, 12, 18)
_STUDIES = 500
_SEED = 7


class Kept(Record):
    """The numbers of simulated studies that kept what their plan had said."""

    origin: Origin
    blocks: int
    studies: int
    found: int
    """The number of studies that found a difference of the size that the plan finds with a power of 80%."""
    established: int
    """The number of studies of equal arms that were equivalent within the margin that the plan establishes."""


def recorded_noise() -> list[list[Noise]]:
    """Returns the noise of equal arms: by load and lengths of the trials, one series for each self-test."""
    by_load: dict[tuple[str, float, float | None], list[Noise]] = {}
    for series in read_figures(_CAMPAIGN, Recorded):
        if not series.slower_by:
            noise = np.asarray(series.log_ratios) - float(np.median(series.log_ratios))
            by_load.setdefault((series.workload, series.duration_s, series.slice_s), []).append(noise)
    return list(by_load.values())


def kept(blocks: int, origin: Origin, studies: int, seed: int = _SEED) -> Kept:
    """Simulates studies that are planned for so many blocks, and counts those that keep what their plan said."""
    draw, looks = np.random.default_rng(seed), planned(blocks, 1)
    found = established = 0
    for record, noise in _drawn(recorded_noise(), blocks, origin, studies, draw):
        forecast = precision(looks, 1, spread(list(record)))
        assert forecast is not None
        found += _word(looks, math.log1p(forecast.difference) + noise, 0.0) == "better"
        established += _word(looks, noise, forecast.margin) == "equivalent"
    return Kept(origin=origin, blocks=blocks, studies=studies, found=found, established=established)


def _drawn(
    by_load: Sequence[Sequence[Noise]], blocks: int, origin: Origin, studies: int, draw: np.random.Generator
) -> Iterator[tuple[Noise, Noise]]:
    """Yields noise records, and the noise of the study that each of them plans."""
    length = blocks + (_RECORD if origin == "same" else 0)
    long = [(series, of_load) for of_load in by_load for series in of_load if len(series) >= length]
    usable = [
        (series, [other for other in of_load if other is not series and len(other) >= _RECORD])
        for series, of_load in long
    ]
    if origin == "another":
        usable = [(series, others) for series, others in usable if others]
    for _ in range(studies):
        series, others = usable[draw.integers(len(usable))]
        begin = draw.integers(len(series) - length + 1)
        taken = series[begin : begin + length]
        if origin == "another":
            other = others[draw.integers(len(others))]
            at = draw.integers(len(other) - _RECORD + 1)
            record, study = other[at : at + _RECORD], taken
        else:
            record, study = taken[:_RECORD], taken[_RECORD:]
        yield record, draw.permutation(study) * np.where(draw.random(blocks) < 0.5, 1, -1)


def _word(looks: Looks, log_ratios: Noise, margin: float) -> str:
    """Returns the verdict of the first look that decides. A margin of 100% and more is one that nothing establishes."""
    if margin >= 1:
        return "undecided"
    words = (reading.verdict for reading in looks.readings(list(log_ratios), ratio_limits(margin)))
    return next((word for word in words if word != "undecided"), "undecided")


def table(figures: Sequence[Kept]) -> Iterator[str]:
    """Yields the lines of the table, a column for each plan."""
    plans = sorted({each.blocks for each in figures})
    known = {(each.origin, each.blocks): each for each in figures}
    yield " | ".join(["| noise record", *(f"{blocks} blocks" for blocks in plans)]) + " |"
    yield "|---" * (1 + len(plans)) + "|"
    for origin, what in (("same", "of the study's own first blocks"), ("another", "of an earlier self-test")):
        cells = [_shares(known[origin, blocks]) for blocks in plans]
        yield " | ".join([f"| {what}", *cells]) + " |"


def _shares(of: Kept) -> str:
    return f"{percent(of.found / of.studies)}, {percent(of.established / of.studies)}"


def main() -> None:
    """Simulates all plans, writes the figures and prints the table."""
    origins: tuple[Origin, ...] = ("same", "another")
    figures = [kept(blocks, origin, _STUDIES) for origin in origins for blocks in _PLANS]
    write_figures(_FIGURES, figures)
    print(*table(figures), sep="\n")


if __name__ == "__main__":
    main()
