"""Tests of the remains of a Ray cluster whose lab was killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pgtrial.cli import main
from pgtrial.loads.fleet import scratch
from tests.loads.fleet.rays import STARTS, ray_of_this_machine

pytestmark = pytest.mark.server


LAB = """
import sys
from pathlib import Path
from pgtrial.loads.fleet import scratch
from pgtrial.loads.fleet.cluster import joined
from pgtrial.model.study.fleet import FleetSection

scratch.ROOT = Path(sys.argv[1])
with joined(FleetSection(address="local")):
    print("joined", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(monkeypatch):
    """Yields a directory that stands for /tmp, since labs of other tests clean up the real one. Its name is short
    because the paths of Ray's sockets must be.
    """
    path = Path(tempfile.mkdtemp(prefix="", dir="/tmp"))
    monkeypatch.setattr(scratch, "ROOT", path)
    yield path
    # what a cluster's processes are still writing there is no part of any test
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def killed(root):
    """Returns the folder of a lab's own cluster after `kill -9` of the lab."""
    ray_of_this_machine()
    with joined_lab(root) as lab:
        (folder,) = root.glob(f"pgt-ray-{lab.pid}-*")
        assert folder not in [leftover.path for leftover in scratch.leftovers()], "its lab lives"
        assert len(workers_in(folder)) > 3
        assert not (root / ".ray").exists(), "a token there is one for all clusters of the user to come"
    return folder


@contextmanager
def joined_lab(root):
    """Yields a lab with a Ray cluster of its own, and kills it at the end."""
    command = [sys.executable, "-c", LAB, root]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | {"HOME": str(root)}
    said = ""
    for _ in range(STARTS):
        with (
            (root / "said").open("w") as errors,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=alone
            ) as lab,
        ):
            assert lab.stdout is not None
            if lab.stdout.readline() == "joined\n":
                try:
                    yield lab
                finally:
                    lab.kill()
                return
        said = (root / "said").read_text()
        assert "timed out during startup" in said, said
    raise AssertionError(said)


def workers_in(folder):
    found = []
    for process in psutil.process_iter():
        try:
            words, files = process.cmdline(), process.open_files()
        except psutil.Error:
            continue
        if any(str(folder) in text for text in [*words, *(file.path for file in files)]):
            found.append(process)
    return found


def test_what_a_killed_lab_left_of_its_cluster_is_told_and_ended_and_nobody_elses_is(killed, capsys):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "/x/ray/y"]
    with scratch.scratch() as living, subprocess.Popen([*command, living], stdin=subprocess.PIPE) as others:
        assert others.stdin is not None
        would = f"would remove {killed}: the Ray cluster of a lab"
        for option, told in (("--dry-run", would), ("", f"Removed {killed}, the Ray")):
            with pytest.raises(SystemExit):
                main(["cleanup", *option.split()])
            (said,) = [line for line in capsys.readouterr().out.splitlines() if str(killed) in line]
            assert said.startswith(told)
            assert killed.exists() == bool(option)
        assert not workers_in(killed)
        assert others.poll() is None
        assert Path(living).is_dir()
        others.stdin.close()
    assert not Path(living).exists()


def test_a_folder_that_its_lab_has_not_locked_yet_or_is_removing_is_nobodys_leftover(root, monkeypatch):
    folder = root / f"pgt-ray-{os.getpid()}-test"
    folder.mkdir()
    (folder / "lock").touch()
    assert scratch.leftovers() == []
    found: list[list[str]] = []

    def removing(path, **options):
        found.append(scratch.clean())
        remove(path, **options)

    remove = shutil.rmtree
    with monkeypatch.context() as patch, scratch.scratch() as living:
        patch.setattr(shutil, "rmtree", removing)
    assert found == [[]]
    assert not Path(living).exists()


def test_a_folder_whose_lab_was_killed_before_it_had_it_locked_is_removed_too(root):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    abandoned, coming = (root / f"pgt-ray-{pid}-test" for pid in (ended.pid, os.getpid()))
    for folder in (abandoned, coming):
        folder.mkdir()
    assert scratch.clean() == [f"Removed {abandoned}, the Ray cluster of a pgtrial that ended abruptly."]
    assert coming.is_dir()
