"""Layouts of servers that are built from source: each block draws one for each arm.

The block is what the verdict counts, so all its load points have the same layout of an arm. A layout comes again only
when all others had their turn: blocks stay independent for as long as there are layouts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.servers import Made
from pgtrial.model.study.spec import StudySpec

_STREAM = 3
"""Spawn key of the stream of random numbers: 0 is the order's, 1 the places', 2 the deployments'."""


def layouts_of(spec: StudySpec) -> dict[str, int]:
    """Returns, for each arm whose server is built in several memory layouts, how many layouts it has."""
    servers = {arm: spec.resolved(arm) for arm in spec.arms}
    return {arm: server.layouts for arm, server in servers.items() if isinstance(server, Made) and server.layouts}


def blocks_for_all(spec: StudySpec) -> int | None:
    """Returns the number of blocks after which a layout is used a second time; None if no arm has layouts.

    Up to that number each block has layouts that no other block has. A difference that the verdict finds is then one of
    the sources, and not one of the layouts that were drawn. Further blocks make the result more precise only for the
    layouts at hand.
    """
    return min((count // arms for count, arms in _arms_by_count(spec).items()), default=None)


def layouts_for(spec: StudySpec, blocks: int) -> int:
    """Returns how many layouts an arm must have for each of `blocks` blocks to have layouts of its own. At least one
    arm must have layouts."""
    return blocks * max(_arms_by_count(spec).values())


def _arms_by_count(spec: StudySpec) -> Counter[int]:
    """Returns how many arms draw from one list of layouts, by the number of layouts in it."""
    return Counter(layouts_of(spec).values())


def draw_layouts(spec: StudySpec, trials: Sequence[PlannedTrial], seed: int, *, one_server: bool) -> list[PlannedTrial]:
    """Returns the planned trials with their layouts.

    If `one_server` is true, all arms are sessions of one server and have its layout. Arms with the same number of
    layouts get different ones in a block. Any two are as likely to have theirs the other way round: the sign of a
    block's log-ratio stays a fair coin.
    """
    counts = layouts_of(spec)
    if not counts:
        return list(trials)
    servers = [tuple(counts)] if one_server else [(arm,) for arm in counts]
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
