"""What tests of other things need not pay for: a real probe of flushes for each arm, and much ready-made WAL.

pg_test_fsync takes seconds of processor time where flushes are fast. A template of a small scale consists mostly of the
WAL files that trials find ready, and each trial copies them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgtrial.evidence.collect import flush
from pgtrial.evidence.collect.flush import Rates
from pgtrial.loads.data.data import SEGMENT_MB
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.servers import made

CHEAPER = """
from pgtrial.evidence.collect import flush
from pgtrial.servers import made

by_any_program = flush.flush_rate
flush.flush_rate = lambda machine, directory, program=None: by_any_program(machine, directory)
made.prefilled_wal_mb = lambda data: made.SEGMENT_MB
"""
"""Python code by which a lab that is a process of its own measures flushes by dd, and prepares one WAL file."""


@pytest.fixture(scope="package", autouse=True)
def cheaper() -> Iterator[None]:
    """Measures each volume of this machine once, by dd, and prepares one WAL file in each template that is made.

    A conftest.py that imports this has it for its folder.
    """
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
        patch.setattr(made, "prefilled_wal_mb", lambda data: SEGMENT_MB)
        yield
