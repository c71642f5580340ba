"""Lets client programs alternate. Each program runs a slice of batches at a time, in rounds of random order, until all
phases are over.

A program runs only after the lab has sent it a token, so that no two programs run at the same time. A slice ends with
the batch whose end is closest to the planned length of a slice. A phase ends with a whole round, so that all programs
have the same number of slices.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Protocol

Phase = tuple[str, float]
"""The name of a phase, and for how many seconds each program runs in it."""


class Participant(Protocol):
    """A program that alternates with others. It takes no further part when it fails."""

    def begin_phase(self, phase: str) -> None:
        """Notes that a phase (the warm-up or the measured phase) begins. The `Rounds` object calls this method."""

    def take_turn(self, phase: str, in_phase: int, in_load: int, slice_s: float, began: float) -> None:
        """Runs batches for one slice. `in_phase` and `in_load` are the numbers of the round within the phase and within
        the load, counted from 0; `began` is the time (time.monotonic()) at which the load began, and `slice_s` the
        planned length of a slice."""

    def report(self) -> None:
        """Reports the results, since all phases are over. The `Rounds` object calls this method."""


class Rounds:
    """Decides, in a thread of its own, which of the client programs that alternate in slices runs next."""

    def __init__(self, number: int, slice_s: float, phases: Sequence[Phase], seed: int) -> None:
        """Sets up the alternation of `number` programs, in which each program has one slice in each round. `seed` seeds
        the random order of the programs in each round."""
        self.number, self.slice_s, self.seed = number, slice_s, seed
        self._phases = [(name, length_s) for name, length_s in phases if length_s > 0]
        self._members: list[Participant] = []
        self._waiting: list[Participant] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def overrun_s(self, batch_s: float) -> float:
        """Returns how many seconds longer than planned all phases together may take, if each batch takes up to
        `batch_s` seconds: a batch is never cut off at the end of a slice."""
        return len(self._phases) * self.number * batch_s

    def join(self, program: Participant) -> None:
        """Adds a program whose process has been started. Its first slice comes after the rounds have begun
        (`begin`)."""
        with self._lock:
            self._members.append(program)
            self._waiting.append(program)

    def leave(self, program: Participant) -> None:
        """Removes a program that has ended or failed, so that it gets no further slices."""
        with self._lock:
            self._members = [member for member in self._members if member is not program]
            self._waiting = [member for member in self._waiting if member is not program]

    def begin(self, program: Participant) -> None:
        """Notes that a program is prepared. The rounds begin when all programs are prepared."""
        with self._lock:
            self._waiting = [member for member in self._waiting if member is not program]
            if self._waiting or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="turns of programs", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits until all phases are over and the programs have reported."""
        if self._thread is not None:
            self._thread.join()

    @property
    def members(self) -> list[Participant]:
        """The programs that currently take part."""
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
