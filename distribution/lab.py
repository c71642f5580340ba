"""The source distribution, and of it the lab alone as a wheel, which the wheels of all platforms start from."""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path

from distribution.engine import ROOT
from distribution.running import DistributionError, run

_BUILD_SDIST = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
_ENGINE = re.compile(r"^\[\[tool\.setuptools-rust\.bins\]\]\n(?:[^\[\n].*\n|\n)*", re.MULTILINE)


def source_distribution(output: Path) -> Path:
    """Makes `pgtrial-VERSION.tar.gz` in the directory `output` and returns its path."""
    printed = run([sys.executable, "-c", _BUILD_SDIST, output], cwd=ROOT)
    return output / printed.splitlines()[-1]


def lab_wheel(source: Path, work: Path) -> Path:
    """Makes a wheel without the engine from the source distribution: what that lacks, the wheels would lack."""
    with tarfile.open(source) as archive:
        archive.extractall(work, filter="data")
    project = work / source.name.removesuffix(".tar.gz")
    settings = project / "pyproject.toml"
    without, removed = _ENGINE.subn("", settings.read_text())
    if removed != 1:
        raise DistributionError(f"{settings} has {removed} tables [[tool.setuptools-rust.bins]] in place of one")
    settings.write_text(without)
    wheels = work / "lab"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    run([*pip, "--no-build-isolation", "--wheel-dir", wheels, project])
    (wheel,) = wheels.glob("*.whl")
    return wheel
