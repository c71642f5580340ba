"""The verdict in words: one sentence per claim that carries its interval, its blocks, its scope and its failures."""

from __future__ import annotations

from collections.abc import Iterable

from pgtrial.analyse.records import Claim, Estimate, Failures, Steadiness
from pgtrial.store.records import Plan
from pgtrial.study.units import format_duration

_TELLING_MARGIN = 0.5
"""An established margin beyond this share says nothing that a reader could use."""


def percent(share: float, decimals: int | None = None, *, sign: bool = False) -> str:
    """A share for people: `41%`, `4.1%`, `0.25%`; with `sign`, `+4.1%`. Never rounds a difference to none."""
    places = decimals_for([share]) if decimals is None else decimals
    return f"{share * 100:{'+' if sign else ''}.{places}f}%" if share else "0%"


def as_written(share: float) -> str:
    """A share that a person chose, such as the margin: `1%`, `0.5%`."""
    return f"{share * 100:g}%"


def decimals_for(shares: Iterable[float]) -> int:
    """The decimals that percentages read together deserve: as few as show their width, and that they are not zero."""
    values = list(shares)
    width = max(values, default=0.0) - min(values, default=0.0) or max((abs(value) for value in values), default=0.0)
    places = 0 if width >= 0.1 else 1 if width >= 0.005 else 2
    while places < 3 and any(_misread(value, places) for value in values):
        places += 1
    return places


def _misread(share: float, places: int) -> bool:
    rounded = round(share * 100, places)
    return (rounded == 0 and share != 0) or (rounded == -100 and share > -1)


def interval_text(difference: Estimate, *, sign: bool = False) -> str:
    """`35..48%`, `-0.3..1.9%`, or a sentence's worth when nothing is bounded."""
    if difference.low is None or difference.high is None:
        return "not bounded yet"
    places = decimals_for([difference.low, difference.value, difference.high])
    low, high = (f"{bound * 100:{'+' if sign else ''}.{places}f}" for bound in (difference.low, difference.high))
    return f"{_no_minus_zero(low)}..{_no_minus_zero(high)}%"


def _no_minus_zero(text: str) -> str:
    return text.lstrip("-") if float(text) == 0 else text


def where(claim: Claim, plan: Plan) -> str:
    """What a claim speaks of: a load point, or the mean over all."""
    if claim.load_point is not None:
        return plan.load_points[claim.load_point].label
    if len(plan.load_points) == 1:
        return plan.load_points[0].label
    return f"mean over {len(plan.load_points)} load points"


def headline(claim: Claim, plan: Plan) -> str:
    """The verdict without its evidence: `off is 41% faster than on`."""
    arm, baseline, found = claim.arm, claim.baseline, claim.difference
    if claim.verdict == "withheld":
        return f"No verdict on {arm} against {baseline}"
    if claim.verdict == "undecided" or found is None:
        return f"Undecided after {plural(claim.blocks, 'block')}: {arm} against {baseline}"
    if claim.verdict == "equivalent":
        return f"No difference larger than {as_written(plan.margin)} between {arm} and {baseline}"
    places = decimals_for([value for value in (found.low, found.value, found.high) if value is not None])
    speed = "faster" if claim.verdict == "better" else "slower"
    less = f", by less than the margin of {as_written(plan.margin)}," if claim.within_margin else ""
    return f"{arm} is {percent(abs(found.value), places)} {speed}{less} than {baseline}"


