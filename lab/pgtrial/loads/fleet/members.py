"""The machines of a fleet as the lab sees them: how they are called, named and lost, and how far they are."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from statistics import median
from typing import Any

from pgtrial.loads.fleet import agent
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError
from pgtrial.model.units import format_duration, three_digits

ANSWER_S = 10.0
"""How long an answer that costs no work may take, seconds. A machine that takes longer is lost."""


class MachineLost(Exception):
    """A machine, or the agent on it, is not there any more. The message says why in a few words."""


Caller = Callable[..., Future[Any]]
"""Calls a method of a machine's agent by its name. The future gets the answer later, or MachineLost."""


@dataclass(frozen=True)
class Offset:
    """A machine's clock minus the lab's, the possible error of that, and the round trip that showed it; seconds."""

    offset_s: float
    error_s: float
    round_trip_s: float


@dataclass(eq=False)
class Member:
    """One machine of a fleet. `place` is its number among the places that the study asked for, counted from 0."""

    place: int
    address: str
    host: str
    kind: str
    identity: str
    kernel: str
    cpus: int
    call: Caller = field(repr=False)
    name: str = ""
    lost: str | None = None
    """The reason for which the machine is lost; None as long as it is there."""
    offset: Offset = field(init=False, repr=False)
    """The last measured offset of the machine's clock."""

    @property
    def with_lab(self) -> bool:
        """True if its engine takes CPUs of the lab's machine: the member is that machine, or a container there."""
        return self.identity == agent.identity() or bool(self.kernel and self.kernel == agent.kernel())

    def ask(self, method: str, *arguments: Any, patience_s: float = ANSWER_S) -> Any:
        """Returns the answer of its agent. Raises MachineLost, and then notes that the machine is lost."""
        return self.answer(self.call(method, *arguments), patience_s)

    def answer(self, coming: Future[Any], patience_s: float = ANSWER_S) -> Any:
        """Returns an answer that is under way. Raises MachineLost, and then notes that the machine is lost."""
        try:
            return coming.result(patience_s)
        except Late:
            self.lost = f"it has not answered for {patience_s:.0f}s"
        except MachineLost as lost:
            self.lost = str(lost)
        raise MachineLost(self.lost)


def answers(members: Iterable[Member], method: str, *arguments: Any, patience_s: float = ANSWER_S) -> dict[Member, Any]:
    """Returns the answer of each member's agent. All are asked at once; those that are lost meanwhile are left out."""
    coming = {member: member.call(method, *arguments) for member in members}
    known = {}
    for member, answer in coming.items():
        with suppress(MachineLost):
            known[member] = member.answer(answer, patience_s)
    return known


def name_all(members: Sequence[Member]) -> None:
    """Names each member by its host; those that share a host are numbered: `node-1`, `node-2`."""
    hosts = Counter(member.host for member in members)
    taken = {member.name for member in members}
    for member in members:
        if not member.name:
            plain = member.host.replace(",", "_")
            names = chain([plain] if hosts[member.host] == 1 else [], (f"{plain}-{number}" for number in count(1)))
            member.name = next(name for name in names if name not in taken)
            taken.add(member.name)


ROUND_TRIPS = 8
MOST_ROUND_TRIPS = 32
"""The most round trips that are measured. More than the first ones are measured if these are not precise enough,
because a machine was busy."""

MOST_OFFSET_S = 3600.0
"""The offset beyond which a clock was certainly never set, seconds."""


def measure(
    ask: Callable[[], tuple[float, float]], now: Callable[[], float] = time.time, enough_s: float = math.inf
) -> Offset:
    """Returns the offset by the round trip with the least delay, as NTP has it (RFC 5905, section 8).

    `ask` returns the machine's times of the question's arrival and of the answer's departure, Unix seconds. The error
    is half of the delay: that is the error of the offset if all of the delay was on one of the two ways. More round
    trips than usual are made until the error is at most `enough_s`.
    """
    best = _round_trip(ask, now)
    for made in range(1, MOST_ROUND_TRIPS):
        if made >= ROUND_TRIPS and best.error_s <= enough_s:
            break
        best = min(best, _round_trip(ask, now), key=lambda offset: offset.error_s)
    return best


def _round_trip(ask: Callable[[], tuple[float, float]], now: Callable[[], float]) -> Offset:
    sent = now()
    arrived, answered = ask()
    received = now()
    delay = max(0.0, (received - sent) - (answered - arrived))
    return Offset(((arrived - sent) + (answered - received)) / 2, delay / 2, received - sent)


def check_offset(machine: str, offset: Offset) -> None:
    """Raises ArmError for a clock that was never set, since its times would mislead their readers."""
    if abs(offset.offset_s) > MOST_OFFSET_S:
        way = "ahead of" if offset.offset_s > 0 else "behind"
        raise ArmError(
            f"the clock of the machine {machine} is {format_duration(abs(offset.offset_s))} {way} the lab's; set it, "
            "best by NTP (chronyd, systemd-timesyncd)"
        )


_CLOCK_SHARE = 0.1
"""The share of a slice by which the slices of one load may begin apart on two machines."""


def known_well_s(slice_s: float) -> float:
    """Returns the error of clocks, in seconds, that leaves no doubt about slices of this length on any two machines."""
    return _CLOCK_SHARE * slice_s / 2


def doubt_of_clocks(offsets: Mapping[str, Offset], slice_s: float) -> str | None:
    """Returns why slices of this length may begin too far apart on two machines, by their names; or None."""
    least_known = sorted(offsets, key=lambda machine: offsets[machine].error_s)[-2:]
    error_s = sum(offsets[machine].error_s for machine in least_known)
    if len(least_known) < 2 or error_s <= _CLOCK_SHARE * slice_s:
        return None
    doubtful = [machine for machine in offsets if machine in least_known]
    return (
        f"the difference of the clocks of the machines {' and '.join(doubtful)} is known to "
        f"{three_digits(1000 * error_s)} ms "
        f"only, more than {_CLOCK_SHARE:.0%} of a slice of {format_duration(slice_s)}"
    )


_TIMES = 7
_PATIENCE_S = 1.0


def round_trips_us(members: Sequence[Member], target: Target) -> list[float | None]:
    """Returns the median of several round trips from each machine, all at once, microseconds.

    It is None for a Unix socket, which has no round trip, and if it is not known.
    """
    if target.host.startswith(("/", "@")):
        return [None] * len(members)
    # a machine that is lost will be reported by the load
    asked = (target.host, target.port, _TIMES, _PATIENCE_S)
    times = answers(members, "round_trips", *asked, patience_s=_TIMES * _PATIENCE_S + ANSWER_S)
    return [round(median(trips), 1) if (trips := times.get(member)) else None for member in members]
