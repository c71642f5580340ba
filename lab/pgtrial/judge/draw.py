"""Draws a random order in which the user should make the runs, so that pgtrial can give a verdict on their numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import numbered


@dataclass(frozen=True)
class Drawn:
    """A random order of runs, block by block."""

    arms: list[str]
    """The arms in the order in which the user named them. The first one is the baseline."""
    seed: int
    blocks: list[list[str]]

    def lines(self) -> Iterator[str]:
        """Yields the lines of a table in the drawn order. The user fills in the values while making the runs, and then
        has the table judged."""
        arms = shlex.quote(",".join(self.arms))
        yield f"# pgtrial judge --draw {arms} --blocks {len(self.blocks)} --seed {self.seed}"
        yield "# Run from top to bottom, fill in the values, then: " + (
            f"pgtrial judge FILE --order drawn --baseline {shlex.quote(self.arms[0])}"
        )
        yield "block,arm,value"
        for number, order in enumerate(self.blocks, 1):
            yield from (f"{number},{_field(arm)}," for arm in order)


def draw(arms: Sequence[str], blocks: int, seed: int) -> Drawn:
    """Returns a random order in which each block has each arm once. The random numbers come from NumPy's Philox
    generator, as in a study.

    Raises StudyError if fewer than two arms are named, or if an arm is named twice.
    """
    names = [arm.strip() for arm in arms]
    if len(names) < 2 or not all(names):
        raise StudyError(
            f"--draw {quoted(','.join(arms))} does not name two arms; separate their names by commas, as in --draw "
            "old,new"
        )
    for index, name in enumerate(names):
        if name in names[:index]:
            other = numbered(name, names)
            raise StudyError(
                f"--draw names {quoted(name)} twice; give each arm a name of its own, such as {quoted(other)}"
            )
    generator = np.random.Generator(np.random.Philox(seed))
    return Drawn(names, seed, [[names[index] for index in generator.permutation(len(names))] for _ in range(blocks)])


def can_be_drawn(name: str) -> bool:
    """True if an arm with this name can be passed to `--draw`, which separates names by commas."""
    return "," not in name


def _field(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"' if '"' in name or name.startswith("#") else name
