"""Compares a study that was run again (a rerun) with the first study, by their intervals.

A rerun is a test of the first verdict. It agrees with *better* or *worse* only if it comes to the same verdict by
itself. It disagrees if it comes to the opposite verdict, if the two intervals are further apart than the margin, or if
it does not find *better* or *worse* again and the intervals exclude that both runs measured the same difference. A
rerun with few blocks has so wide an interval that it cannot exclude this; `blocks_to_disagree` computes how many blocks
it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Claim, Estimate, Word
from pgtrial.model.records.facts import Facts
from pgtrial.model.units import as_written
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.words import in_regime, signed
from pgtrial.statistics.p8 import Interval, ratio_limits
from pgtrial.statistics.precision import blocks_for_half_width
from pgtrial.statistics.recovery import difference
from pgtrial.verdict.family import primary_sharing
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import measured_spread
from pgtrial.verdict.series import as_difference

Agreement = Literal["agrees", "disagrees", "cannot say"]

STATUSES: Mapping[Agreement, int] = {"agrees": 0, "disagrees": 1, "cannot say": 2}
"""The exit status of `pgtrial rerun` for each agreement."""

_MACHINE = ("cpu.model", "cpu.logical", "memory.total_mb", "os.kernel", "storage.filesystem", "server.version")
"""The facts that the comparison shows if they differ between the first study and the rerun."""


class Pair(Record):
    """A comparison of an arm with its baseline, with the results of the first study and of the rerun."""

    arm: str
    baseline: str
    regime: str | None = Field(
        description="The part of each trial that the comparison is about, such as before or after a lasting change of "
        "speed; None if the comparison is about whole trials."
    )
    then_verdict: Word
    now_verdict: Word
    then: Estimate | None
    now: Estimate | None
    difference: Estimate | None = Field(
        description="How far the results of the two studies lie apart: the ratio of the arm to the baseline in the "
        "rerun, divided by the same ratio in the first study, minus 1. Its interval follows from the intervals of "
        "both studies; None if one of them is missing."
    )
    word: Agreement
    why: str

    @property
    def arms(self) -> str:
        """The names of both arms as `head / base`. If the comparison is only about the part of the trials before or
        after a lasting change of speed (a regime), the name of this part follows."""
        return f"{self.arm} / {self.baseline}{f', {self.regime}' if self.regime else ''}"

    @property
    def sentence(self) -> str:
        """The agreement as a sentence, such as `head / base: agrees, since the verdict is better again, and the
        intervals fit each other`."""
        return f"{self.arms}: {self.word}, since {self.why}"


class FactOfBoth(Record):
    """A fact of an arm, such as the processor or the version of the server, that differs between the first study
    (`then`) and the rerun (`now`)."""

    arm: str
    key: str
    then: Any
    now: Any


class Rerun(Record):
    """The result that `pgtrial rerun --json` prints."""

    bundle: str
    study: str = Field(description="The directory of the new study.")
    agreement: Agreement = Field(
        description="`disagrees` if the two studies disagree on any comparison; otherwise `cannot say` if this is open "
        "for any comparison; otherwise `agrees`."
    )
    margin: float
    pairs: list[Pair]
    facts: list[FactOfBoth]


def rerun_of(then: StudyData, now: StudyData, bundle: str, study: str) -> Rerun:
    """Returns the comparison of two runs of the same study, by their primary claims: the comparisons of each arm with
    the baseline that decide the verdict."""
    pairs = list(_pairs(then, now))
    words: set[Agreement] = {pair.word for pair in pairs}
    agreement: Agreement = "disagrees" if "disagrees" in words else "cannot say" if "cannot say" in words else "agrees"
    return Rerun(
        bundle=bundle,
        study=study,
        agreement=agreement,
        margin=now.plan.margin,
        pairs=pairs,
        facts=list(_facts(then.facts, now.facts)),
    )


def table(rerun: Rerun) -> Table[Pair]:
    """Returns a table with a row for each comparison, which shows the results of both runs."""
    return Table(
        "",
        rerun.pairs,
        [
            Column("arms", lambda pair: pair.arms),
            number("then", lambda pair: _with_interval(pair.then)),
            number("now", lambda pair: _with_interval(pair.now)),
            number("now / then", lambda pair: _with_interval(pair.difference)),
            Column("", lambda pair: pair.word),
        ],
    )


def _with_interval(estimate: Estimate | None) -> str | None:
    return f"{signed(estimate.value)} ({estimate.text()})" if estimate is not None else None


def _pairs(then: StudyData, now: StudyData) -> Iterator[Pair]:
    for earlier in then.result.primary:
        later = next((claim for claim in now.result.primary if claim.arm == earlier.arm), None)
        if later is None:
            continue
        parts = {part.regime: part for part in later.read}
        for part in earlier.read:
            pair = _pair(part, parts.get(part.regime), now.plan.margin)
            yield _with_failures(pair, then, now)


def _with_failures(pair: Pair, then: StudyData, now: StudyData) -> Pair:
    """Returns the pair with its agreement corrected for failures. If the arm fails a larger share of its transactions
    than the baseline in only one of the two runs, the two runs disagree, whatever the speeds say."""
    words = {
        any(claim.arm == pair.arm and claim.verdict == "worse" for claim in run.result.failure_claims)
        for run in (then, now)
    }
    if len(words) == 1:
        return pair
    why = f"{pair.arm} fails a larger share of its transactions than {pair.baseline} in one of the runs alone"
    return pair.model_copy(update={"word": "disagrees", "why": why})


def _pair(then: Claim, now: Claim | None, margin: float) -> Pair:
    gap = None
    if now is None:
        word, why = _unsure("the trials of the two runs change their regime in different ways")
    else:
        intervals = [_interval(then), _interval(now)]
        if intervals[0] is None or intervals[1] is None:
            missing = "the first run" if intervals[0] is None else "this run"
            word, why = _unsure(f"{missing} has no interval")
        else:
            gap = difference(intervals[1], intervals[0])
            word, why = _agreement(then.verdict, now.verdict, gap, margin)
    return Pair(
        arm=then.arm,
        baseline=then.baseline,
        regime=in_regime(then).removeprefix(", ") or None,
        then_verdict=then.verdict,
        now_verdict=now.verdict if now is not None else "undecided",
        then=then.difference,
        now=now.difference if now is not None else None,
        difference=as_difference(gap) if gap is not None else None,
        word=word,
        why=why,
    )


def _unsure(why: str) -> tuple[Agreement, str]:
    return "cannot say", why


_DIFFER = ("better", "worse")
_OPPOSITE = {("better", "worse"), ("worse", "better")}


def _agreement(then: Word, now: Word, gap: Interval, margin: float) -> tuple[Agreement, str]:
    """Returns whether two estimates agree, and the reason. `gap` is the difference of the two log-ratios of the arm to
    the baseline with its interval."""
    low, high = ratio_limits(margin)
    fit = gap.low <= 0 <= gap.high
    if (apart := _apart(then, now, gap, margin)) is not None:
        return "disagrees", apart
    repeated = now == then or then not in _DIFFER
    if repeated and low < gap.low and gap.high < high:
        return "agrees", f"the estimates differ by less than the margin of {as_written(margin)}"
    if then == now and then in (*_DIFFER, "equivalent") and fit:
        return "agrees", f"the verdict is {now} again, and the intervals fit each other"
    if then != now:
        return _unsure(f"the verdict was {then} and is {now}, and the intervals exclude neither")
    return _unsure("the intervals are too wide" if fit else "they differ, maybe within the margin")


def _apart(then: Word, now: Word, gap: Interval, margin: float) -> str | None:
    """Returns the reason why two runs disagree; None if they do not disagree."""
    low, high = ratio_limits(margin)
    if (then, now) in _OPPOSITE:
        return f"the verdict was {then} and is {now}"
    if gap.low > high or gap.high < low:
        return f"the intervals are further apart than the margin of {as_written(margin)}"
    if then in _DIFFER and now != then and not gap.low <= 0 <= gap.high:
        return f"the verdict was {then} and is {now}, and the intervals exclude the same difference"
    return None


def blocks_to_disagree(then: StudyData) -> int | None:
    """Returns how many blocks a rerun needs so that it could contradict every `better` and `worse` of the first run.

    The number is computed for the case that the arms do not really differ, in which the rerun estimates a difference of
    about zero. The rerun then contradicts the first run if their two estimates differ by more than the uncertainty of
    both, so its interval must be narrow enough. Returns None if no verdict of the first run says that the arms differ,
    if its noise is not known, or if the rerun would need 1,000 blocks or more.
    """
    decided = [claim for whole in then.result.primary for claim in whole.read if claim.verdict in _DIFFER]
    known = [interval for claim in decided if (interval := _interval(claim)) is not None]
    measured = measured_spread(Grid(then.plan, then.trials))
    if not known or measured is None:
        return None
    half = min(_room(interval) for interval in known)
    return blocks_for_half_width(half, primary_sharing(then.plan), measured[0])


def _room(interval: Interval) -> float:
    """Returns the largest half-width of the rerun's interval with which the rerun can still contradict the first run,
    whose estimate and interval are given, if the rerun estimates a difference of zero.

    The squares of the two half-widths add up to the square of the half-width of the difference. At the limit, the
    half-width of the difference equals the first estimate.
    """
    estimate = abs(interval.estimate)
    nearest = max(0.0, min(abs(interval.low), abs(interval.high)))
    return math.sqrt(nearest * (2 * estimate - nearest))


def _interval(claim: Claim) -> Interval | None:
    """Returns the log-ratio of an arm to the baseline with its interval. Returns None if the interval is not bounded,
    or if the verdict is withheld because the comparison was not fair."""
    estimate = claim.difference
    if claim.verdict == "withheld" or estimate is None or estimate.low is None or estimate.high is None:
        return None
    return Interval(*(math.log1p(share) for share in (estimate.low, estimate.value, estimate.high)))


def _facts(then: Mapping[str, Facts], now: Mapping[str, Facts]) -> Iterator[FactOfBoth]:
    """Yields the properties of the machine and server (facts) that differ between the two runs. Each of them is
    reported only for the first arm in which it differs."""
    reported: set[str] = set()
    for arm in (arm for arm in then if arm in now):
        for key in _MACHINE:
            group, name = key.split(".")
            pair = [facts[arm].facts.get(group, {}).get(name) for facts in (then, now)]
            if pair[0] != pair[1] and key not in reported:
                reported.add(key)
                yield FactOfBoth(arm=arm, key=key, then=pair[0], now=pair[1])
