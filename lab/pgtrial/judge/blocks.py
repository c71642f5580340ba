"""Divides the runs of a table into blocks, and finds the rule by which the arms followed each other in them."""

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
"""The largest number of blocks that are judged. The statistical rule keeps the means of all pairs of blocks in
memory."""


@dataclass(frozen=True)
class Block:
    """The values of the runs that belong together, because they ran under the same conditions."""

    name: str
    values: dict[str, list[float]]
    """The values of each arm. The arms are in the order of their first runs."""

    @property
    def order(self) -> tuple[str, ...]:
        """Returns the arms in the order of their first runs in this block."""
        return tuple(self.values)


def blocks_of(numbers: Numbers) -> list[Block]:
    """Returns the blocks in the order of their first runs. The column `block` says which runs belong together. If the
    table has no such column, the runs are divided in their order, with as many runs in each block as there are arms.

    Raises StudyError if a block does not have equally many values of each arm.
    """
    arms = numbers.names
    if numbers.blocks is None:
        names: Sequence[str] = [str(index // len(arms) + 1) for index in range(len(numbers.arms))]
    else:
        names = numbers.blocks
    of_blocks = grouped(zip(names, range(len(names)), strict=True))
    return [_block(numbers, name, indices, arms) for name, indices in of_blocks.items()]


def _block(numbers: Numbers, name: str, indices: Sequence[int], arms: Sequence[str]) -> Block:
    counts = Counter(numbers.arms[index] for index in indices)
    if len({counts[arm] for arm in arms}) > 1:
        first, last = (extreme(numbers.lines[index] for index in indices) for extreme in (min, max))
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        found = ", ".join(f"{counts[arm]} of {arm}" for arm in arms)
        if numbers.blocks is None:
            cure = (
                f"without a column block, each {len(arms)} consecutive runs are a block, which must have one run of "
                "each arm; add the column, or leave --order drawn out if there were no blocks"
            )
        else:
            cure = (
                "a block must have equally many values of each arm; add the missing ones, or give the blocks of these "
                "runs other names"
            )
        raise StudyError(
            f"{numbers.source}, {lines}: block {name} has {plural(len(indices), 'value')}, {found}; {cure}"
        )
    return Block(name, grouped((numbers.arms[index], numbers.values[index]) for index in indices))


def consecutive_blocks(numbers: Numbers) -> list[Block] | None:
    """Returns the blocks of the column `block` or, without this column, the blocks that consecutive runs form; None if
    consecutive runs do not form blocks.

    Raises StudyError if a block of the column does not have equally many values of each arm.
    """
    if numbers.blocks is not None:
        return blocks_of(numbers)
    number = len(numbers.names)
    runs = [set(numbers.arms[start : start + number]) for start in range(0, len(numbers.arms), number)]
    return blocks_of(numbers) if all(len(arms) == number for arms in runs) else None


def scattered_block(numbers: Numbers) -> str | None:
    """Returns the first block whose runs do not follow each other, since a run of another block lies between them; None
    if there is none."""
    began = Counter(name for name, _ in groupby(numbers.blocks or ()))
    return next((name for name, times in began.items() if times > 1), None)


def pattern_of(numbers: Numbers, blocks: Sequence[Block] | None) -> Pattern:
    """Returns the rule that the arms follow in the order of the runs, such as `in turn`; `no rule` if they follow none,
    or if there are fewer than two blocks."""
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
    """Returns the probability with which randomly drawn orders would follow this rule by chance. Given the order of the
    first block, the rule determines the order of all other blocks. It is 1 for `no rule`."""
    return 1.0 if pattern == "no rule" else float(factorial(arms)) ** (1 - blocks)
