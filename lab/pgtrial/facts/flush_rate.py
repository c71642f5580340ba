"""A rate of flushes, whatever measured it."""

from __future__ import annotations

import re
from typing import Any

PATIENCE_S = 20.0
"""How long pg_test_fsync is waited for."""

_PG_TEST_FSYNC = re.compile(r"fdatasync\s+([\d.]+) ops/sec\s+(\d+) usecs/op")

Rates = dict[str, Any]
"""flushes_per_s: a whole number from 1 on; flush_us: microseconds of one flush; flush_tool: what measured."""


def rates_of(flush_s: float, tool: str) -> Rates:
    """From the seconds of one flush. A device that stalls for seconds has a rate below 1, and not 0: that is none."""
    rate = 1 / flush_s
    return {
        "flushes_per_s": round(rate) if rate >= 1 else float(f"{rate:.2g}"),
        "flush_us": round(flush_s * 1e6, 1),
        "flush_tool": tool,
    }


def parse_pg_test_fsync(line: str) -> Rates | None:
    """Its line on fdatasync."""
    found = _PG_TEST_FSYNC.search(line)
    if found is None or float(found[1]) <= 0:
        return None
    return rates_of(1 / float(found[1]), "pg_test_fsync, fdatasync")
