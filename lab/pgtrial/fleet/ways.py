"""The way from each machine of a fleet to a server."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from statistics import median

from pgtrial.arm.connect import Target
from pgtrial.fleet.members import ANSWER_S, MachineLost, Member

_TIMES = 7
_PATIENCE_S = 1.0


def round_trips_us(members: Sequence[Member], target: Target) -> list[float | None]:
    """The round trip from each machine, all at once and each several times: the median, microseconds.

    None for a Unix socket, which has none, and where it is not known.
    """
    if target.host.startswith(("/", "@")):
        return [None] * len(members)
    coming = [member.call("round_trips", target.host, target.port, _TIMES, _PATIENCE_S) for member in members]
    return [_median(member, answer) for member, answer in zip(members, coming, strict=True)]


def _median(member: Member, answer: Future[list[float]]) -> float | None:
    try:
        times = member.answer(answer, _TIMES * _PATIENCE_S + ANSWER_S)
    except MachineLost:  # which the load will tell
        return None
    return round(median(times), 1) if times else None
