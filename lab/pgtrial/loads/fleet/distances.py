"""How far a machine of the fleet is: its clock from the lab's clock, and its network from the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from statistics import median

from pgtrial.loads.fleet.members import ANSWER_S, MachineLost, Member
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError
from pgtrial.model.units import format_duration

ROUND_TRIPS = 8

MOST_OFFSET_S = 3600.0
"""A clock that is further off was never set."""


@dataclass(frozen=True)
class Offset:
    """A machine's clock less the lab's, by how much that may be wrong, and the round trip that told; seconds."""

    offset_s: float
    error_s: float
    round_trip_s: float


def measure(ask: Callable[[], tuple[float, float]], now: Callable[[], float] = time.time) -> Offset:
    """The offset by the round trip with the least delay, as NTP has it (RFC 5905, section 8).

    `ask` gives the machine's times of the question's arrival and of the answer's departure, Unix seconds. The error is
    half the delay: so far the answer can be off if all of the delay was on one of the two ways.
    """
    return min((_round_trip(ask, now) for _ in range(ROUND_TRIPS)), key=lambda offset: offset.error_s)


def _round_trip(ask: Callable[[], tuple[float, float]], now: Callable[[], float]) -> Offset:
    sent = now()
    arrived, answered = ask()
    received = now()
    delay = max(0.0, (received - sent) - (answered - arrived))
    return Offset(((arrived - sent) + (answered - received)) / 2, delay / 2, received - sent)


def check_offset(machine: str, offset: Offset) -> None:
    """Raise ArmError for a clock that was never set: what it says of moments would mislead whoever reads it."""
    if abs(offset.offset_s) > MOST_OFFSET_S:
        way = "ahead of" if offset.offset_s > 0 else "behind"
        raise ArmError(
            f"the clock of the machine {machine} is {format_duration(abs(offset.offset_s))} {way} the lab's; set it, "
            "best by NTP (chronyd, systemd-timesyncd)"
        )


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
