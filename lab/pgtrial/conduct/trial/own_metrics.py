"""Reads the study's own metrics in a trial: after the load, or in each second of the measured part.

If a number cannot be read, the metric is unknown in this trial, and a note of the trial says why. The trial is valid
for all other metrics, but a claim on this metric gets no verdict.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean

import psycopg

from pgtrial.conduct.trial.running_trial import RunningTrial
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


def read_after_load(trial: RunningTrial, target: Target) -> None:
    """Reads those metrics that are read once after the load, and stores their values in `trial`. Raises
    psycopg.OperationalError if the server is lost."""
    for name, section in trial.metrics.items():
        if section.each_second is not None:
            continue
        try:
            with OwnNumber(name, section, target) as number:
                trial.own_metrics[name] = number.read()
        except TrialError as error:
            _note_unknown(trial, name, error)


def _note_unknown(trial: RunningTrial, name: str, error: Exception) -> None:
    trial.note(f"{name} is not known of this trial: {one_line(error)}")


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

    def keep(self, trial: RunningTrial) -> None:
        """Stores the metric's value for the trial in `trial`, or a note on why it is unknown."""
        measured = trial.outcome.measured
        value = value_of(self._readings, self._section.each_second, measured.duration_s if measured else math.inf)
        if self._error is not None:
            _note_unknown(trial, self._name, self._error)
        elif value is None:
            _note_unknown(trial, self._name, NoNumber("the measured part ended before a number was read"))
        else:
            trial.own_metrics[self._name] = value

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
def each_second(trial: RunningTrial, target: Target) -> Iterator[list[EachSecond]]:
    """Provides, within the context, the readers of those metrics that are read in each second; the caller starts them
    with the measured part. When the context ends, their values are stored in `trial`. Raises
    psycopg.OperationalError."""
    readers: list[EachSecond] = []
    numbers: list[OwnNumber] = []
    try:
        for name, section in trial.metrics.items():
            if section.each_second is not None:
                number = OwnNumber(name, section, target)
                numbers.append(number.__enter__())
                readers.append(EachSecond(name, section, number))
        yield readers
    finally:
        for reader, number in zip(readers, numbers, strict=False):
            reader.end()
            number.__exit__()
            reader.keep(trial)
