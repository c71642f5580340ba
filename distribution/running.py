"""Runs the programs that the distribution is made with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class DistributionError(Exception):
    """Raised if something cannot be made; one sentence says what and why."""


def run(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Runs a program and returns its output. Its messages stay visible. Raises DistributionError."""
    if shutil.which(command[0]) is None:
        raise DistributionError(f"{command[0]} is not installed, and is needed to make this")
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
    )
    if done.returncode != 0:
        raise DistributionError(
            f"`{' '.join(map(str, command))}` ended with status {done.returncode}: {done.stdout.strip()[-2000:]}"
        )
    return done.stdout
