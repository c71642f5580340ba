"""A rate of flushes, whatever measured it."""

from __future__ import annotations

import re
from typing import Any

PATIENCE_S = 20.0
"""How long pg_test_fsync is waited for."""

_PG_TEST_FSYNC = re.compile(r"fdatasync\s+([\d.]+) ops/sec\s+(\d+) usecs/op")

Rates = dict[str, Any]
"""flushes_per_s: whole number; flush_us: microseconds of one flush; flush_tool: what measured."""


def parse_pg_test_fsync(line: str) -> Rates | None:
    """Its line on fdatasync."""
    found = _PG_TEST_FSYNC.search(line)
    if found is None:
        return None
    rate = float(found[1])
    return {"flushes_per_s": round(rate), "flush_us": round(1e6 / rate, 1), "flush_tool": "pg_test_fsync, fdatasync"}
