"""`python -m bench.relabelled`: how often the rule P9 errs in studies of recorded blocks which get new signs by a coin.

A study is a run of consecutive blocks of a self-test in bench/campaign.json, whose log-ratios get fresh random signs:
so its arms do not differ, and its noise is that of real machines in the order in which it came. Each kind of trouble is
put in before the signs are drawn. `power` compares the blocks that P9 and P8 take for the same chance of a verdict.
The figures are in bench/relabelled.json, which is committed. Not part of `make bench`: it takes an hour.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.campaign import Recorded
from bench.figures import read_figures, write_figures
from pgtrial.model.records import Record
from pgtrial.statistics import p8, p9
from pgtrial.statistics.p8 import WORST
from pgtrial.statistics.shamos import spread

Floats = npt.NDArray[np.float64]

_FIGURES = Path(__file__).with_name("relabelled.json")
_CAMPAIGN = Path(__file__).with_name("campaign.json")
_PLANS = (18, 27, 40)
_STUDIES = 20_000
_STUDIES_OF_POWER = 1_000
_GOES_ON = {"ends for good": 0, "goes on once": 1, "goes on twice": 2, "goes on for ever": 8}
"""The number of looks by which a study goes on after the end of its plan, by the name of the case."""
_SHORTENED = {10: 0.9, 12: 0.8, 18: 0.7, 27: 0.55, 40: 0.4}
"""The plans by P8: the number of blocks, and the planted difference in spreads of a block's log-ratio."""


class Errors(Record):
    """The number of studies of equal arms that had a verdict, which is wrong."""

    trouble: str
    plan: int
    """The number of blocks of the plan."""
    ends: str
    claims: int
    studies: int
    wrong: int


class Power(Record):
    """The share of studies with a planted difference that had a verdict."""

    rule: str
    plan: int
    effect: float
    """The planted difference, in spreads of a block's log-ratio."""
    studies: int
    found: int


Draw = Callable[[np.random.Generator, int], Floats]
"""A function that returns a block's log-ratios before the signs are drawn, for a number of blocks; NaN: a block without
a value.
"""


Claims = Callable[[np.random.Generator, int], Floats]
"""The log-ratios of each claim and block of a study of equal arms."""


def main() -> None:
    """Take what is asked for into the figures, and print the tables."""
    parser = argparse.ArgumentParser(prog="bench.relabelled", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=["error", "power"], default=["error", "power"])
    parser.add_argument("--studies", type=int, help=f"of each kind; default: {_STUDIES:,} and {_STUDIES_OF_POWER:,}")
    given = parser.parse_args()
    found: list[Record] = []
    if "error" in given.kinds:
        found = [_error(kind, given.studies or _STUDIES) for kind in _kinds()]
        write_figures(_FIGURES, found)
    if "power" in given.kinds:
        found = [*_power(given.studies or _STUDIES_OF_POWER)]
        write_figures(_FIGURES.with_stem("relabelled-power"), found)


def _recorded() -> list[Floats]:
    """Returns the log-ratios of each arm of a self-test without its planted difference, in the order in which they
    came.
    """
    kept = [one for one in read_figures(_CAMPAIGN, Recorded) if len(one.log_ratios) >= max(_PLANS)]
    return [np.array(one.log_ratios) - math.log1p(-one.slower_by) for one in kept]


def _as_recorded(series: Sequence[Floats], rng: np.random.Generator, blocks: int) -> Floats:
    """Returns a run of consecutive blocks; if the study is longer than any self-test, several runs one after the
    other.
    """
    parts: list[Floats] = []
    while (missing := blocks - sum(map(len, parts))) > 0:
        one = series[int(rng.integers(len(series)))]
        begin = int(rng.integers(max(1, len(one) - missing + 1)))
        parts.append(one[begin : begin + missing])
    return np.concatenate(parts)


def _troubles(plain: Draw) -> dict[str, Draw]:
    def drifting(rng: np.random.Generator, blocks: int) -> Floats:
        values = plain(rng, blocks)
        return values + np.cumsum(rng.standard_normal(blocks)) * spread(values.tolist()) / 2

    def heavy(rng: np.random.Generator, blocks: int) -> Floats:
        return plain(rng, blocks) * rng.standard_cauchy(blocks)

    def tied(rng: np.random.Generator, blocks: int) -> Floats:
        return np.round(plain(rng, blocks), 2)

    def failing(rng: np.random.Generator, blocks: int) -> Floats:
        return np.where(rng.random(blocks) < 0.1, WORST, plain(rng, blocks))

    def missing(rng: np.random.Generator, blocks: int) -> Floats:
        return np.where(rng.random(blocks) < 0.1, np.nan, plain(rng, blocks))

    return {
        "as recorded": plain,
        "drift": drifting,
        "heavy tails": heavy,
        "ties": tied,
        "a tenth of the trials fail": failing,
        "a tenth of the pairs is missing": missing,
    }


