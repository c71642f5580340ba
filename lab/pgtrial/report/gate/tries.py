"""Counts the tries of the same set-ups: a gate that is run again until it passes errs more often than 5%."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from pgtrial.model.records.gate import EarlierGate
from pgtrial.model.units import plural
from pgtrial.report.gate.outcome import WORDS


@dataclass(frozen=True)
class Tries:
    """The gates of the same set-ups up to this one."""

    earlier: Sequence[EarlierGate] = ()
    """The gates before this one that are known, the oldest first."""
    stands: str | None = None
    """The time at which this gate's study began, ISO 8601, if its verdict is repeated and nothing was measured."""
    attempt: int = 1
    """The number of the attempt of its job, as the runner reports it."""

    @property
    def number(self) -> int:
        """Returns which try this is, counted from 1."""
        return max(len(self.earlier) + 1, 1 if self.stands else self.attempt)

    @property
    def sentence(self) -> str | None:
        """Returns a sentence on earlier tries, which a reader has to know beside the outcome; None for a first try."""
        told = []
        if self.stands is not None:
            told.append(
                f"This is the result of {_day(self.stands)} on the same set-ups, which stands: nothing was measured "
                "again (`pgtrial gate --new` does)."
            )
        if self.number > 1:
            before = f", after {self._before()}" if self.earlier else ""
            unknown = self.number - 1 - len(self.earlier)
            more = f"; {plural(unknown, 'attempt')} before left no result here" if unknown else ""
            told.append(f"Try {self.number} of the same set-ups{before}{more}. Each try that measures errs in 5%.")
        return " ".join(told) or None

    def _before(self) -> str:
        words = ("stopped" if gate.stopped else WORDS[gate.status] for gate in self.earlier)
        return ", ".join(f"{len(list(same))} x {word}" for word, same in groupby(words))


def _day(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"
