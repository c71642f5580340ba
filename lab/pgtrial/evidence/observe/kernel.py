"""What the texts of Linux's /proc and /sys say, as numbers named alike for every host; nothing is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Values = dict[str, dict[str, float]]
"""Source -> name -> value."""

CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_IDLE = ("idle", "iowait")
_MEMORY = {"MemAvailable": "available_bytes", "Cached": "cached_bytes", "Dirty": "dirty_bytes"}
_SECTOR = 512
"""Bytes of a sector in a block device's statistics, whatever the device's own (the kernel's block/stat.rst)."""


def cpu(stat: str, ticks_per_s: float) -> dict[str, float]:
    """All CPUs together, in seconds by mode, and how often they changed from one thread to another (proc(5), stat).

    The times of guests, which follow those of the modes, are part of user and nice.
    """
    found: dict[str, float] = {}
    for line in stat.splitlines():
        word, _, rest = line.partition(" ")
        if word == "cpu":
            ticks = zip(CPU_MODES, rest.split(), strict=False)
            found |= {f"{mode}_s": int(count) / ticks_per_s for mode, count in ticks}
        elif word == "ctxt":
            found["context_switches"] = float(rest)
    return found


def whole_cpu(modes: Mapping[str, float]) -> dict[str, float]:
    """cpu_s, cpu_busy_s, and what is known of cpu_steal_s and context_switches; nothing from nothing."""
    seconds = {mode: modes[f"{mode}_s"] for mode in CPU_MODES if f"{mode}_s" in modes}
    if not seconds:
        return {}
    stolen = seconds.get("steal", 0.0)
    whole = sum(seconds.values())
    idle = sum(seconds.get(mode, 0.0) for mode in _IDLE)
    found = {"cpu_s": whole, "cpu_busy_s": whole - idle - stolen}
    if "steal" in seconds:
        found["cpu_steal_s"] = stolen
    if "context_switches" in modes:
        found["context_switches"] = modes["context_switches"]
    return found


def memory(meminfo: str) -> dict[str, float]:
    """Bytes that are available, cached, and to be written."""
    lines = (line.split() for line in meminfo.splitlines())
    return {_MEMORY[name]: int(words[0]) * 1024.0 for line, *words in lines if (name := line.rstrip(":")) in _MEMORY}


def pressure(texts: Mapping[str, str]) -> dict[str, float]:
    """`cpu_some_s`, `io_full_s`, ...: seconds in which some or all processes waited for a resource.

    `texts` are the files of /proc/pressure by resource; they count microseconds (the kernel's accounting/psi.rst).
    """
    found = {}
    for resource, text in texts.items():
        for line in text.splitlines():
            who, _, rest = line.partition(" ")
            total = rest.rpartition("total=")[2]
            if total.isdigit():
                found[f"{resource}_{who}_s"] = int(total) / 1e6
    return found


def traffic(stat: str) -> dict[str, float]:
    """read_bytes, reads, written_bytes, writes of a block device (its `stat` in /sys); empty where there is none."""
    words = stat.split()
    if len(words) < 7:
        return {}
    reads, sectors_read, writes, sectors_written = (int(words[place]) for place in (0, 2, 4, 6))
    return {
        "read_bytes": float(sectors_read * _SECTOR),
        "reads": float(reads),
        "written_bytes": float(sectors_written * _SECTOR),
        "writes": float(writes),
    }


def network(dev: str) -> dict[str, float]:
    """bytes: of all interfaces (/proc/net/dev), each packet once; what the loopback interface sends it receives too."""
    carried = []
    for line in dev.splitlines():
        name, parted, rest = line.partition(":")
        words = rest.split()
        if parted and len(words) >= 9:
            received, sent = int(words[0]), int(words[8])
            carried.append(sent if name.strip() == "lo" else received + sent)
    return {"bytes": float(sum(carried))} if carried else {}


def process_cpu(stat: str, ticks_per_s: float, *, with_ended: bool = False) -> float | None:
    """CPU seconds of one process, user and system (proc(5), pid/stat), with those of its children that have ended."""
    words = stat.rpartition(")")[2].split()
    if len(words) < 15:
        return None
    return sum(map(int, words[11 : 15 if with_ended else 13])) / ticks_per_s


def group_cpu(postmaster: int, stats: Iterable[str], ticks_per_s: float) -> float | None:
    """CPU seconds of a server: of the postmaster, of its children, and of those that have ended.

    `stats` are the pid/stat of at least these; None where the postmaster's is not among them.
    """
    own, children = None, 0.0
    for stat in stats:
        number, _, rest = stat.partition(" ")
        words = rest.rpartition(")")[2].split()
        if number == str(postmaster):
            own = process_cpu(stat, ticks_per_s, with_ended=True)
        elif len(words) > 1 and words[1] == str(postmaster):
            children += process_cpu(stat, ticks_per_s) or 0.0
    return None if own is None else own + children


def precise_cpu(schedstat: str, stat: str, ticks_per_s: float) -> float | None:
    """CPU seconds of a process of one thread, to the nanosecond where the kernel keeps them so (pid/schedstat)."""
    words = schedstat.split()
    if words and words[0].isdigit() and int(words[0]):
        return int(words[0]) / 1e9
    return process_cpu(stat, ticks_per_s)
