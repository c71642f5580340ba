"""`pgtrial pgbench ...`, `pgtrial sysbench ...` and `pgtrial tasks ...`: becomes the engine, arguments untouched."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from pgtrial.loads.engine import engine_path


def execute(front_end: str, arguments: list[str]) -> NoReturn:
    """Replace this process by the engine. Raises StudyError when there is none."""
    engine = str(engine_path())
    sys.stdout.flush()
    os.execv(engine, [engine, front_end, *arguments])
