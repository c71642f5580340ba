"""Distributes the blocks of a study over the deployments of its arms. A deployment is one of several given servers of
one product.

A block runs on one deployment of each arm, and the deployments of all arms have the same number. If the verdict counts
pairs of deployments (verdict/units.py), every pair gets the same number of blocks. All blocks of the pairs that a look
(an interim analysis) uses run before this look. They run in rounds, so that the blocks of one pair are not all at the
same time of day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

import numpy as np

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.design import Design
from pgtrial.model.units import format_duration
from pgtrial.statistics import p9, rules
from pgtrial.verdict.units import FEWEST, FEWEST_BY_SIGNS

MOST_BLOCKS_EACH = 8
"""The largest number of blocks that are planned for a pair of deployments. More blocks would hardly make the result
more precise, since the remaining uncertainty comes from the differences between pairs."""

_STREAM = 2
"""The spawn key of the random numbers by which blocks are distributed over deployments. The keys 0 and 1 belong to the
order of trials and to shared storage."""


def are_units(design: Design) -> bool:
    """True if the units of the verdict's statistics are pairs of deployments and not blocks."""
    return design.deployments >= FEWEST


def planned_blocks(design: Design, block_s: float) -> int:
    """Returns the number of blocks for a study whose units are deployments. Every deployment gets the same number of
    blocks.

    Raises StudyError if the number of blocks that the study gives is not a multiple of the number of deployments, or if
    the budget is too short for one block on each deployment.
    """
    number, verdict = design.deployments, design.verdict
    asked = verdict.blocks
    if asked is not None:
        if asked % number:
            nearest = max(1, round(asked / number)) * number
            raise StudyError(
                f"{marks.key('verdict', 'blocks', asked)} cannot be divided equally among {number} deployments; "
                f"{marks.set_key('verdict', 'blocks', nearest)}"
            )
        return asked
    on_each = min(MOST_BLOCKS_EACH, int(verdict.budget / block_s) // number)
    if on_each < 1:
        raise StudyError(
            f"a block on each of {number} deployments takes about {format_duration(number * block_s)}, more than the "
            f"budget; raise {marks.key('verdict', 'budget')}, shorten the trials, or use fewer load points"
        )
    return on_each * number


def planned_looks(deployments: int, blocks: int) -> list[int]:
    """Returns the planned looks, each as the number of blocks after which the verdict is read. With enough deployments
    these are the looks of the rule P9; otherwise there is one look at the end."""
    if deployments < FEWEST_BY_SIGNS:
        return [blocks]
    return [look * (blocks // deployments) for look in p9.looks(deployments)]


def fewest_of(deployments: int, blocks: int, claims: int) -> int:
    """Returns the smallest number of blocks after which a comparison of arms with deployments can be decided. `claims`
    is the number of claims that share the error."""
    if deployments < FEWEST_BY_SIGNS:
        return blocks
    return rules.planned(deployments, 1).fewest(claims) * (blocks // deployments)


def share_out(trials: Sequence[PlannedTrial], deployments: int, seed: int) -> list[PlannedTrial]:
    """Assigns the planned trials to deployments. Returns the trials with the number of their deployment in the field
    `place`. All trials of a block have the same number."""
    if deployments == 1:
        return list(trials)
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_STREAM,))))
    blocks = 1 + max(trial.block for trial in trials)
    drawn = list(_draw(deployments, blocks, generator))
    return [trial.model_copy(update={"place": drawn[trial.block]}) for trial in trials]


def _draw(deployments: int, blocks: int, generator: np.random.Generator) -> Iterator[int]:
    """Yields the number of the deployment for each block. The deployments are divided into groups at random, and a look
    (an interim analysis) comes after the blocks of each group. Within a group the blocks run in rounds: in each round
    every deployment of the group has one block, in random order."""
    order = generator.permutation(deployments)
    if deployments < FEWEST:
        rounds, groups = -(-blocks // deployments), [order]
    else:
        rounds = blocks // deployments
        ends = p9.looks(deployments) if deployments >= FEWEST_BY_SIGNS else [deployments]
        groups = [order[start:end] for start, end in pairwise([0, *ends])]
    drawn = (int(number) for group in groups for _ in range(rounds) for number in generator.permutation(group))
    yield from islice(drawn, blocks)
