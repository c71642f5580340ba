"""Describes scalability laws over numbers of clients, and cliffs over sizes of the data, in words: for the short
verdict, for verdict.json, and for tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pgtrial.model.records.load_point import LoadPoint, rate_unit
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.sweeps import Bounds, Cliff, Law, Scaling, SizeCurve
from pgtrial.model.units import percent, plural
from pgtrial.report.words import bounds_text, signed

_Curve = TypeVar("_Curve", Scaling, SizeCurve)


def sweep_label(points: Sequence[LoadPoint], of_arm: Scaling | SizeCurve) -> str:
    """Returns what the load points of a sweep have in common, such as `tpcb-like, scale 10` or `select-only, 8
    clients`."""
    point = points[of_arm.load_points[0]]
    if isinstance(of_arm, Scaling):
        return point.load
    return f"{point.workload}, {plural(point.clients, 'client')}"


def by_sweep(curves: Sequence[_Curve]) -> dict[tuple[int, ...], list[_Curve]]:
    """Returns the curves of the arms, grouped by the load points of their sweep."""
    sweeps: dict[tuple[int, ...], list[_Curve]] = {}
    for curve in curves:
        sweeps.setdefault(tuple(curve.load_points), []).append(curve)
    return sweeps


def number_text(value: float) -> str:
    """Returns a number of clients or a scale as text, such as `44`, or `3.2` if it is below ten."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def between_text(bounds: Bounds) -> str:
    """Returns text such as `43 to 46`, `43 or more`, `up to 46`."""
    low, high = (number_text(end) if end is not None else None for end in (bounds.low, bounds.high))
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    return f"up to {high}" if high is not None else "not known"


def peak_place(of_arm: Scaling) -> str | None:
    """Returns the position of a peak as text, such as `44 clients (43 to 46)`, `beyond the tested 64 clients` or `none
    seen up to 64 clients`. Returns None if the law does not fit."""
    law = of_arm.law
    if law is None or not law.fits:
        return None
    at, fewest, most = law.peak_clients.value, of_arm.clients[0], of_arm.clients[-1]
    if at is None:
        return f"none seen up to {most} clients"
    if at > most:
        return f"beyond the tested {most} clients"
    if at < fewest:
        return f"below the tested {plural(fewest, 'client')}"
    high = law.peak_clients.high
    known = law.peak_clients.model_copy(update={"high": None if high is not None and high > most else high})
    return f"{number_text(at)} clients ({between_text(known)})"


def peak_text(result: StudyResult, arm: str) -> str:
    """Returns text such as `11,200 tps at 44 clients (43 to 46) against 9,800 tps at ..., +14% (+12 to +16%), better`.
    The text is empty if there are no peaks to compare."""
    texts, sweeps, unit = [], by_sweep(result.scaling), rate_unit(result.load_points)
    for same in sweeps.values():
        curves = {other.arm: other for other in same}
        of_arm, baseline = curves[arm], curves[result.baseline]
        if of_arm.difference is None or of_arm.verdict == "withheld":
            continue
        pair = " against ".join(_peak(of_one, unit) for of_one in (of_arm, baseline))
        value = f"{signed(of_arm.difference.value)} ({bounds_text(of_arm.difference)})"
        place = f"{sweep_label(result.load_points, of_arm)}: " if len(sweeps) > 1 else ""
        texts.append(f"{place}{pair}, {value}, {of_arm.verdict}")
    return "; ".join(texts)


def _peak(of_arm: Scaling, unit: str) -> str:
    highest = of_arm.law.highest.value if of_arm.law is not None else None
    tps = f"{highest:,.0f} {unit}" if highest is not None else "not known"
    place = peak_place(of_arm) or ""
    return f"{tps} at {place}" if place[:1].isdigit() else f"{tps} (the peak is {place})"


def cliff_text(cliff: Cliff) -> str:
    """Returns text such as `scale 48 (40 to 80), -71% within a doubling`."""
    place = number_text(cliff.scale.value) if cliff.scale.value is not None else "not known"
    return f"scale {place} ({between_text(cliff.scale)}), {percent(cliff.change)} within a doubling"


def reads_text(cliff: Cliff) -> str:
    """Returns which counters of reads begin to rise at a cliff, as a sentence without its full stop."""
    if cliff.reads is None:
        return "reads are not known"
    if not cliff.reads:
        return "a fall without reads: look for CPU, TLB or locks"
    return f"{' and '.join(cliff.reads)} begin to rise there"


def noise_of_means(of_arm: Scaling, law: Law) -> float:
    """Returns how far the means over the blocks lie from the law because of noise alone, as a standard deviation of the
    logarithm of the throughput."""
    return law.noise / math.sqrt(of_arm.blocks)


def sweep_remarks(result: StudyResult) -> Iterator[str]:
    """Yields the warnings that a reader of the curves must know: left-out blocks, laws that do not fit, and cliffs."""
    curves: list[Scaling | SizeCurve] = [*result.scaling, *result.cliffs]
    for curve in curves:
        if curve.left_out:
            yield (
                f"the curve of {curve.arm} at {sweep_label(result.load_points, curve)} leaves out "
                f"{plural(curve.left_out, 'block')} with failed trials, which the verdict counts"
            )
    for of_arm in result.scaling:
        if of_arm.law is not None and not of_arm.law.fits:
            misses, noise = percent(of_arm.law.misfit), percent(noise_of_means(of_arm, of_arm.law))
            yield (
                f"the scalability law does not fit {of_arm.arm} at {sweep_label(result.load_points, of_arm)}: it "
                f"misses by {misses}, and noise alone would explain {noise}; read each number of clients by itself"
            )
    for of_sizes in result.cliffs:
        for cliff in of_sizes.cliffs:
            yield (
                f"the throughput of {of_sizes.arm} falls off a cliff at {sweep_label(result.load_points, of_sizes)}: "
                f"{cliff_text(cliff)}; {reads_text(cliff)}"
            )


def next_sizes(result: StudyResult) -> str | None:
    """Returns a sentence about further sizes that would narrow down the cliffs; None if there are none."""
    curves = [curve for curve in result.cliffs if curve.between]
    if not curves:
        return None
    scales = sorted({scale for curve in curves for scale in (*curve.scales, *curve.between)})
    arms = " and ".join(dict.fromkeys(curve.arm for curve in curves))
    return f"a study with scale = {scales} narrows the cliff of {arms}"
