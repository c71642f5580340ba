"""The parts of a measure: rounds in random order, figures with their goals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench.programs import OURS, Failed, Program
from pgtrial.loads.target import Target

Result = TypeVar("Result")
Values = dict[str, list[float]]


@dataclass(frozen=True)
class Goal:
    """The goal of a figure. `text` states it for readers; `met` tells from the values of all programs if it was
    reached."""

    text: str
    met: Callable[[Values], bool]


@dataclass(frozen=True)
class Figure:
    """A figure: the values that all programs had in every round. They are shown with `places` decimals, and `command`
    is the command line that repeats the measurement of our program."""

    what: str
    unit: str
    values: Values
    command: str
    places: int = 0
    goal: Goal | None = None


@dataclass
class Bench:
    """Everything that a measure needs. `data_directory` is the server's; `skipped` collects what could not be
    measured, and why."""

    programs: Mapping[str, Program]
    target: Target
    scratch: Path
    rounds: int
    seconds: int
    report: Callable[[str], None]
    data_directory: Path | None = None
    skipped: list[str] = field(default_factory=list)

    def interleave(
        self, what: str, contestants: Mapping[str, Callable[[], Result]], rounds: int | None = None
    ) -> dict[str, list[Result]]:
        """Runs every program once in each round, in random order. A program that fails in the first round is left out,
        with a message.
        """
        results: dict[str, list[Result]] = {name: [] for name in contestants}
        rounds = rounds or self.rounds
        for number in range(rounds):
            for name in random.sample(list(results), len(results)):
                try:
                    results[name].append(contestants[name]())
                except Failed as failure:
                    if number > 0:
                        raise
                    del results[name]
                    self.skip(f"{what}, {name}", failure)
            self.report(f"  {what}: round {number + 1} of {rounds}")
        return results

    def skip(self, what: str, failure: object) -> None:
        """Note that something could not be measured."""
        reason = str(failure).strip().splitlines()[-1]
        self.skipped.append(f"{what}: {reason}")
        self.report(f"  left out: {what}: {reason}")


Measure = Callable[[Bench], Iterator[Figure]]


def at_most(limit: float) -> Goal:
    """Returns the goal that the median of our program is at most a number."""
    return Goal(f"<= {round(limit, 3):g}", lambda values: OURS in values and median(values[OURS]) <= limit)


def at_least(limit: float) -> Goal:
    """Returns the goal that the median of our program is at least a number."""
    return Goal(f">= {round(limit, 3):g}", lambda values: OURS in values and median(values[OURS]) >= limit)


def ratio_to(other: str, low: float | None = None, high: float | None = None) -> Goal:
    """Returns the goal that the median, over the rounds, of our program's value divided by the other program's is at
    least `low` or at most `high`."""

    def met(values: Values) -> bool:
        if other not in values or OURS not in values:
            return False
        found = median(ratios(values, other))
        return (low is None or found >= low) and (high is None or found <= high)

    bound = f">= {round(low, 3):g}" if low is not None else f"<= {round(high, 3):g}"
    return Goal(f"{bound} x {other}", met)


def both(first: Goal, second: Goal) -> Goal:
    """Returns a goal that is met if both of these goals are met."""
    return Goal(f"{first.text}, {second.text}", lambda values: first.met(values) and second.met(values))


def ratios(values: Values, other: str) -> list[float]:
    """Returns our program's value divided by the other program's, for each round."""
    return [mine / theirs for mine, theirs in zip(values[OURS], values[other], strict=True)]
