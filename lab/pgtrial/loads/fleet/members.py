"""Represents the machines of a fleet in the lab: calls their agents, names them, notices their loss, and measures their
clocks and network round trips."""

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
"""The time limit, in seconds, for a call of an agent that needs no long work. A machine that takes longer counts as
lost."""


class MachineLost(Exception):
    """The error for a machine of the fleet that is not reachable any more, or whose agent is not. The message says why
    in a few words."""


Caller = Callable[..., Future[Any]]
"""A function that calls a method of a machine's agent by its name. It returns a future for the answer, which may fail
with MachineLost."""


@dataclass(frozen=True)
class Offset:
    """The difference between a machine's clock and the lab's (positive if the machine's is ahead), its possible error,
    and the round trip in which it was measured; all in seconds."""

    offset_s: float
    error_s: float
    round_trip_s: float


@dataclass(eq=False)
class Member:
    """One machine of a fleet. `bundle` is its number among the machines that the study asked for, counted from 0."""

    bundle: int
    address: str
    host: str
    kind: str
    identity: str
    kernel: str
    cpus: int
    call: Caller = field(repr=False)
    name: str = ""
    lost: str | None = None
    """The reason why the machine counts as lost; None as long as it counts as reachable."""
    offset: Offset = field(init=False, repr=False)
    """The difference between the machine's clock and the lab's, as it was measured last."""

    @property
    def with_lab(self) -> bool:
        """True if the engine of this machine uses CPUs of the lab's machine: this machine of the fleet is the lab's
        machine itself, or a container on it."""
        return self.identity == agent.identity() or bool(self.kernel and self.kernel == agent.kernel())

    def ask(self, method: str, *arguments: Any, patience_s: float = ANSWER_S) -> Any:
        """Calls a method of the machine's agent, and returns the answer. If none comes in time, marks the machine as
        lost and raises MachineLost."""
        return self.answer(self.call(method, *arguments), patience_s)

    def answer(self, coming: Future[Any], patience_s: float = ANSWER_S) -> Any:
        """Waits for the answer to an earlier call, and returns it. If none comes in time, marks the machine as lost and
        raises MachineLost."""
        try:
            return coming.result(patience_s)
        except Late:
            self.lost = f"it has not answered for {patience_s:.0f}s"
        except MachineLost as lost:
            self.lost = str(lost)
        raise MachineLost(self.lost)


def answers(members: Iterable[Member], method: str, *arguments: Any, patience_s: float = ANSWER_S) -> dict[Member, Any]:
    """Calls a method of the agents on all these machines at the same time, and returns their answers. Machines that do
    not answer are marked as lost, and are left out of the result."""
    coming = {member: member.call(method, *arguments) for member in members}
    known = {}
    for member, answer in coming.items():
        with suppress(MachineLost):
            known[member] = member.answer(answer, patience_s)
    return known


def name_all(members: Sequence[Member]) -> None:
    """Names each machine by its host. Machines with the same host get numbers: `node-1`, `node-2`."""
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
"""The largest number of round trips for measuring a clock. pgtrial makes more round trips than usual, up to this
number, if the result is not precise enough because a machine was busy."""

MOST_OFFSET_S = 3600.0
"""The difference, in seconds, between a machine's clock and the lab's, beyond which one of the clocks has certainly
never been set."""


def measure(
    ask: Callable[[], tuple[float, float]], now: Callable[[], float] = time.time, enough_s: float = math.inf
) -> Offset:
    """Measures the difference between two clocks as NTP does (RFC 5905, section 8), and returns the result of the round
    trip with the least delay.

    `ask` returns the times, in Unix seconds by the other machine's clock, at which the question arrived there and the
    answer left. The possible error is half of the delay, in case all of the delay was in one direction. More round
    trips than usual are made while the error exceeds `enough_s`.
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
    """Raises ArmError if a machine's clock was never set, since readers would be misled by the times in its records."""
    if abs(offset.offset_s) > MOST_OFFSET_S:
        way = "ahead of" if offset.offset_s > 0 else "behind"
        raise ArmError(
            f"the clock of the machine {machine} is {format_duration(abs(offset.offset_s))} {way} the lab's; set that "
            "clock, preferably by NTP (chronyd, systemd-timesyncd)"
        )


_CLOCK_SHARE = 0.1
"""The largest tolerated difference between the times at which the same slice begins on two machines, as a share of the
length of the slice."""


def known_well_s(slice_s: float) -> float:
    """Returns the largest error of a clock, in seconds, with which a slice of this length still begins on any two
    machines at nearly the same time (see _CLOCK_SHARE)."""
    return _CLOCK_SHARE * slice_s / 2


def doubt_of_clocks(offsets: Mapping[str, Offset], slice_s: float) -> str | None:
    """Returns why slices of this length may begin too far apart on two machines, which are named; None if they do not.
    `offsets` has, by machine, the difference between its clock and the lab's."""
    least_known = sorted(offsets, key=lambda machine: offsets[machine].error_s)[-2:]
    error_s = sum(offsets[machine].error_s for machine in least_known)
    if len(least_known) < 2 or error_s <= _CLOCK_SHARE * slice_s:
        return None
    doubtful = [machine for machine in offsets if machine in least_known]
    return (
        f"the difference of the clocks of the machines {' and '.join(doubtful)} is known to "
        f"{three_digits(1000 * error_s)} ms only, which is more than {_CLOCK_SHARE:.0%} of a slice of "
        f"{format_duration(slice_s)}"
    )


_TIMES = 7
_PATIENCE_S = 1.0


def round_trips_us(members: Sequence[Member], target: Target) -> list[float | None]:
    """Returns, for each machine, the median of several network round trips to the server, in microseconds. All machines
    measure at the same time.

    The value of a machine is None if it connects by a Unix socket, which has no network round trip, or if its
    measurement failed.
    """
    if target.host.startswith(("/", "@")):
        return [None] * len(members)
    # if a machine is lost here, the load will report it
    asked = (target.host, target.port, _TIMES, _PATIENCE_S)
    times = answers(members, "round_trips", *asked, patience_s=_TIMES * _PATIENCE_S + ANSWER_S)
    return [round(median(trips), 1) if (trips := times.get(member)) else None for member in members]
