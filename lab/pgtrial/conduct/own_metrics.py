"""Reads the metrics of the study's own in a trial: after the load, or in each second of the measured part.

A number that cannot be read leaves the metric unknown in this trial, with a note that says why. The trial is valid for
all other metrics, and a claim on this one does not stand.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean

import psycopg

from pgtrial.conduct.course import Course
from pgtrial.conduct.rehearsal_failures import RehearsalFailure
from pgtrial.conduct.stage import Stage
from pgtrial.loads.own_numbers import NoNumber, OwnNumber
from pgtrial.loads.target import Target
from pgtrial.machines.interrupt import held_off
from pgtrial.model import marks
from pgtrial.model.errors import TrialError, one_line
from pgtrial.model.study.own_metrics import MetricSection
from pgtrial.model.study.servers import Given

_EVERY_S = 1.0
_OF_A_TRIAL: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "max": max, "min": min}


Reading = tuple[float, float]
"""The time of a reading, in seconds after the beginning of the measured part, and the number that was read."""


def value_of(readings: Iterable[Reading], how: str | None, duration_s: float) -> float | None:
    """Returns the value of a trial whose measured part took so long: the mean, the largest or the smallest number that
    was read in it; None if none was. A reading at the very end would see what is left when the load is over."""
    numbers = [number for second, number in readings if second < duration_s]
    return _OF_A_TRIAL[how](numbers) if how is not None and numbers else None


def read_after_load(course: Course, target: Target) -> None:
    """Reads the metrics that are read once, when the load is over. Raises psycopg.OperationalError if the server is
    lost."""
    for name, section in course.metrics.items():
        if section.each_second is not None:
            continue
        try:
            with OwnNumber(name, section, target) as number:
                course.own_metrics[name] = number.read()
        except TrialError as error:
            _note_unknown(course, name, error)


def _note_unknown(course: Course, name: str, error: Exception) -> None:
    course.note(f"{name} is not known of this trial: {one_line(error)}")


class EachSecond:
    """Reads a metric once a second in a thread of its own, from the begin of the measured part to the end of the
    load."""

    def __init__(self, name: str, section: MetricSection, number: OwnNumber) -> None:
        """Takes a number whose session is open, since connecting disturbs the server for a moment."""
        self._name, self._section, self._number = name, section, number
        self._readings: list[Reading] = []
        self._error: Exception | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Starts the thread that reads the numbers."""
        with held_off():
            self._thread = threading.Thread(target=self._run, name="own metric", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Ends the reading; a statement that is under way is cancelled."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_EVERY_S)
            if self._thread.is_alive():
                self._number.stop()
                self._thread.join()

    def keep(self, course: Course) -> None:
        """Keeps the value of the trial in the course."""
        measured = course.outcome.measured
        value = value_of(self._readings, self._section.each_second, measured.duration_s if measured else math.inf)
        if self._error is not None:
            _note_unknown(course, self._name, self._error)
        elif value is None:
            _note_unknown(course, self._name, NoNumber("the measured part ended before it was read"))
        else:
            course.own_metrics[self._name] = value

    def _run(self) -> None:
        began = time.monotonic()
        try:
            while not self._over.wait(max(0.0, began + _EVERY_S * len(self._readings) - time.monotonic())):
                second = time.monotonic() - began
                self._readings.append((second, self._number.read()))
        except (TrialError, psycopg.Error) as error:
            if not self._over.is_set():
                self._error = error


@contextmanager
def each_second(course: Course, target: Target) -> Iterator[list[EachSecond]]:
    """A context manager around the load with the readers of the metrics that are read in each second. The values are
    in the course once it has ended. Raises psycopg.OperationalError."""
    readers: list[EachSecond] = []
    numbers: list[OwnNumber] = []
    try:
        for name, section in course.metrics.items():
            if section.each_second is not None:
                number = OwnNumber(name, section, target)
                numbers.append(number.__enter__())
                readers.append(EachSecond(name, section, number))
        yield readers
    finally:
        for reader, number in zip(readers, numbers, strict=False):
            reader.end()
            number.__exit__()
            reader.keep(course)


def rehearsed_metrics(stage: Stage) -> list[RehearsalFailure]:
    """Reads each metric once. Returns those whose SQL or program fails. Raises psycopg.OperationalError.

    A number may be missing before the load has run, and so may a table that the load creates.
    """
    failures = []
    if isinstance(stage.arm.setup, Given) and not stage.has_all():
        return []
    for name, section in stage.spec.metrics.items():
        try:
            with OwnNumber(name, section, stage.target) as number:
                number.read_or_none()
        except NoNumber as error:
            if not error.names_missing or not stage.spec.load.kind.starts_programs(stage.spec.load):
                failures.append(_failure(name, error))
        except TrialError as error:
            failures.append(_failure(name, error))
    return failures


def _failure(name: str, error: TrialError) -> RehearsalFailure:
    return RehearsalFailure(f"{marks.key(f'metrics.{name}')}: {error}", "correct that, and run it again")
