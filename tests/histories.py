"""Makes histories for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.history import Entry
from pgtrial.store.histories.directory import HistoryDirectory
from pgtrial.store.histories.stores import read_history


def entry(place: int, value: float | None, **more) -> Entry:
    at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=place)
    half = 0.01
    values = {
        "study": f"study {place}",
        "at": at.isoformat(),
        "commit": f"commit {place}",
        "arm": "head",
        "reference": "v1.0",
        "machine": "AMD EPYC, 2 CPUs, 8 GB",
        "pgtrial": "0.2.0",
        "measure": "goodput",
        "load": "select-only, scale 10, 8 clients",
        "blocks": 12,
        "margin": 0.01,
        "verdict": "undecided",
        "difference": None if value is None else Estimate(low=value - half, value=value, high=value + half),
    }
    return Entry(**{**values, **more})


def only_history(directory: Path) -> list[Entry]:
    """Returns the entries of a directory with one history."""
    place = HistoryDirectory(directory)
    (name,) = place.names()
    return read_history(place, name)


def levels(*values: float) -> list[Entry]:
    """Returns ten commits on each level, with a little noise."""
    noise = np.random.default_rng(1).normal(scale=0.002, size=10 * len(values))
    return [entry(place, values[place // 10] + float(around)) for place, around in enumerate(noise)]
