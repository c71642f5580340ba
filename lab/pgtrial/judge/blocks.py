"""The blocks of a table of numbers, and by which rule the arms followed each other in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import factorial

from pgtrial.judge.judgement import Pattern
from pgtrial.judge.numbers import Numbers
from pgtrial.model.errors import StudyError
from pgtrial.model.units import grouped, plural

MOST_BLOCKS = 1000
"""The number of blocks up to which they are judged; the rule keeps the means of all pairs of blocks in memory."""


@dataclass(frozen=True)
class Block:
    """The values of the runs that belong together."""

    name: str
    values: dict[str, list[float]]
    """The values of each arm; the arms are in the order of their first runs."""

    @property
    def order(self) -> tuple[str, ...]:
        """Returns the arms in the order of their first runs."""
        return tuple(self.values)


def blocks_of(numbers: Numbers) -> list[Block]:
    """Returns the blocks in the order of their first runs: those of the column `block`, else as many consecutive runs
    as there are arms.

    Raises StudyError if a block does not have as many values of each arm.
    """
    arms = numbers.names
    if numbers.blocks is None:
        names: Sequence[str] = [str(place // len(arms) + 1) for place in range(len(numbers.arms))]
    else:
        names = numbers.blocks
    of_blocks = grouped(zip(names, range(len(names)), strict=True))
    return [_block(numbers, name, places, arms) for name, places in of_blocks.items()]


def _block(numbers: Numbers, name: str, places: Sequence[int], arms: Sequence[str]) -> Block:
    counts = Counter(numbers.arms[place] for place in places)
    if len({counts[arm] for arm in arms}) > 1:
        first, last = (extreme(numbers.lines[place] for place in places) for extreme in (min, max))
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        found = ", ".join(f"{counts[arm]} of {arm}" for arm in arms)
        if numbers.blocks is None:
            cure = (
                f"without a column block each {len(arms)} runs that follow each other are a block, with one of each "
                "arm; add the column, or leave --order drawn out if there were no blocks"
            )
        else:
            cure = (
                "a block takes as many of each arm; add what is missing, or give the blocks of these runs other names"
            )
        raise StudyError(f"{numbers.source}, {lines}: block {name} has {plural(len(places), 'value')}, {found}; {cure}")
    return Block(name, grouped((numbers.arms[place], numbers.values[place]) for place in places))


def consecutive_blocks(numbers: Numbers) -> list[Block] | None:
    """Returns the blocks of the column `block`, or of consecutive runs; None if consecutive runs are no blocks.

    Raises StudyError if a block of the column does not have as many values of each arm.
    """
    if numbers.blocks is not None:
        return blocks_of(numbers)
    number = len(numbers.names)
    runs = [set(numbers.arms[start : start + number]) for start in range(0, len(numbers.arms), number)]
    return blocks_of(numbers) if all(len(arms) == number for arms in runs) else None


def pattern_of(numbers: Numbers, blocks: Sequence[Block] | None) -> Pattern:
    """Returns the rule that the arms follow in the order of the runs."""
    if len(numbers.names) == 1:
        return "one arm"
    if len(list(groupby(numbers.arms))) == len(numbers.names):
        return "one after the other"
    orders = [block.order for block in blocks or ()]
    if len(orders) < 2:
        return "no rule"
    if len(set(orders)) == 1:
        return "in turn"
    if all(later == earlier[::-1] for earlier, later in pairwise(orders)):
        return "back and forth"
    return "no rule"


def chance_of(pattern: Pattern, arms: int, blocks: int) -> float:
    """Returns the probability with which drawn orders follow such a rule: it fixes all blocks but the first."""
    return 1.0 if pattern == "no rule" else float(factorial(arms)) ** (1 - blocks)
