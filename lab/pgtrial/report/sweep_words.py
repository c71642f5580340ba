"""Describes in words how the throughput depends on the number of clients (by the universal scalability law that was
fitted to it) and on the size of the data (with its cliffs, the sizes above which it falls). The short verdict,
verdict.json and tables contain these texts."""

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
    clients`. The load points of a sweep differ only in the number of clients or only in the size of the data."""
    point = points[of_arm.load_points[0]]
    if isinstance(of_arm, Scaling):
        return point.load
    return f"{point.workload}, {plural(point.clients, 'client')}"


def by_sweep(curves: Sequence[_Curve]) -> dict[tuple[int, ...], list[_Curve]]:
    """Returns the curves of the arms, grouped by sweep. A sweep is a group of load points that differ only in the
    number of clients or only in the size of the data, and the key has the indexes of these load points."""
    sweeps: dict[tuple[int, ...], list[_Curve]] = {}
    for curve in curves:
        sweeps.setdefault(tuple(curve.load_points), []).append(curve)
    return sweeps


def number_text(value: float) -> str:
    """Returns a number of clients or a scale as text, such as `44`, or `3.2` if it is below ten."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def between_text(bounds: Bounds) -> str:
    """Returns the range of a number of clients or of a scale as text, such as `43 to 46`, or `43 or more` and `up to
    46` if one bound is unknown."""
    low, high = (number_text(end) if end is not None else None for end in (bounds.low, bounds.high))
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    return f"up to {high}" if high is not None else "not known"


def peak_position(of_arm: Scaling) -> str | None:
    """Returns as text at which number of clients an arm has its largest throughput, such as `44 clients (43 to 46)`,
    `beyond the tested 64 clients` or `none seen up to 64 clients`. Returns None if the scalability law does not fit the
    arm's measurements, since the number follows from the law."""
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
    """Returns the comparison of the largest throughputs over the number of clients as text, such as `11,200 tps at 44
    clients (43 to 46) against 9,800 tps at ..., +14% (+12 to +16%), better`. The text is empty if the study does not
    compare them."""
    texts, sweeps, unit = [], by_sweep(result.scaling), rate_unit(result.load_points)
    for same in sweeps.values():
        curves = {other.arm: other for other in same}
        of_arm, baseline = curves[arm], curves[result.baseline]
        if of_arm.difference is None or of_arm.verdict == "withheld":
            continue
        pair = " against ".join(_peak(of_one, unit) for of_one in (of_arm, baseline))
        value = f"{signed(of_arm.difference.value)} ({bounds_text(of_arm.difference)})"
        prefix = f"{sweep_label(result.load_points, of_arm)}: " if len(sweeps) > 1 else ""
        texts.append(f"{prefix}{pair}, {value}, {of_arm.verdict}")
    return "; ".join(texts)


def _peak(of_arm: Scaling, unit: str) -> str:
    highest = of_arm.law.highest.value if of_arm.law is not None else None
    tps = f"{highest:,.0f} {unit}" if highest is not None else "not known"
    at = peak_position(of_arm) or ""
    return f"{tps} at {at}" if at[:1].isdigit() else f"{tps} (the peak is {at})"


def cliff_text(cliff: Cliff) -> str:
    """Returns the position and the depth of a cliff, a size of the data above which the throughput falls, as text:
    `scale 48 (40 to 80), -71% within a doubling` of the size."""
    at = number_text(cliff.scale.value) if cliff.scale.value is not None else "not known"
    return f"scale {at} ({between_text(cliff.scale)}), {percent(cliff.change)} within a doubling"


def reads_text(cliff: Cliff) -> str:
    """Returns which counters of reads, such as device reads, begin to rise at the size of the data at which the
    throughput falls. The text is a sentence without its full stop."""
    if cliff.reads is None:
        return "reads are not known"
    if not cliff.reads:
        return "a fall without reads: look for CPU, TLB or locks"
    return f"{' and '.join(cliff.reads)} begin to rise there"


def noise_of_means(of_arm: Scaling, law: Law) -> float:
    """Returns how far the mean throughputs over all blocks may lie from the fitted scalability law by noise alone. It
    is a standard deviation of the logarithm of the throughput."""
    return law.noise / math.sqrt(of_arm.blocks)


def sweep_remarks(result: StudyResult) -> Iterator[str]:
    """Yields the warnings that a reader of the curves must know: blocks that are left out because of failed trials,
    scalability laws that do not fit the measurements, and cliffs, which are sizes of the data above which the
    throughput falls."""
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
    """Returns a sentence that proposes further sizes of the data to measure. They narrow down the cliffs, the sizes
    above which the throughput falls. Returns None if there is nothing to narrow down."""
    curves = [curve for curve in result.cliffs if curve.between]
    if not curves:
        return None
    scales = sorted({scale for curve in curves for scale in (*curve.scales, *curve.between)})
    arms = " and ".join(dict.fromkeys(curve.arm for curve in curves))
    return f"a study with scale = {scales} narrows the cliff of {arms}"
