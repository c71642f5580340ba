"""Reads the study's own metrics in a trial: after the load, or in each second of the measured part.

If a number cannot be read, the metric is unknown in this trial, and a note of the trial says why. The trial is valid
for all other metrics, but a claim on this metric gets no verdict.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import fmean
from typing import NamedTuple, Self

import psycopg

from pgtrial.loads.own_numbers import NoNumber, OwnNumber
from pgtrial.loads.target import Target
from pgtrial.machines.interrupt import held_off
from pgtrial.model.errors import TrialError, one_line
from pgtrial.model.study.own_metrics import MetricSection

_EVERY_S = 1.0
_OF_A_TRIAL: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "max": max, "min": min}


Reading = tuple[float, float]
"""The time at which a number was read, in seconds after the beginning of the measured part, and the number."""


def value_of(readings: Iterable[Reading], how: str | None, duration_s: float) -> float | None:
    """Returns the value of a metric in a trial: the mean, the largest or the smallest number (`how`) that was read in
    the measured part, whose length is `duration_s`. Returns None if no number was read. A number that was read at the
    very end does not count, since the load was over then."""
    numbers = [number for second, number in readings if second < duration_s]
    return _OF_A_TRIAL[how](numbers) if how is not None and numbers else None


class OwnValue(NamedTuple):
    """What is known of one of the study's own metrics in a trial."""

    name: str
    value: float | None
    """The value of the metric; None if it is not known."""
    note: str | None = None
    """A sentence for readers of the trial on why the value is not known."""


def read_after_load(metrics: Mapping[str, MetricSection], target: Target) -> Iterator[OwnValue]:
    """Yields the values of those metrics that are read once after the load. Raises psycopg.OperationalError if the
    server is lost."""
    for name, section in metrics.items():
        if section.each_second is not None:
            continue
        try:
            with OwnNumber(name, section, target) as number:
                read = OwnValue(name, number.read())
        except TrialError as error:
            read = _unknown(name, error)
        yield read


def _unknown(name: str, error: Exception) -> OwnValue:
    return OwnValue(name, None, f"{name} is not known of this trial: {one_line(error)}")


class EachSecond:
    """Reads a metric once a second in a thread of its own, from the begin of the measured part to the end of the
    load."""

    def __init__(self, name: str, section: MetricSection, number: OwnNumber) -> None:
        """`number` must have an open session already, since connecting during the load would disturb the server."""
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
        """Ends the thread. A statement that still runs is cancelled."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_EVERY_S)
            if self._thread.is_alive():
                self._number.stop()
                self._thread.join()

    def value(self, duration_s: float) -> OwnValue:
        """Returns the metric's value in a measured part of `duration_s` seconds. The thread must have ended."""
        if self._error is not None:
            return _unknown(self._name, self._error)
        value = value_of(self._readings, self._section.each_second, duration_s)
        if value is None:
            return _unknown(self._name, NoNumber("the measured part ended before a number was read"))
        return OwnValue(self._name, value)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            while not self._over.wait(max(0.0, began + _EVERY_S * len(self._readings) - time.monotonic())):
                second = time.monotonic() - began
                self._readings.append((second, self._number.read()))
        except (TrialError, psycopg.Error) as error:
            if not self._over.is_set():
                self._error = error


class EverySecond:
    """Reads all metrics of a study that are read in each second. It is a context manager, which opens their sessions,
    and which ends the reading."""

    def __init__(self, metrics: Mapping[str, MetricSection], target: Target) -> None:
        self._metrics, self._target = metrics, target
        self._readers: list[EachSecond] = []
        self._numbers = ExitStack()

    def __enter__(self) -> Self:
        """Opens the sessions. Raises psycopg.OperationalError."""
        with ExitStack() as numbers:
            for name, section in self._metrics.items():
                if section.each_second is not None:
                    number = numbers.enter_context(OwnNumber(name, section, self._target))
                    self._readers.append(EachSecond(name, section, number))
            self._numbers = numbers.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._numbers:
            for reader in self._readers:
                reader.end()

    def begin(self) -> None:
        """Starts reading, since the measured part begins now."""
        for reader in self._readers:
            reader.begin()

    def values(self, duration_s: float) -> list[OwnValue]:
        """Returns the values of the metrics in a measured part of `duration_s` seconds, after the context."""
        return [reader.value(duration_s) for reader in self._readers]
