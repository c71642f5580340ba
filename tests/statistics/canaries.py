"""Canaries as a study may hold them, without having been taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgtrial.model.records.disturbances import Canary, CanaryReading

USUAL = {"cpu_per_s": 2000.0, "flushes_per_s": 1000.0, "select1_per_s": 60_000.0}


def reading(**probes: Any) -> CanaryReading:
    """The usual reading with some probes changed."""
    return CanaryReading(taken="2026-11-20T14:12:00+00:00", **{**USUAL, **probes})


def references(readings: Sequence[CanaryReading], next_block: int = 0) -> list[Canary]:
    """Canaries before the first block."""
    return [Canary(number=n, role="reference", next_block=next_block, reading=r) for n, r in enumerate(readings)]
