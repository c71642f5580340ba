"""Draws at random, for each trial, the place of an arm's data (a device, a directory or a kept copy of the data), if
arms share several places and use them alternately. The draws have a stream of random numbers of their own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.servers import Made, MadeBySsh, MadeHere, Server
from pgtrial.model.study.storage import Storage

_STREAM = 1
"""The spawn key of the random stream. The order of the trials is drawn from another stream, so that it is the same
whether or not arms share places for their data."""


@dataclass(frozen=True)
class SharedStorage:
    """Arms that share several places for their data and use them alternately: the places that their storage lists, or
    kept copies of the data, of which there is one for each arm."""

    arms: tuple[str, ...]
    names: tuple[str, ...]
    """The names of the places; empty for kept copies of the data."""

    @property
    def count(self) -> int:
        """Returns the number of places."""
        return len(self.names) or len(self.arms)


def shared_storage_of(servers: Mapping[str, Server]) -> list[SharedStorage]:
    """Returns the groups of arms that share places for their data, in the order of the arms. A list of places makes a
    group even if only one arm has the list."""
    groups: dict[tuple[Hashable, tuple[str, ...]], list[str]] = defaultdict(list)
    for arm, server in servers.items():
        if isinstance(server, Made) and (common := _common(server)) is not None:
            groups[common].append(arm)
    return [SharedStorage(tuple(arms), names) for (_, names), arms in groups.items() if names or len(arms) > 1]


def draw_storage(shared: Sequence[SharedStorage], trials: Sequence[PlannedTrial], seed: int) -> list[PlannedTrial]:
    """Returns the planned trials with the places of their data. At each load point of each block, the places are a new
    random permutation.

    Arms that share places get different ones as long as there are enough places, and use them alternately otherwise.
    For any two of these arms, a draw is as likely as the same draw with the places of the two arms exchanged, so that
    the sign of a block's log-ratio stays a fair coin.
    """
    if not shared:
        return list(trials)
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_STREAM,))))
    return [
        trial.model_copy(update={"place": drawn.get(trial.arm)})
        for _, together in itertools.groupby(trials, key=lambda trial: (trial.block, trial.load_point))
        for drawn in [dict(_draw(shared, generator))]
        for trial in together
    ]


def _draw(shared: Sequence[SharedStorage], generator: np.random.Generator) -> Iterator[tuple[str, int]]:
    for group in shared:
        numbers = generator.permutation(group.count)
        for turn, arm in enumerate(generator.permutation(len(group.arms))):
            yield group.arms[int(arm)], int(numbers[turn % group.count])


def _common(server: Made) -> tuple[Hashable, tuple[str, ...]] | None:
    """Returns a key that is equal for all servers whose arms share the same places for their data, and the names of
    these places. The key is made of the places that the server's storage lists, or of everything on which the kept copy
    of the data depends. Returns None if the arm shares no places.

    VACUUM resets a kept copy between trials. Arms whose copies depend on the same properties can use each other's
    copies.
    """
    host = (server.ssh, server.data) if isinstance(server, MadeBySsh) else ("", "")
    match server:
        case Made(storage=Storage(on=names)) if len(names) > 1:
            return host[0], tuple(names)
        case Made(reset="vacuum", postgres=postgres, initdb=initdb):
            own = server.data_files.sha256 if isinstance(server, MadeHere) and server.data_files is not None else ""
            return (*host, own, postgres, *initdb), ()
    return None
