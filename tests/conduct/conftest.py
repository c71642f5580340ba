"""What the tests of trials share: one measurement of each volume's flushes, and the servers that a test starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pgtrial.evidence.collect import flush
from pgtrial.evidence.collect.flush import Rates
from pgtrial.machines.machine import LOCAL, Machine


@pytest.fixture(scope="package", autouse=True)
def flushes_measured_once() -> Iterator[None]:
    """Measures each volume of this machine once, by dd. pg_test_fsync would take seconds of processor time an arm."""
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


@pytest.fixture
def postmasters(state_root: Path) -> Callable[[], list[psutil.Process]]:
    """The servers that have been started since the test began."""
    before = set((state_root / "runs").glob("*/*"))

    def find() -> list[psutil.Process]:
        new = set((state_root / "runs").glob("*/*")) - before
        files = [path / "postmaster.pid" for path in new if (path / "postmaster.pid").exists()]
        return [psutil.Process(int(file.read_text().split()[0])) for file in files]

    return find
