"""A fixture that the tests of trials share: it returns the servers that a test has started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def postmasters(state_root: Path) -> Callable[[], list[psutil.Process]]:
    """Returns a function that returns the servers that have been started since the test began."""
    before = set((state_root / "runs").glob("*/*"))

    def find() -> list[psutil.Process]:
        new = set((state_root / "runs").glob("*/*")) - before
        files = [path / "postmaster.pid" for path in new if (path / "postmaster.pid").exists()]
        return [psutil.Process(int(file.read_text().split()[0])) for file in files]

    return find
