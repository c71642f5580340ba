"""Scaling over numbers of clients: fits the universal scalability law to the throughput of each arm, and tests whether
the peaks of the arms differ. The peak is the largest throughput that the law has within the tested numbers of clients.

The arms are compared at each single number of clients elsewhere. The comparisons of the peaks share an allowed
probability of a wrong verdict of their own. The law is fitted in each block, and the verdict follows from the
log-ratios of the peaks, by the same statistical rule as for speeds. There is no verdict on a peak if the law does not
fit the measurements. For studies that were planned with P8, the statistical rule of older versions, the fit is judged
as it was at that time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.sweeps import Law, Scaling
from pgtrial.statistics.scalability import Scalability, fit, scalability
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.series import read
from pgtrial.verdict.sweeps import Curves, Sweep, bounds, changing_arms, curves, family_of, of_units, spoilt, sweeps


def scaling(grid: Grid, primary: Sequence[Claim]) -> list[Scaling]:
    """Returns the scalability law of each arm over each sweep, which is a group of load points that differ only in the
    number of clients. The result is empty if the study has no sweep."""
    found = sweeps(grid.plan, "clients")
    return [of_arm for sweep in found for of_arm in _arms(grid, sweep, primary, family_of(grid.plan, found))]


def _arms(grid: Grid, sweep: Sweep, primary: Sequence[Claim], family: int) -> list[Scaling]:
    changing = changing_arms(grid, primary)
    by_arm = {arm: curves(grid, sweep, arm) for arm in grid.plan.arms}
    rows = {arm: of_units(grid, sweep, of_blocks) for arm, of_blocks in by_arm.items()}
    laws = {arm: scalability(sweep.numbers, rows[arm]) if arm not in changing else None for arm in rows}
    believed = {arm for arm, law in laws.items() if law is not None and _fits(grid, law)}
    claims = {claim.arm: claim for claim in primary}

    def compared(arm: str) -> dict[str, Any]:
        if arm not in claims:
            return {}
        known = {arm, grid.plan.baseline} <= believed
        series = read(grid, _gains(sweep, by_arm[arm], by_arm[grid.plan.baseline]), family)
        return {
            "verdict": series.verdict(withheld=not known or claims[arm].verdict == "withheld"),
            "difference": series.difference if known else None,
        }

    return [
        Scaling(
            arm=arm,
            load_points=list(sweep.points),
            clients=list(sweep.numbers),
            blocks=len(rows[arm]),
            left_out=spoilt(grid, sweep, arm),
            tps=[float(value) for value in np.exp(rows[arm].mean(axis=0))] if len(rows[arm]) else [],
            law=_law(law, fits=arm in believed) if law is not None else None,
            claims=family,
            **compared(arm),
        )
        for arm, law in laws.items()
    ]


def _fits(grid: Grid, law: Scalability) -> bool:
    return law.fits if grid.plan.spending is not None else law.fitted_by_p8


def _law(law: Scalability, *, fits: bool) -> Law:
    intervals = {
        "single": law.single,
        "serial": law.serial,
        "mutual": law.mutual,
        "peak_clients": law.peak,
        "highest": law.highest,
    }
    return Law(
        **{name: bounds(interval) for name, interval in intervals.items()},
        tps=[bounds(band) for band in law.bands],
        misfit=law.misfit,
        noise=law.noise,
        fits=fits,
    )


def _gains(sweep: Sweep, ours: Curves, theirs: Curves) -> dict[int, float]:
    """Returns the log-ratio of the peak throughputs of the two arms, by block."""
    known = {block: (_peak(sweep, ours[block]), _peak(sweep, theirs[block])) for block in ours if block in theirs}
    return {block: arm - base for block, (arm, base) in known.items() if arm is not None and base is not None}


@lru_cache(maxsize=4096)
def _peak(sweep: Sweep, curve: tuple[float, ...]) -> float | None:
    """Returns the natural logarithm of the largest throughput that the law fitted to a block has within the tested
    numbers of clients."""
    law = fit(sweep.numbers, np.asarray(curve))
    return math.log(law.highest(sweep.numbers[0], sweep.numbers[-1])) if law is not None else None
