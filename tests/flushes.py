"""Flushes in tests of other things than the probe: dd measures them, and each volume of this machine once.

pg_test_fsync takes seconds of processor time an arm where flushes are fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgtrial.evidence.collect import flush
from pgtrial.evidence.collect.flush import Rates
from pgtrial.machines.machine import LOCAL, Machine

BY_DD = """
from pgtrial.evidence.collect import flush

by_any_program = flush.flush_rate
flush.flush_rate = lambda machine, directory, program=None: by_any_program(machine, directory)
"""
"""Python code that has a lab measure flushes by dd alone, for labs that are processes of their own."""


@pytest.fixture(scope="package", autouse=True)
def flushes_measured_once() -> Iterator[None]:
    """Measures each volume of this machine once, by dd. A conftest.py that imports this has it for its folder."""
    measure = flush.flush_rate
    known: dict[int, Rates] = {}

    def measured(machine: Machine, directory: Path, program: Path | None = None) -> Rates:
        if machine is not LOCAL:
            return measure(machine, directory, program)
        volume = directory.stat().st_dev
        if volume not in known:
            known[volume] = measure(machine, directory)
        return dict(known[volume])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "flush_rate", measured)
        yield
