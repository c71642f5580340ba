"""The sampler around a trial's load, if the study wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pgtrial.conduct.outcome import Outcome
from pgtrial.evidence.observe.counters import Counters
from pgtrial.evidence.observe.sampler import Observation, Sampler
from pgtrial.loads.target import Target
from pgtrial.model.study.load_section import LoadSection
from pgtrial.servers.arm import Arm

__all__ = ["Observation", "observed"]


class Course(Protocol):
    """The part of a trial's course that observing reads and fills."""

    load: LoadSection
    outcome: Outcome
    deltas: Counters
    observation: Observation | None

    def note(self, text: str | None) -> None:
        """Keep a sentence for whoever reads the trial."""
        ...


class _NotWatching:
    def load_begins(self, engine: int | None) -> None:
        """Nothing is watched."""

    def measure_begins(self) -> None:
        """Nothing is watched."""


@contextmanager
def observed(course: Course, arm: Arm, target: Target) -> Iterator[Sampler | _NotWatching]:
    """Watch the server once it is told that the load begins; what was seen is put into the course, come what may."""
    if not course.load.observe:
        yield _NotWatching()
        return
    sampler = Sampler(target.connect, arm.machine, arm.data_directory)
    try:
        with sampler:
            yield sampler
    finally:
        found = sampler.seen(_measured_s(course))
        course.observation = found
        if found.cost:
            course.deltas["sampler"] = found.cost
        for note in found.notes:
            course.note(note)


def _measured_s(course: Course) -> float:
    """How long the measured part is: as planned, or of tasks as it came out."""
    if not course.load.runs_tasks:
        return course.load.duration
    measured = course.outcome.measured
    return measured.duration_s if measured else course.load.longest_s
