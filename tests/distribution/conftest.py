"""Fixtures that build the distributed files once, for this machine, from the lab's source and the engine that the tests
use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import require, require_engine


@dataclass(frozen=True)
class Made:
    """The files of `make dist-here`."""

    source: Path
    wheel: Path
    deb: Path
    lab: Path
    """The wheel without the engine, which the others are made of."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    require_engine()
    for program in ("dpkg-deb", "strip"):
        require(shutil.which(program), program)
    output = tmp_path_factory.mktemp("distribution") / "dist"
    command = [sys.executable, "-m", "distribution", "--here", "--output", str(output)]
    # xz at its own level takes four more seconds for a package that is a tenth smaller
    environment = {**os.environ, "DPKG_DEB_COMPRESSOR_LEVEL": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (source,), (wheel,), (deb,) = (output.glob(f"*.{ending}") for ending in ("tar.gz", "whl", "deb"))
    (lab,) = output.with_name("dist-work").glob("source/lab/*.whl")
    return Made(source, wheel, deb, lab)
