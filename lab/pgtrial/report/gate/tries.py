"""Counts how often gates compared the same set-ups. If somebody runs a gate again until it passes, more than 5% of the
passes are wrong, so that the report mentions the number of the try."""

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
    """The gates of the same set-ups, from the first one to the present one. A gate decides whether a change passes;
    each of its runs is a try."""

    earlier: Sequence[EarlierGate] = ()
    """The known gates before the present one, the oldest first."""
    stands: str | None = None
    """The time in ISO 8601 at which an earlier study began, if this gate only repeats the verdict of that study; None
    if this gate has measured."""
    attempt: int = 1
    """The number of the attempt of this job in continuous integration, as the runner reports it, counted from 1.
    Somebody who runs a job again gets a second attempt."""

    @property
    def number(self) -> int:
        """Returns the number of the present try, counted from 1."""
        return max(len(self.earlier) + 1, 1 if self.stands else self.attempt)

    @property
    def sentence(self) -> str | None:
        """Returns a sentence about earlier tries, which a reader must know to judge the outcome. Returns None for a
        first try."""
        sentences = []
        if self.stands is not None:
            sentences.append(
                f"This is the result of {_day(self.stands)} on the same set-ups, which stands: nothing was measured "
                "again. `pgtrial gate --new` measures again."
            )
        if self.number > 1:
            sentences.append(f"This is try {self.number} of a gate on the same set-ups.")
            if self.earlier:
                sentences.append(f"The earlier tries ended with: {self._before()}.")
            if unknown := self.number - 1 - len(self.earlier):
                sentences.append(f"{plural(unknown, 'earlier attempt')} of this job left no result here.")
            sentences.append(
                "Each try that measures can be wrong in up to 5 of 100 cases, so repeated tries are wrong more often."
            )
        return " ".join(sentences) or None

    def _before(self) -> str:
        words = ("stopped" if gate.stopped else WORDS[gate.status] for gate in self.earlier)
        runs = [(word, len(list(same))) for word, same in groupby(words)]
        return ", ".join(f"{word} ({number} times)" if number > 1 else word for word, number in runs)


def _day(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"
