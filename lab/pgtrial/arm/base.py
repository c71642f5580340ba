"""What the lab asks of an arm, whatever its kind, and the making of a study's arms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pgtrial.arm.connect import Target
from pgtrial.arm.workspace import Workspace
from pgtrial.discover import load_modules
from pgtrial.errors import StudyError
from pgtrial.study.spec import SetUp, StudySpec

LAB_CONNECTIONS = 4
"""Connections that the lab itself may hold beside the clients, for observing."""


@dataclass(frozen=True)
class Needs:
    """What a study asks of every arm: its largest number of clients, its scales, and the shape of the tables."""

    clients: int
    scales: list[int]
    fillfactor: int = 100
    foreign_keys: bool = False

    @classmethod
    def of(cls, spec: StudySpec) -> Needs:
        """The needs of a study."""
        load = spec.load
        return cls(max(load.clients), sorted(set(load.scale)), load.fillfactor, load.foreign_keys)


class Arm(Protocol):
    """One set-up under comparison, to be served for one trial at a time."""

    name: str
    setup: SetUp
    kind: str
    data_directory: Path | None
    """Of the server being served, where the lab can look at it; None between trials and for servers elsewhere."""
    host_seen: dict[str, dict[str, int]]
    """Counters of the host around the last trial, where the arm asks for something of it."""

    def check(self, needs: Needs) -> None:
        """Find out, before the first trial, whether the arm can serve the study. Raises StudyError or ArmError."""
        ...

    def prepare(self, scale: int, on_progress: Callable[[str], None]) -> None:
        """See to it that the data of this scale can be served at once. Raises StudyError or ArmError."""
        ...

    def serve(self, scale: int, log: Path, timings: dict[str, float]) -> AbstractContextManager[Target]:
        """A server in the state that every trial starts from; on exit it is stopped or put back. Scale 0: no tables.

        `log` receives the server's log, `timings` the seconds of `restore`, `start` and `stop`. Raises ArmError, and
        TrialError when only this trial cannot have what the arm asks of the host.
        """
        ...

    def close(self) -> None:
        """Let go of everything that outlives a trial."""
        ...


ArmMaker = Callable[[str, SetUp, Needs, Workspace], Arm]
Maker = TypeVar("Maker", bound=ArmMaker)
_kinds: list[tuple[Callable[[SetUp], bool], ArmMaker]] = []


def arm_kind(serves: Callable[[SetUp], bool]) -> Callable[[Maker], Maker]:
    """Register a kind of arm: `serves` says which resolved set-ups it is for."""

    def register(maker: Maker) -> Maker:
        _kinds.append((serves, maker))
        return maker

    return register


def make_arms(spec: StudySpec, workspace: Workspace) -> dict[str, Arm]:
    """The study's arms by name, in its order; nothing is started yet. Raises StudyError."""
    load_modules("pgtrial.arm")
    needs = Needs.of(spec)
    return {name: _maker(name, spec.resolved(name))(name, spec.resolved(name), needs, workspace) for name in spec.arms}


def _maker(name: str, setup: SetUp) -> ArmMaker:
    for serves, maker in _kinds:
        if serves(setup):
            return maker
    raise StudyError(f"arms.{name}: no kind of arm serves this set-up; give postgres or dsn")


@contextmanager
def timed(timings: dict[str, float], phase: str) -> Iterator[None]:
    """Put the seconds of a phase into `timings`, also when it fails."""
    start = time.monotonic()
    try:
        yield
    finally:
        timings[phase] = time.monotonic() - start


def check_clients(arm: str, needs: Needs, max_connections: int, reserved: int) -> None:
    """Raise StudyError if the clients, the lab and the reserved connections exceed max_connections."""
    wanted = needs.clients + LAB_CONNECTIONS + reserved
    if wanted > max_connections:
        raise StudyError(
            f"arms.{arm}: {needs.clients} clients need max_connections of at least {wanted} "
            f"({LAB_CONNECTIONS} for pgtrial, {reserved} reserved), and the server has {max_connections}; "
            f"set max_connections = {wanted} in the settings, or ask for fewer clients"
        )
