"""The state of this machine that arms change, so that a test can say: it is as before."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil

_SWITCHES = (
    "kernel/mm/transparent_hugepage/enabled",
    "kernel/mm/transparent_hugepage/defrag",
    "kernel/mm/hugepages/hugepages-*/nr_hugepages",
    "block/*/queue/scheduler",
    "devices/system/cpu/cpu*/cpufreq/scaling_governor",
)
_COUNTERS = frozenset({"stat_refresh", "nr_hugepages"})
"""Files below /proc/sys/vm that are no settings, or are shown by a switch already."""

_PROGRAMS = frozenset({"postgres", "pgtrial-engine"})


def machine(state: Path) -> dict[str, str]:
    """Kernel switches and parameters, and what is mounted, runs or lies below the lab's state root."""
    seen = {
        "mounts": _below(state, Path("/proc/self/mounts").read_text()),
        "loop devices": _below(state, subprocess.check_output(["losetup", "--all"], text=True))
        if shutil.which("losetup")
        else "",
        "runs": _names(state / "runs"),
        "sockets": _names(Path("/tmp"), "pgtrial-[0-9]*-" + 4 * "[0-9a-f]"),
        "programs": "\n".join(sorted(_programs_below(state))),
    }
    for pattern in _SWITCHES:
        seen |= {str(path): path.read_text() for path in Path("/sys").glob(pattern)}
    for path in Path("/proc/sys/vm").iterdir():
        if path.name not in _COUNTERS and os.access(path, os.R_OK) and path.is_file():
            seen[str(path)] = path.read_text()
    return seen


def _below(state: Path, listed: str) -> str:
    """The lines about what lies below the state root: tests in another process have one of their own."""
    return "\n".join(line for line in listed.splitlines() if f"{state}/" in line)


def _names(home: Path, pattern: str = "*") -> str:
    return "\n".join(sorted(path.name for path in home.glob(pattern)))


def _programs_below(state: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or []
        if process.info["name"] in _PROGRAMS and any(str(state) in word for word in words):
            found.append(" ".join(words))
    return found
