"""Draws the layouts of servers that are built from source: one layout for each arm in each block. A layout is one order
of the object files with which the server's program was linked, so that its code has other addresses in memory.

Within a block, an arm has the same layout at all load points, since the block is the unit of the verdict's statistics.
A layout is used a second time only after all others were used, so that blocks are independent as long as there are
unused layouts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.design import Design

_STREAM = 3
"""The spawn key of the random numbers by which layouts are drawn. The keys 0, 1 and 2 belong to the order of trials, to
storage and to deployments."""


def blocks_for_all(design: Design) -> int | None:
    """Returns the largest number of blocks for which no layout has to be used twice; None if no arm has layouts.

    Up to this number each block has layouts that no other block has. A difference that the verdict finds is then a
    difference between the sources, and not between the layouts that were drawn. More blocks make the result more
    precise only with regard to the layouts that exist.
    """
    return min((count // arms for count, arms in design.arms_by_layouts.items()), default=None)


def layouts_for(design: Design, blocks: int) -> int:
    """Returns how many layouts an arm must have so that each of `blocks` blocks can have layouts of its own. At least
    one arm must have layouts."""
    return blocks * max(design.arms_by_layouts.values())


def draw_layouts(design: Design, trials: Sequence[PlannedTrial], seed: int) -> list[PlannedTrial]:
    """Draws the layouts (orders in which a server's program is linked), and returns the planned trials with the number
    of their layout.

    Arms that are sessions of one server have the layout of this server. Arms with the same number of layouts get
    different layouts in a block. For any two of them, the opposite assignment is equally likely. Therefore, if two arms
    do not differ, the log-ratio of a block is positive or negative with equal probability.
    """
    counts = design.layouts
    if not counts:
        return list(trials)
    servers = [tuple(counts)] if design.shares_server else [(arm,) for arm in counts]
    by_count: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for server in servers:
        by_count[counts[server[0]]].append(server)
    blocks = 1 + max(trial.block for trial in trials)
    drawn: list[dict[str, int]] = [{} for _ in range(blocks)]
    for count in sorted(by_count):
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_STREAM, count))))
        for block, layouts in zip(drawn, _draws(count, by_count[count], generator), strict=False):
            block.update(layouts)
    return [trial.model_copy(update={"layout": drawn[trial.block].get(trial.arm)}) for trial in trials]


def _draws(count: int, servers: Sequence[tuple[str, ...]], generator: np.random.Generator) -> Iterator[dict[str, int]]:
    """Yields for each block the layouts, counted from 1, of the servers that have `count` layouts, by arm."""
    ahead: list[int] = []
    while True:
        if len(ahead) < len(servers):
            ahead = list(generator.permutation(count))
        order = generator.permutation(len(servers))
        taken = [ahead[turn % len(ahead)] for turn in range(len(servers))]
        ahead = ahead[len(servers) :]
        yield {arm: 1 + int(taken[turn]) for turn, server in zip(order, servers, strict=True) for arm in server}
