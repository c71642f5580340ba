"""A lab killed at any step between a machine as it was and a machine as an arm wants it: the next start mends it."""

from __future__ import annotations

import signal
import subprocess
import sys

from pgtrial.arm.workspace import Workspace, leftovers
from tests.host.test_volumes import require_filesystem
from tests.machine import machine

_PREAMBLE = """
import os, signal, sys
from pathlib import Path
from pgtrial.arm import volumes
from pgtrial.arm.machine import MachineState
from pgtrial.arm.workspace import Workspace
from pgtrial.host import journal, kernel, pages
from pgtrial.host import volumes as kinds
from pgtrial.study.spec import SetUp
from pgtrial.study.storage import Storage

steps, fatal = 0, int(sys.argv[1])

def step(function):
    def counted(*arguments, **named):
        global steps
        steps += 1
        if steps == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        steps += 1
        if steps == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return counted

journal.HostJournal._write = step(journal.HostJournal._write)
for kind in (kinds.BackingFile, kinds.LoopDevice, kinds.MountPoint, kinds.Mount, kernel.KernelValue, pages.HugePages):
    kind.make = step(kind.make)
    kind.undo = step(kind.undo)
workspace = Workspace()
"""

_VOLUMES = """
storage = Storage(fs="ext4", size="64MB", wal={"fs": "tmpfs", "size": "16MB"})
with volumes.Volumes("A", storage, workspace.changes()).made() as place:
    place.data.mkdir()
"""

_MEMORY = """
setup = SetUp(huge_pages="2MB", thp="never", sysctl={"vm.swappiness": "7"})
with MachineState("A", setup, workspace.changes()).in_force(Path("/"), 3):
    assert Path("/proc/sys/vm/swappiness").read_text().strip() == "7"
"""

_BEHIND_A_SHELL = """
from tests.host.shell import ShellMachine
changes = journal.HostJournal(workspace.run, ShellMachine())
with volumes.Volumes("A", Storage(fs="tmpfs", size="16MB"), changes).made() as place:
    place.data.mkdir()
"""


def _killed_at_every_step(course: str, at_least: int) -> None:
    with Workspace() as workspace:
        state = workspace.state
    before = machine(state)
    script, ended, fatal = f"{_PREAMBLE}{course}\nworkspace.close()\nprint('end')\n", "", 0
    while not ended:
        fatal += 1
        done = subprocess.run(
            [sys.executable, "-c", script, str(fatal)], capture_output=True, text=True, check=False, timeout=60
        )
        ended = done.stdout
        assert ended or done.returncode == -signal.SIGKILL, done.stderr
        with Workspace():
            assert leftovers() == [], f"killed at step {fatal}"
        assert machine(state) == before, f"killed at step {fatal}"
    assert fatal > at_least


def test_killed_at_any_step_of_making_volumes_the_next_start_puts_the_machine_back():
    require_filesystem("ext4")
    _killed_at_every_step(_VOLUMES, 20)


def test_killed_at_any_step_of_setting_memory_the_next_start_puts_the_machine_back():
    require_filesystem("tmpfs")
    _killed_at_every_step(_MEMORY, 12)


def test_killed_at_any_step_of_changing_a_host_behind_a_shell_what_its_journal_has_is_put_back():
    require_filesystem("tmpfs")
    _killed_at_every_step(_BEHIND_A_SHELL, 10)
