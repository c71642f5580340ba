"""Reads the counters of hosts with a Unix shell, by one command for each reading: of Linux from its files, of FreeBSD
with its tools. Other systems are not supported."""

from __future__ import annotations

import re
from pathlib import Path

from pgtrial.evidence.observe.linux import FILES, device_file, linux_snapshot, read
from pgtrial.evidence.observe.system import Snapshot, System, known
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.machines.posix import BOOT_ID
from pgtrial.model.resources import filled, resource

_VALUES = {"boot_id": BOOT_ID, "device_file": device_file("$device"), "files": " ".join(FILES)}
_LOOK = filled(resource("look.sh", __package__), **_VALUES)
"""The script that reads a host's counters. Its arguments are the data directory, the server process of the lab's
session and, once they are known, the device number of the data's disk (major:minor) and the system. If the script has
no right to read the data directory, it takes the parent of the session's process for the postmaster.

On Linux, one grep prints nearly all files, with the name of the file before each line. It leaves out lines that are not
needed, and at the end prints its own CPU time. The script splits st_dev as the C library does (makedev(3)). On FreeBSD,
`ps -S` includes child processes that have ended (ps(1)).
"""

_OF_A_FILE = re.compile(r"(/\S*?/(?:stat|meminfo|dev|cpu|memory|io|schedstat)):(.*)")
_OF_A_PROCESS = re.compile(r"process\s+(\d+)\s+(\d+)\s+(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_USER_HZ = "100"
"""The clock ticks per second on all processors that Linux supports, for hosts without getconf."""

_FREEBSD_MODES = ("user_s", "nice_s", "system_s", "irq_s", "idle_s")
"""The CPU modes in the order of the values in kern.cp_time (CP_USER to CP_IDLE in FreeBSD's sys/resource.h)."""


class Shell(System):
    """Reads the counters of a host by commands in its Unix shell. `session` is the number of the server process there
    that serves the lab's session."""

    def __init__(self, machine: Machine, data_directory: Path | None, session: int | None = None):
        self._machine = machine
        self._data = data_directory
        self._session = session
        self._device = ""
        self._system = ""
        self._ticks_per_s = 0.0

    def look(self) -> Snapshot:
        """Returns the host's counters, with one round trip. Raises HostTrouble if the host is not reachable or refuses
        access."""
        words = [str(self._data or ""), str(self._session or ""), self._device, self._system]
        lines = self._machine.looked(["sh", "-c", _LOOK, "sh", *words]).stdout.splitlines()
        head = dict(line.split(" ", 1) for line in lines if line.startswith(_HEADS))
        self._system = head.get("system", "")
        match self._system:
            case "Linux":
                return self._linux(head, lines)
            case "FreeBSD":
                return _freebsd(lines, head.get("postmaster"), on_labs_machine=self._machine is LOCAL)
        return Snapshot(unsupported=self._system or "a system without uname")

    def _linux(self, head: dict[str, str], lines: list[str]) -> Snapshot:
        if "device" in head:
            self._device = head["device"]
            self._ticks_per_s = float(head["ticks"] if head.get("ticks", "").isdigit() else _USER_HZ)
        texts: dict[str, str] = {}
        for match in map(_OF_A_FILE.fullmatch, lines):
            if match is not None:
                texts[match[1]] = f"{texts.get(match[1], '')}{match[2]}\n"
        postmaster = head.get("postmaster", "")
        spent = (head.get("spent", ""), texts.get("/proc/self/schedstat", "").partition(" ")[0])
        return linux_snapshot(
            texts,
            self._ticks_per_s,
            self._device,
            int(postmaster) if postmaster.isdigit() else None,
            self._session,
            look_cpu_s=sum(int(nanoseconds) / 1e9 for nanoseconds in spent if nanoseconds.isdigit()),
            on_labs_machine=self._machine is LOCAL or head.get("boot", "") == read(BOOT_ID).strip(),
        )


_HEADS = ("system ", "boot ", "ticks ", "device ", "postmaster ", "spent ")


def _freebsd(lines: list[str], postmaster: str | None, *, on_labs_machine: bool) -> Snapshot:
    """Returns the counters from the output of sysctl(8), of netstat(1) in lines that begin with `link`, and of ps(1) in
    lines that begin with `process`."""
    sysctl = dict(line.split(": ", 1) for line in lines if line.startswith(("kern.", "vm.")) and ": " in line)
    rate = re.search(r"stathz = (\d+)", sysctl.get("kern.clockrate", ""))
    ticks = sysctl.get("kern.cp_time", "").split()
    cpu: dict[str, float] = {}
    if rate is not None and len(ticks) == len(_FREEBSD_MODES):
        cpu = {mode: int(count) / int(rate[1]) for mode, count in zip(_FREEBSD_MODES, ticks, strict=True)}
        if sysctl.get("vm.stats.sys.v_swtch", "").isdigit():
            cpu["context_switches"] = float(sysctl["vm.stats.sys.v_swtch"])
    links = [line.split()[1:] for line in lines if line.startswith("link ")]
    # fields are counted from the right, since an interface may have no address: Ibytes Opkts Oerrs Obytes Coll
    carried = [int(words[-2]) + (0 if words[0].startswith("lo") else int(words[-5])) for words in links]
    processes = {} if postmaster is None else _freebsd_server(lines, postmaster)
    counters = {"cpu": cpu, "processes": processes, "network": {"bytes": float(sum(carried))} if carried else {}}
    return Snapshot(known(counters), on_labs_machine=on_labs_machine)


def _freebsd_server(lines: list[str], postmaster: str) -> dict[str, float]:
    seconds = {}
    for match in map(_OF_A_PROCESS.fullmatch, lines):
        if match is not None and postmaster in (match[1], match[2]):
            days, hours, minutes = (int(part or 0) for part in match.group(3, 4, 5))
            seconds[match[1]] = ((days * 24 + hours) * 60 + minutes) * 60 + float(match[6])
    return {"server_cpu_s": sum(seconds.values())} if postmaster in seconds else {}
