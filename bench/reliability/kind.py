"""The parts of a kind of attack: its name, the time that it takes, and the figures that it yields."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.machine import machine

from pgtrial.model.records import Record
from pgtrial.model.units import format_duration

_RESTORED_S = 30.0
"""The time in which a machine must be as before, seconds: tests beside the campaign change it for a while as well."""


class Missing(Exception):
    """Raised if an attack cannot be made here; the message says what it needs."""


class Figure(Record):
    """The result of one attack."""

    kind: str
    what: str
    count: int
    """The number of attacks that were made."""
    seconds: float
    found: str
    """The observations during the attacks, in words."""
    defects: list[str]
    """The promises that were not kept, a sentence each."""


@dataclass(frozen=True)
class Campaign:
    """The settings that all attacks share. `scratch` can be entered by the servers' account, `state` is the lab's state
    root.
    """

    scratch: Path
    state: Path
    kills: int
    fuzz_s: float
    load_s: float
    orders_s: float
    chance: Random
    report: Callable[[str], None]

    def part(self, share: float) -> int:
        """Returns the number of attacks of a kind that makes this share of the campaign's kills."""
        return round(self.kills * share)


@dataclass(frozen=True)
class Kind:
    """An attack: `seconds` estimates how long it takes."""

    name: str
    seconds: Callable[[Campaign], float]
    run: Callable[[Campaign], Iterator[Figure]]
    needs_root: bool = True
    """True if the attack mounts file systems, sets kernel parameters or starts processes of other accounts."""


@dataclass
class Attack:
    """A figure in progress: counts the attacks, collects defects, and reports the progress."""

    campaign: Campaign
    kind: str
    what: str
    planned: int
    count: int = 0
    defects: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _reported_at: float = field(default_factory=time.monotonic)

    def done(self, note: str = "") -> None:
        """Counts one more attack; `note` is printed with it."""
        self.count += 1
        now = time.monotonic()
        if note or now - self._reported_at >= 10 or self.count == self.planned:
            self._reported_at = now
            left = (now - self._began) / self.count * (self.planned - self.count)
            rest = f", about {format_duration(left)} left" if left >= 1 else ""
            what = f": {note}" if note else ""
            self.campaign.report(f"  {self.what}: {self.count} of {self.planned}{rest}{what}")

    def defect(self, sentence: str) -> None:
        """Records a defect: a promise was not kept."""
        self.defects.append(sentence)
        self.campaign.report(f"  DEFECT: {sentence}")

    def figure(self, found: str) -> Figure:
        """Returns the result of the attacks."""
        seconds = round(time.monotonic() - self._began, 1)
        return Figure(
            kind=self.kind, what=self.what, count=self.count, seconds=seconds, found=found, defects=self.defects
        )


@contextmanager
def machine_unchanged(attack: Attack) -> Iterator[None]:
    """Reports a defect if the machine is not as before when the context ends."""
    before = machine(attack.campaign.state)
    yield
    deadline = time.monotonic() + _RESTORED_S
    while (after := machine(attack.campaign.state)) != before and time.monotonic() < deadline:
        time.sleep(1)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            attack.defect(f"{name} was {before.get(name)!r} and is {after.get(name)!r} after {attack.what}")
