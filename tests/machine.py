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
    "block/*/queue/scheduler",
    "devices/system/cpu/cpu*/cpufreq/scaling_governor",
)
_COUNTERS = frozenset({"stat_refresh", "nr_hugepages"})
"""The files below /proc/sys/vm that are not compared: they are no settings, or `machine` reads their values
elsewhere.
"""

_PROGRAMS = frozenset({"postgres", "pgtrial-engine"})


def machine(state: Path) -> dict[str, str]:
    """Returns kernel settings, and the mounts, loop devices, runs and programs below the lab's state root, to compare
    before and after.

    The paths of Unix sockets lie below the state root as well, so that it must be short.
    """
    seen = {
        "mounts": _below(state, Path("/proc/self/mounts").read_text()),
        "loop devices": _below(state, _loop_devices()),
        "runs": _names(state / "runs"),
        "programs": "\n".join(sorted(_programs_below(state))),
    }
    for pattern in _SWITCHES:
        seen |= {str(path): path.read_text() for path in Path("/sys").glob(pattern) if not _is_of_a_loop(path)}
    for pool in Path("/sys/kernel/mm/hugepages").glob("hugepages-*"):
        seen[f"{pool}/nr_hugepages"] = str(_kept_pages(pool))
    for path in Path("/proc/sys/vm").iterdir():
        if path.name not in _COUNTERS and os.access(path, os.R_OK) and path.is_file():
            seen[str(path)] = path.read_text()
    return seen


def _kept_pages(pool: Path) -> int:
    """Returns the number of huge pages that a pool keeps, without surplus pages. A server of a test in another process
    may use pages that a trial reserved; when these are given back, the kernel keeps them as surplus until it ends.
    """
    return int((pool / "nr_hugepages").read_text()) - int((pool / "surplus_hugepages").read_text())


def _below(state: Path, listed: str) -> str:
    """Returns the lines that name a path below the state root. Tests in another process have another state root."""
    return "\n".join(line for line in listed.splitlines() if f"{state}/" in line)


def _loop_devices() -> str:
    """Returns the attached loop devices. Devices that are detached but still open are left out: they disappear once
    closed.
    """
    if not shutil.which("losetup"):
        return ""
    listed = subprocess.check_output(
        ["losetup", "--list", "--noheadings", "--output", "AUTOCLEAR,BACK-FILE"], text=True
    )
    return "\n".join(line for line in listed.splitlines() if line.split()[0] == "0")


def _is_of_a_loop(switch: Path) -> bool:
    """True if the setting belongs to a loop device. These settings come and go with the devices, also with those of
    others.
    """
    return switch.parent.parent.name.startswith("loop")


def _names(home: Path) -> str:
    return "\n".join(sorted(path.name for path in home.iterdir())) if home.exists() else ""


def _programs_below(state: Path) -> list[str]:
    found = []
    programs = {process.pid: process.info for process in psutil.process_iter(["name", "cmdline", "ppid"])}
    for process in programs.values():
        words = process["cmdline"] or []
        # a server's new process has the words of the server until it has given itself others
        is_new = words == programs.get(process["ppid"], {}).get("cmdline")
        if process["name"] in _PROGRAMS and any(str(state) in word for word in words) and not is_new:
            found.append(" ".join(words))
    return found
