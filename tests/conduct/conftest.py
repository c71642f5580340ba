"""A fixture that the tests of trials share: it returns the servers that a test has started."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def postmasters(state_root: Path) -> Callable[[], list[psutil.Process]]:
    """Returns a function that returns the running servers that have been started since the test began."""
    before = set((state_root / "runs").glob("*/*"))

    def find() -> list[psutil.Process]:
        found = []
        for path in set((state_root / "runs").glob("*/*")) - before:
            # a file that is just made is empty, and the server of one that is there may have ended
            with suppress(FileNotFoundError, NotADirectoryError, IndexError, psutil.NoSuchProcess):
                found.append(psutil.Process(int((path / "postmaster.pid").read_text().split()[0])))
        return found

    return find
