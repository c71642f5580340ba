"""Fixtures of the tests of commands. What commands print depends on their terminal, so that the tests give them
none.
"""

import os
from collections.abc import Iterator

import pytest

from tests.cli.forked import Commands, forked_commands

# by these rich and typer take what is no terminal for one, or for a narrow one; typer reads them when it is imported
for _name in (
    "FORCE_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "TERMINAL_WIDTH",
    "COLUMNS",
):
    os.environ.pop(_name, None)


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """Yields the commands of `pgtrial`, whose labs are forked from one that is started when it is first needed."""
    with forked_commands() as forked:
        yield forked
