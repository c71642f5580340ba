"""Fixtures for tests of changes to a machine: the same machine, reached directly and through a shell."""

from __future__ import annotations

import pytest

from pgtrial.machines.machine import LOCAL, Machine
from tests.machines.shell import ShellMachine
from tests.machines.strangers import stranger  # noqa: F401 - a fixture of this folder


@pytest.fixture(params=["local", "shell"])
def host(request: pytest.FixtureRequest) -> Machine:
    """This machine as the lab has it, and as one that is reached by a shell."""
    return LOCAL if request.param == "local" else ShellMachine()
