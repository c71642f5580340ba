"""Which arm gets which place: what arms can take turns on is drawn for each trial, from a stream of its own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.model.records.study import PlannedTrial
from pgtrial.model.study.spec import SetUp, StudySpec

_STREAM = 1
"""Spawn key of the stream: the order of the trials has the seed itself, and is the same with places and without."""


@dataclass(frozen=True)
class Shared:
    """Arms that take turns on places: those that their storage lists, or kept copies of the data, one for each arm."""

    arms: tuple[str, ...]
    places: tuple[str, ...]
    """Their names; none for kept copies."""

    @property
    def count(self) -> int:
        """How many places there are."""
        return len(self.places) or len(self.arms)


def shared_places(spec: StudySpec) -> list[Shared]:
    """What the study's arms take turns on, in the order of the arms; a list of places also where one arm has it."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    names: dict[Hashable, tuple[str, ...]] = {}
    for arm in spec.arms:
        setup = spec.resolved(arm)
        key = _places_key(setup) or _copies_key(setup)
        if key is not None:
            groups[key].append(arm)
            names[key] = tuple(setup.storage.on) if setup.storage is not None else ()
    return [Shared(tuple(arms), names[key]) for key, arms in groups.items() if names[key] or len(arms) > 1]


def listed_places(spec: StudySpec, *arms: str) -> tuple[str, ...]:
    """The places that all of these arms take turns on by the lists of their storage; none if they do not."""
    return next((group.places for group in shared_places(spec) if set(arms) <= set(group.arms)), ())


def draw_places(spec: StudySpec, trials: Sequence[PlannedTrial], seed: int) -> list[PlannedTrial]:
    """The planned trials with their places: at each load point of each block a fresh random permutation.

    Arms that share places get different ones as long as there are enough, and take turns on them otherwise. Any two
    of them are as likely to have their places the other way round: the sign of a block's log-ratio stays a fair coin.
    """
    shared = shared_places(spec)
    if not shared:
        return list(trials)
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_STREAM,))))
    return [
        trial.model_copy(update={"place": drawn.get(trial.arm)})
        for _, together in itertools.groupby(trials, key=lambda trial: (trial.block, trial.load_point))
        for drawn in [dict(_draw(shared, generator))]
        for trial in together
    ]


def _draw(shared: list[Shared], generator: np.random.Generator) -> Iterator[tuple[str, int]]:
    for group in shared:
        places = generator.permutation(group.count)
        for turn, arm in enumerate(generator.permutation(len(group.arms))):
            yield group.arms[int(arm)], int(places[turn % group.count])


def _places_key(setup: SetUp) -> Hashable | None:
    """The list of places of a storage that names more than one."""
    storage = setup.storage
    return None if storage is None or len(storage.on) == 1 else (setup.ssh, tuple(storage.on))


def _copies_key(setup: SetUp) -> Hashable | None:
    """What arms have in common that can serve each other's kept copy: it is put back by vacuum, and of one kind."""
    if setup.dsn is not None or setup.reset != "vacuum":
        return None
    return ("copies", setup.ssh, setup.data, setup.postgres, *(setup.initdb or []))
