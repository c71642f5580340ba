"""The turns of client programs: slices of batches, in rounds of random order, until all phases are over.

Only a program with a token runs, so that no two run at the same time. A slice ends with the batch that comes closest to
its length, and a phase ends with a round, so that all programs have the same number of slices.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Protocol

Phase = tuple[str, float]
"""The name of a phase, and its length in seconds of each program's own time."""


class Participant(Protocol):
    """A program that takes turns; it leaves the rounds when it fails."""

    def begin_phase(self, phase: str) -> None:
        """Is called when a phase begins."""

    def take_turn(self, phase: str, in_phase: int, in_load: int, slice_s: float, began: float) -> None:
        """Runs batches for a slice of a round, whose number counts from 0; `began` is when the load began."""

    def report(self) -> None:
        """Is called when all phases are over."""


class Rounds:
    """Gives the programs of a load point their turns, from a thread of its own."""

    def __init__(self, number: int, slice_s: float, phases: Sequence[Phase], seed: int) -> None:
        """Sets up rounds for `number` programs. `seed` draws the order of each round."""
        self.number, self.slice_s, self.seed = number, slice_s, seed
        self._phases = [(name, length_s) for name, length_s in phases if length_s > 0]
        self._members: list[Participant] = []
        self._waiting: list[Participant] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def overrun_s(self, batch_s: float) -> float:
        """Returns the seconds by which the phases may be longer than planned, with batches of up to `batch_s`."""
        return len(self._phases) * self.number * batch_s

    def join(self, program: Participant) -> None:
        """Adds a program, which has started and runs when the rounds have begun."""
        with self._lock:
            self._members.append(program)
            self._waiting.append(program)

    def leave(self, program: Participant) -> None:
        """Removes a program from the rounds."""
        with self._lock:
            self._members = [member for member in self._members if member is not program]
            self._waiting = [member for member in self._waiting if member is not program]

    def begin(self, program: Participant) -> None:
        """Marks a program as prepared, and begins the rounds when all that take part are."""
        with self._lock:
            self._waiting = [member for member in self._waiting if member is not program]
            if self._waiting or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="turns of programs", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits until no program has a turn any more."""
        if self._thread is not None:
            self._thread.join()

    @property
    def members(self) -> list[Participant]:
        """The programs that take part now."""
        with self._lock:
            return list(self._members)

    def _run(self) -> None:
        draw = random.Random(self.seed)
        began, in_load = time.monotonic(), 0
        for phase, length_s in self._phases:
            for program in self.members:
                program.begin_phase(phase)
            phase_began, in_phase = time.monotonic(), 0
            while self.members and (not in_phase or time.monotonic() - phase_began < length_s * self.number):
                order = self.members
                draw.shuffle(order)
                for program in order:
                    if program in self.members:
                        program.take_turn(phase, in_phase, in_load, self.slice_s, began)
                in_phase, in_load = in_phase + 1, in_load + 1
        for program in self.members:
            program.report()
