"""The bundled studies that change the machine, shortened: they run, and the machine is as before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pgtrial.cli.study_options import builds_here
from pgtrial.model.study.frozen import freeze
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import read_study
from tests.conduct.small import PGTRIAL
from tests.conftest import public_directory, require_engine, require_root, require_server
from tests.machine import machine
from tests.machines.test_volumes import require_filesystem

pytestmark = pytest.mark.machine


_LOAD = {"workload": ["tpcb-like"], "scale": [1], "clients": [2], "threads": 1, "warmup": 0.2, "duration": 3.0}
"""Trials of three seconds: on a busy disk a commit may take more than one, and a trial without a transaction fails."""


def shortened(name: str, profile: str, path: Path) -> Path:
    """Writes a bundled study to `path` with one block, a small table and trials of seconds; its arms and settings
    stay.
    """
    spec = read_study(f"@{name}", profile, builds_here)
    spec = spec.model_copy(
        update={
            "load": spec.load.model_copy(update=_LOAD),
            "verdict": spec.verdict.model_copy(update={"blocks": 1}),
            "study": spec.study.model_copy(update={"profile": None}),
        }
    )
    path.write_text(freeze(spec))
    return path


@pytest.fixture(scope="module")
def on_disk():
    """Yields a state root on a disk, since the volumes of some bundled studies take gigabytes."""
    path = public_directory()
    yield path
    shutil.rmtree(path)


def ran(file: Path, results: Path, state: Path) -> tuple[StudyDirectory, str]:
    """Runs `pgtrial run` of a file and returns the study, and its messages if it failed."""
    done = subprocess.run(
        [PGTRIAL, "run", file, "--results", results, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PGTRIAL_STATE": str(state)},
    )
    return StudyDirectory.open(results), done.stderr if done.returncode else ""


@pytest.mark.parametrize(
    ("name", "profile"),
    [("os-comparison", "quick"), ("huge-pages", "quick-2MB"), ("filesystem-durability", "quick")],
)
def test_a_bundled_study_runs_and_leaves_the_machine_as_it_was(on_disk, tmp_path, name, profile):
    require_root()
    require_engine()
    for kind in ("ext4", "xfs", "btrfs"):
        require_filesystem(kind)
    for major in (15, 16, 17, 18):
        require_server(major)
    file = shortened(name, profile, tmp_path / "study.toml")
    before = machine(on_disk)
    study, refusal = ran(file, tmp_path / "results", on_disk)
    if any("huge pages" in (trial.reason or "") for trial in study.trials()):
        # A server that another test runs in another process took the reserved huge pages at each attempt.
        study, refusal = ran(file, tmp_path / "once more", on_disk)
    assert refusal == ""
    trials = study.trials()
    assert {trial.arm: trial.reason for trial in trials} == dict.fromkeys(study.plan.arms)
    assert machine(on_disk) == before
    findings = json.loads((study.path / "verdict.json").read_text())["findings"]
    told = {finding["rule"]: finding for finding in findings if finding["severity"] != "info"}
    if name == "huge-pages":
        (huge,) = (trial for trial in trials if trial.arm == "2MB")
        pages = huge.huge_pages
        used = pages["during"]["2MB_total"] - pages["during"]["2MB_free"] + pages["during"]["2MB_reserved"]
        assert used > 896 // 2 > pages["after"]["2MB_total"]
    if name == "filesystem-durability":
        assert any("nobarrier" in finding["message"] for finding in told.values()), told
