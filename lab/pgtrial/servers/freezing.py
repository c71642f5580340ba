"""Servers that take turns: outside its slices a server's background processes are frozen, so that they work in its own
time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pgtrial.machines.interrupt import held_off
from pgtrial.machines.journal import HostJournal
from pgtrial.machines.machine import HostError
from pgtrial.machines.server import FrozenServer, Processes

_LOOK_S = 0.01
"""How often a server is looked at whose transactions overrun its slice."""


@dataclass
class Freezer:
    """A context manager around the load, with a thread of its own.

    When a slice begins, the processes of its server go on, and the others' are stopped, of each as soon as no session
    of it is in a transaction. Sessions and the postmaster are never stopped. On the way out all processes go on,
    whatever happened; after a crash of the lab the journal's undo has them go on.
    """

    servers: Sequence[Path | None]
    """The data directories of the participants, in their order; None: of one that pgtrial has not made here."""
    slices: Slices
    start_at: float
    """When the load starts, a time of time.monotonic()."""
    duration_s: float
    """All slices lie in it."""
    changes: HostJournal
    """The journal of this machine."""
    notes: list[str] = field(default_factory=list, init=False)
    """Why servers are not frozen, in one sentence, if they are not."""
    _undo: ExitStack = field(default_factory=ExitStack, init=False)
    _over: threading.Event = field(default_factory=threading.Event, init=False)

    def __enter__(self) -> Freezer:
        with ExitStack() as stack:
            try:
                servers = [self._recorded(data, stack) for data in self.servers]
            except HostError as error:
                # all or none: one that is not frozen disturbs the others in their slices, and they do not disturb it
                self.notes.append(f"servers are not frozen outside their slices: {error}")
                return self
            thread = threading.Thread(target=self._run, args=(servers,), name="freezer", daemon=True)
            stack.callback(self._end, thread)
            with held_off():
                thread.start()
            self._undo = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._undo.close()

    def _recorded(self, data: Path | None, stack: ExitStack) -> Processes:
        """The processes of a server, after it is written down that they may be frozen. Raises HostError."""
        if data is None:
            raise HostError("one of them is not made by pgtrial on this machine")
        change = FrozenServer(data=data)
        stack.enter_context(self.changes.made(change))
        return change.processes()

    def _end(self, thread: threading.Thread) -> None:
        self._over.set()
        if thread.is_alive():
            thread.join()

    def _run(self, servers: Sequence[Processes]) -> None:
        try:
            self._take_turns(servers)
        finally:
            for server in servers:
                server.thaw()

    def _take_turns(self, servers: Sequence[Processes]) -> None:
        for number, turn in enumerate(self.slices.turns()):
            begin = self.start_at + number * self.slices.length_s
            end = begin + self.slices.length_s
            if number * self.slices.length_s >= self.duration_s or self._wait(begin):
                return
            servers[turn].thaw()
            awake = [server for server in servers if server is not servers[turn]]
            while awake and (now := time.monotonic()) < end:
                if self._wait(min(now + _LOOK_S, end)):
                    return
                awake = [server for server in awake if not server.freeze()]

    def _wait(self, until: float) -> bool:
        """Whether the load is over."""
        return self._over.wait(max(0.0, until - time.monotonic()))


_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Slices:
    """How `of` participants, numbered from 0, share the time from the start of the load on."""

    length_s: float
    of: int
    seed: int
    """Of the order: `--slice-seed`."""

    def order(self, number: int) -> list[int]:
        """The participants of a round, from 0, in the order of their slices."""
        return sorted(range(self.of), key=lambda participant: _splitmix64(self.seed, number * self.of + participant))

    def turns(self) -> Iterator[int]:
        """Whose slice it is, slice after slice, without an end."""
        for number in count():
            yield from self.order(number)


def _splitmix64(seed: int, number: int) -> int:
    """The output with this number, from 0. Source: Vigna, https://prng.di.unimi.it/splitmix64.c."""
    value = (seed + (number + 1) * _STEP) & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31
