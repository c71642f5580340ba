"""The outlook of a study: which differences and margins its plan can establish. It is computed before the first trial
from the recorded noise of similar studies on this machine."""

from __future__ import annotations

import math

from pgtrial.conduct.planning.deployments import are_units
from pgtrial.conduct.planning.noise import noise_under_conditions
from pgtrial.conduct.planning.plan import study_estimate
from pgtrial.model import marks
from pgtrial.model.errors import StoreError
from pgtrial.model.records import Record
from pgtrial.model.records.machine import Noise, Precision
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.design import Design
from pgtrial.model.units import as_written, format_duration, percent, plural
from pgtrial.statistics.precision import blocks_for, precision, spread_at
from pgtrial.statistics.rules import Looks
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import measured_spread
from pgtrial.verdict.units import looks_of


class Outlook(Record):
    """The differences and margins that a plan can establish, as far as the noise of this machine is known."""

    precision: Precision | None = None
    noise: Noise | None = None
    blocks_for_margin: int | None = None
    """The number of blocks that are enough to establish the study's margin. It is None if the noise is not known, or if
    the number is larger than a study can have."""
    note: str | None = None
    """The reason why the record of this machine's noise is ignored; None if it is used."""


def outlook(design: Design, plan: Plan) -> Outlook | None:
    """Returns which differences and margins the plan can establish, given the noise of this machine. Returns None if no
    planned look (interim analysis) can decide a comparison, or if the verdict counts pairs of deployments instead of
    blocks."""
    claims, fitted = primary_sharing(plan), _fitted(plan)
    if are_units(design) or precision(_looks(plan), claims, 0.0, fitted) is None:
        return None
    try:
        noise = noise_under_conditions(design, plan.duration_s)
    except StoreError as error:
        return Outlook(note=str(error))
    if noise is None:
        return Outlook()
    spread = spread_at(noise, plan.duration_s)
    reach = precision(_looks(plan), claims, spread, fitted)
    more = blocks_for(plan.margin, claims, spread)
    return Outlook(precision=reach, noise=noise, blocks_for_margin=more)


def precision_so_far(grid: Grid) -> Precision | None:
    """Returns the precision that the plan will reach by its end, computed from the noise of the blocks so far. Returns
    None before the fourth block."""
    measured = measured_spread(grid)
    if measured is None:
        return None
    return precision(_looks(grid.plan), primary_sharing(grid.plan), measured[0], _fitted(grid.plan))


def _fitted(plan: Plan) -> int:
    """Returns the number of factors that a screening study fits to test one of its factors; 0 for other studies."""
    return max(0, len(plan.factors) - 1)


def _looks(plan: Plan) -> Looks:
    """Returns the interim analyses (looks) that come up to the last planned block."""
    return looks_of(plan).within(plan.max_blocks)


def in_words(reach: Precision) -> str:
    """Returns a precision as a phrase such as `finds a difference of 6.1% (80% power) and establishes a margin of
    7.0%`."""
    margin = f"a margin of {percent(reach.margin)}" if reach.margin < 1 else "no margin"
    return f"finds a difference of {percent(reach.difference)} (80% power) and establishes {margin}"


def in_one_line(known: Outlook, plan: Plan) -> str:
    """Returns the outlook as one line of text."""
    if known.noise is None or known.precision is None:
        why = "" if known.note is not None else ": no study like this one ran on this machine"
        return f"not known{why}; the progress shows it from the fourth block on"
    within = f"{plural(plan.max_blocks, 'block')}, {format_duration(study_estimate(plan))}"
    return f"{in_words(known.precision)} within {within}; from {_source(known.noise)}"


def cautions(known: Outlook | None, plan: Plan) -> list[str]:
    """Returns warnings for the user, at most one: the record of the noise is ignored, or the plan is too short for the
    study's margin."""
    if known is None or known.noise is None or known.precision is None or known.precision.margin <= plan.margin:
        return [known.note] if known is not None and known.note is not None else []
    if plan.factors:  # a screening study looks for the factors that matter, and not for a proof that the others do not
        return []
    needed = "more blocks than can be run"
    if known.blocks_for_margin is not None:
        about = float(f"{known.blocks_for_margin:.2g}")
        needed = f"about {about:,.0f} blocks ({format_duration(about * plan.block_estimate_s)})"
    feasible = _rounded_up(known.precision.margin)
    within_reach = marks.key("verdict", "margin", as_written(feasible))
    cure = f"; {within_reach} is within reach" if feasible < 1 else "; longer trials help"
    return [
        f"the {plural(plan.max_blocks, 'planned block')} can find a difference, but are too few to establish that "
        f"there is none beyond the margin of {as_written(plan.margin)}: that would take {needed} if the noise is as in "
        f"{_source(known.noise)}{cure}"
    ]


def _source(noise: Noise) -> str:
    return f"{plural(noise.blocks, 'block')} of study {noise.study} ({noise.created[:10]}) on this machine"


def _rounded_up(share: float) -> float:
    """Returns a share rounded up to two significant digits."""
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return math.ceil(share / step - 1e-9) * step