@dataclass(frozen=True)
class Kind:
    """A kind of studies of equal arms whose blocks are relabelled."""

    trouble: str
    draw: Claims
    plan: int
    ends: str = "ends for good"
    claims: int = 1


def _kinds() -> Iterator[Kind]:
    plain: Draw = partial(_as_recorded, _recorded())
    for plan in _PLANS:
        for trouble, draw in _troubles(plain).items():
            yield Kind(trouble, partial(_signed, draw), plan)
        for ends in [*_GOES_ON][1:]:
            yield Kind("as recorded", partial(_signed, plain), plan, ends)
        yield Kind("as recorded", _several_arms(), plan, claims=5)


def _signed(draw: Draw, rng: np.random.Generator, blocks: int) -> Floats:
    return (draw(rng, blocks) * rng.choice([-1.0, 1.0], blocks))[np.newaxis]


def _several_arms() -> Claims:
    """Returns a function that draws studies of the six arms of one self-test. The arms get random names in each block;
    the first is the baseline.
    """
    together = [one for one in read_figures(_CAMPAIGN, Recorded) if one.created == "2026-11-24T02:22:24+00:00"]
    noise = np.array([np.array(one.log_ratios) - math.log1p(-one.slower_by) for one in together])
    speeds = np.vstack([np.zeros(noise.shape[1]), noise])

    def of(rng: np.random.Generator, blocks: int) -> Floats:
        begin = int(rng.integers(speeds.shape[1] - blocks + 1))
        named = rng.permuted(speeds[:, begin : begin + blocks], axis=0)
        ratios: Floats = named[1:] - named[0]
        return ratios

    return of


def _error(kind: Kind, studies: int) -> Errors:
    rng = np.random.default_rng([kind.plan, kind.claims, len(kind.trouble), len(kind.ends)])
    kept = p9.KEPT if _GOES_ON[kind.ends] else 0.0
    spending = p9.Spending(kind.plan, kept)
    planned = p9.looks(kind.plan, kind.claims, kept)
    last = len(planned) + _GOES_ON[kind.ends]
    looks = [look.blocks for _, look in zip(range(last), p9.plan_and_beyond(planned, spending), strict=False)]
    wrong = 0
    for _ in range(studies):
        values = kind.draw(rng, looks[-1])
        wrong += any(_is_decided(of_claim, looks, spending, kind.claims) for of_claim in values)
    found = Errors(
        trouble=kind.trouble, plan=kind.plan, ends=kind.ends, claims=kind.claims, studies=studies, wrong=wrong
    )
    print(found.model_dump_json(), flush=True)
    return found


def _is_decided(values: Floats, looks: Sequence[int], spending: p9.Spending, claims: int) -> bool:
    """True if a look finds that one arm is better."""
    steps = [_step(values[:units], spending.until(units) / claims) for units in looks]
    seen = [step for step in steps if step.units]
    return any(any(p9.rejections(seen, 0.0, side)) for side in (1, -1))


def _step(values: Floats, spent: float) -> p9.Step:
    units = np.flatnonzero(~np.isnan(values))
    return p9.Step(tuple(units.tolist()), tuple(values[units].round(p9.DECIMALS).tolist()), spent)


def _power(studies: int) -> Iterator[Power]:
    """Yields the power of P8, and that of P9 in ever longer plans until it is as large."""
    series = [one / spread(one.tolist()) for one in _recorded()]
    for plan, effect in _SHORTENED.items():
        by_p8 = _found("P8", plan, effect, series, studies)
        yield by_p8
        for shorter in range(p9.FIRST_LOOK, plan + 1):
            by_p9 = _found("P9", shorter, effect, series, studies)
            if by_p9.found >= by_p8.found or shorter == plan:
                yield by_p9
                ratio = shorter / plan
                print(f"as P8 in {plan} blocks ({by_p8.found / studies:.0%}): P9 in {shorter}, {ratio:.2f}", flush=True)
                break


def _found(rule: str, plan: int, effect: float, series: Sequence[Floats], studies: int) -> Power:
    rng = np.random.default_rng([plan, len(series)])
    found = 0
    for _ in range(studies):
        values = _as_recorded(series, rng, plan)
        values = values * rng.choice([-1.0, 1.0], plan) + effect
        found += _by_p8(values) if rule == "P8" else _is_decided(values, p9.looks(plan), p9.Spending(plan), 1)
    return Power(rule=rule, plan=plan, effect=effect, studies=studies, found=found)


def _by_p8(values: Floats) -> bool:
    looks = takewhile(lambda look: look.blocks <= len(values), p8.schedule(p8.looks(len(values))))
    readings = (p8.interval(values[: look.blocks].tolist(), look.alpha) for look in looks)
    return any(reading.low > 0 or reading.high < 0 for reading in readings)


if __name__ == "__main__":
    main()
