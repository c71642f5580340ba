"""A person with an empty account: the installed `pgtrial`, an empty directory, and no state from before."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import require_engine, require_server
from tests.journeys.terminal import Terminal, terminal

_OPTIONS_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "COLUMNS", "LINES", "TERMINAL_WIDTH", "TTY_COMPATIBLE")

Open = Callable[..., Terminal]


@pytest.fixture
def open_terminal(tmp_path: Path, fresh_state: Path) -> Iterator[Open]:
    """Opens terminals of 80 columns in one empty directory: `open_terminal(variables={...}, columns=80)`."""
    require_engine()
    require_server(18)
    with ExitStack() as opened:

        def open_one(variables: Mapping[str, str] | None = None, columns: int = 80, lines: int = 24) -> Terminal:
            environment = {name: text for name, text in os.environ.items() if name not in _OPTIONS_OF_TERMINALS}
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            environment |= {"PATH": path, "PGTRIAL_STATE": str(fresh_state), **(variables or {})}
            return opened.enter_context(terminal(tmp_path, environment, columns, lines))

        yield open_one
