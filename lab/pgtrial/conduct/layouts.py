"""Layouts of servers that are built from source: each block draws one for each arm.

The block is what the verdict counts, so all its load points have the same layout of an arm. A layout comes again only
when all others had their turn: blocks stay independent for as long as there are layouts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.design import Design

_STREAM = 3
"""Spawn key of the stream of random numbers: 0 is the order's, 1 the places', 2 the deployments'."""


def blocks_for_all(design: Design) -> int | None:
    """Returns the number of blocks after which a layout is used a second time; None if no arm has layouts.

    Up to that number each block has layouts that no other block has. A difference that the verdict finds is then one of
    the sources, and not one of the layouts that were drawn. Further blocks make the result more precise only for the
    layouts at hand.
    """
    return min((count // arms for count, arms in design.arms_by_layouts.items()), default=None)


def layouts_for(design: Design, blocks: int) -> int:
    """Returns how many layouts an arm must have for each of `blocks` blocks to have layouts of its own. At least one
    arm must have layouts."""
    return blocks * max(design.arms_by_layouts.values())


def draw_layouts(design: Design, trials: Sequence[PlannedTrial], seed: int) -> list[PlannedTrial]:
    """Returns the planned trials with their layouts.

    Arms that are sessions of one server have its layout. Arms with the same number of layouts get different ones in a
    block. Any two are as likely to have theirs the other way round: the sign of a block's log-ratio stays a fair coin.
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
    """Yields for each block the layouts, counted from 1, of those servers that have `count` layouts."""
    ahead: list[int] = []
    while True:
        if len(ahead) < len(servers):
            ahead = list(generator.permutation(count))
        order = generator.permutation(len(servers))
        taken = [ahead[turn % len(ahead)] for turn in range(len(servers))]
        ahead = ahead[len(servers) :]
        yield {arm: 1 + int(taken[turn]) for turn, server in zip(order, servers, strict=True) for arm in server}
