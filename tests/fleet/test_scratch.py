"""What a lab that is killed leaves of the Ray cluster that it made for its run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from pgtrial.cli import main
from pgtrial.fleet import scratch
from tests.fleet.test_cluster import ray_of_this_machine

LAB = """
import sys
from pathlib import Path
from pgtrial.fleet import scratch
from pgtrial.fleet.cluster import joined
from pgtrial.study.fleet import FleetSection

scratch._root = lambda: Path(sys.argv[1])
with joined(FleetSection(address="local")):
    print("joined", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(monkeypatch):
    """In place of /tmp, which labs of other tests clean up; the paths of Ray's sockets in it have to be short."""
    path = Path(tempfile.mkdtemp(prefix="", dir="/tmp"))
    monkeypatch.setattr(scratch, "_root", lambda: path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def killed(root):
    """The folder of a lab's own cluster after `kill -9`, in the words of `pgtrial cleanup --dry-run`."""
    ray_of_this_machine()
    command = [sys.executable, "-c", LAB, root]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | {"HOME": str(root)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=alone
    ) as lab:
        try:
            assert lab.stdout is not None
            assert lab.stdout.readline() == "joined\n"
            (room,) = root.glob(f"pgt-ray-{lab.pid}-*")
            assert room not in [leftover.path for leftover in scratch.leftovers()], "its lab lives"
            assert len(workers_in(room)) > 3
            assert not (root / ".ray").exists(), "a token there is one for all clusters of the user to come"
        finally:
            lab.kill()
    return room


def workers_in(room):
    found = []
    for process in psutil.process_iter():
        try:
            words, files = process.cmdline(), process.open_files()
        except psutil.Error:
            continue
        if any(str(room) in text for text in [*words, *(file.path for file in files)]):
            found.append(process)
    return found


def test_what_a_killed_lab_left_of_its_cluster_is_told_and_ended_and_nobody_elses_is(killed, capsys):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", "/x/ray/y"]
    with scratch.scratch() as living, subprocess.Popen([*command, living], stdin=subprocess.PIPE) as others:
        assert others.stdin is not None
        for option, told in (("--dry-run", f"{killed}: the Ray cluster of a lab"), ("", f"Removed {killed}, the Ray")):
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


def test_a_folder_whose_lab_was_killed_before_it_had_it_locked_is_removed_too(root):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    abandoned, coming = (root / f"pgt-ray-{pid}-test" for pid in (ended.pid, os.getpid()))
    for room in (abandoned, coming):
        room.mkdir()
    assert scratch.clean() == [f"Removed {abandoned}, the Ray cluster of a pgtrial that ended abruptly."]
    assert coming.is_dir()
