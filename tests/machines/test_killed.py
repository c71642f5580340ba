"""A lab killed at any step between a machine as it was and a machine as an arm wants it: the next start mends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from pgtrial.servers.leftovers import leftovers
from pgtrial.servers.workspace import Workspace
from tests.machine import machine
from tests.machines.test_volumes import require_filesystem

pytestmark = pytest.mark.machine


_LABS = """
import os, signal, sys, traceback
from pathlib import Path
from pgtrial.servers import volumes
from pgtrial.servers.machine_state import MachineState
from pgtrial.servers.workspace import Workspace
from pgtrial.machines import host_changes, journal, kernel
from pgtrial.machines import volumes as kinds
from pgtrial.model.study.servers import server_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.storage import Storage
from tests.machines.shell import ShellMachine

steps, fatal = 0, 0

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

journal.Journal.write = step(journal.Journal.write)
for kind in (kinds.BackingFile, kinds.LoopDevice, kinds.MountPoint, kinds.Mount, kernel.KernelValue, kernel.HugePages):
    kind.make = step(kind.make)
    kind.undo = step(kind.undo)

def use_machine():
    workspace = Workspace()
STEPS
    workspace.close()

for line in sys.stdin:
    fatal = int(line)
    lab = os.fork()
    if not lab:
        try:
            use_machine()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(lab, 0)[1]), flush=True)
"""
"""A program that runs labs. Each line of its input names the step at which the next lab dies. Labs are forked, since
their imports would take longer than their work.
"""

_VOLUMES = """
storage = Storage(fs="ext4", size="64MB", wal={"fs": "tmpfs", "size": "16MB"})
with volumes.Volumes("A", storage, workspace.changes).made() as place:
    place.data.mkdir()
"""

_MEMORY = """
setup = server_of(SetUp(), SetUp(huge_pages="2MB", thp="never", sysctl={"vm.swappiness": "7"}))
with MachineState("A", setup, workspace.changes).in_force(Path("/"), 3):
    assert Path("/proc/sys/vm/swappiness").read_text().strip() == "7"
"""

_BEHIND_A_SHELL = """
changes = host_changes.HostJournal(workspace.root, ShellMachine())
with volumes.Volumes("A", Storage(fs="tmpfs", size="16MB"), changes).made() as place:
    place.data.mkdir()
"""


@pytest.fixture(autouse=True)
def _own_state(fresh_state, monkeypatch):
    """Gives the test a state directory of its own, since other tests make and remove templates in the shared one at the
    same time.
    """
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))


def _killed_at_every_step(steps: str, at_least: int) -> None:
    with Workspace() as workspace:
        state = workspace.state
    before = machine(state)
    script = _LABS.replace("STEPS", textwrap.indent(steps, "    "))
    status, fatal = -signal.SIGKILL, 0
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as labs:
        assert labs.stdin is not None
        assert labs.stdout is not None
        while status:
            fatal += 1
            print(fatal, file=labs.stdin, flush=True)
            status = int(labs.stdout.readline())
            assert status in (0, -signal.SIGKILL), "the lab itself failed; its words are above"
            with Workspace():
                assert leftovers() == [], f"killed at step {fatal}"
            assert machine(state) == before, f"killed at step {fatal}"
        labs.stdin.close()
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