def sentence(
    claim: Claim,
    plan: Plan,
    *,
    counts: list[Failures],
    leading: list[str],
    steady: list[Steadiness],
    withheld: list[str],
) -> str:
    """The whole verdict sentence of a primary claim."""
    pair = [entry for entry in counts if entry.arm in (claim.arm, claim.baseline)]
    failed = ", ".join(failures_text(entry) for entry in sorted(pair, key=lambda entry: entry.arm == claim.baseline))
    lead = f"Failures of {failed}. " if {claim.arm, claim.baseline} & set(leading) else ""
    tail = "" if lead else f"; failures {failed}"
    if claim.verdict == "withheld":
        return f"{lead}{headline(claim, plan)}: {' '.join(withheld)}"
    parts = [f"{headline(claim, plan)} ({plan.measure}, {where(claim, plan)})"]
    if claim.difference is not None:
        value = (
            f"{percent(claim.difference.value, sign=True)}, " if claim.verdict in ("equivalent", "undecided") else ""
        )
        parts.append(f"{value}95% sequential interval {interval_text(claim.difference)}")
    parts += [f"{measured_text(claim, plan)}", f"margin {as_written(plan.margin)}", f"scope: {plan.scope}"]
    evidence = ", ".join(parts)
    if claim.verdict == "undecided":
        evidence += f"; {outlook(claim)}"
    mean = f"; mean ratio {percent(claim.mean.value, sign=True)}" if claim.mean else ""
    of_pair = [entry for entry in steady if entry.arm in (claim.arm, claim.baseline)]
    return f"{lead}{evidence}{tail}{mean}; regime: {regime(of_pair, plan)}."


def measured_text(claim: Claim, plan: Plan) -> str:
    """`8 blocks of 2 x 6s`, or with several load points `8 blocks of 2 arms x 6 load points x 6s`."""
    points = len(plan.load_points)
    duration = format_duration(plan.duration_s)
    each = (
        f"{len(plan.arms)} arms x {points} load points x {duration}" if points > 1 else f"{len(plan.arms)} x {duration}"
    )
    return f"{plural(claim.blocks, 'block')} of {each}"


def outlook(claim: Claim) -> str:
    """What an undecided claim needs, and what it has established already."""
    if claim.blocks < claim.fewest_blocks:
        start = f"a verdict on {plural(claim.family, 'claim')} needs at least {claim.fewest_blocks} blocks"
    elif claim.more_blocks is None:
        start = (
            "at the present spread even 300 blocks would not decide; longer trials, less noise or a wider margin help"
        )
    else:
        start = ""
    if claim.more_blocks is not None:
        duration = f" ({_about(claim.more_s)})" if claim.more_s else ""
        more = f"about {claim.more_blocks} more block{'s' if claim.more_blocks != 1 else ''}{duration} would decide"
        start = f"{start}; {more}" if start else more
    if claim.established_margin is not None and claim.established_margin < _TELLING_MARGIN:
        start += f"; with 0 more only a margin of {percent(claim.established_margin)} is established"
    return start


def _about(seconds: float) -> str:
    return format_duration(60 * round(seconds / 60) if seconds >= 600 else seconds)


def failures_text(counts: Failures) -> str:
    """`off: 0`, `off: 12 of 3,400 transactions (0.35%)`, `off: 2 of 8 trials`."""
    parts = []
    if counts.failed_trials:
        parts.append(f"{counts.failed_trials} of {plural(counts.trials, 'trial')}")
    if counts.failed_transactions:
        total = counts.failed_transactions + counts.transactions
        parts.append(f"{counts.failed_transactions:,} of {total:,} transactions ({percent(counts.share)})")
    if counts.aborted_clients:
        parts.append(plural(counts.aborted_clients, "aborted client"))
    return f"{counts.arm}: {' and '.join(parts) or '0'}"


def regime(steady: list[Steadiness], plan: Plan) -> str:
    """Whether the arms had settled, and if not, what the verdict is about."""
    moving = [entry for entry in steady if entry.state in ("rising", "falling")]
    if moving:
        what = " and ".join(f"{entry.arm} {_moves(entry)}" for entry in moving)
        return (
            f"not at steady state ({what}); this speaks of the first {format_duration(plan.duration_s)} after "
            f"a warm-up of {format_duration(plan.warmup_s)}, a longer warm-up is advised"
        )
    if not steady or any(entry.state == "unknown" for entry in steady):
        return "not checked (too few blocks or seconds)" if steady else "not checked"
    return "steady"


def _moves(entry: Steadiness) -> str:
    verb = "rises" if entry.state == "rising" else "falls"
    return f"{verb} {percent(abs(entry.trend or 0.0))} within a trial"


def plural(number: int, noun: str) -> str:
    """`1 block`, `8 blocks`."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
