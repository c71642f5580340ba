"""What the kernel of the lab's own machine counts, read often: so from /proc alone, a few small files at a time."""

from __future__ import annotations

from pathlib import Path

from pgtrial.observe.host import TICKS_PER_S, device_traffic, network_bytes

_CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MEMORY = {"MemAvailable": "available_bytes", "Cached": "cached_bytes", "Dirty": "dirty_bytes"}

Values = dict[str, dict[str, float]]


class Machine:
    """The host of a server of the lab's own: its data directory and the engine's process are known."""

    def __init__(self, data_directory: Path, engine: int):
        self._data = data_directory
        self._engine = engine
        self._postmaster = _postmaster(data_directory)

    def counters(self) -> Values:
        """What only grows: seconds of CPU by mode and by group of processes, switches, device, network, stalls."""
        found = {
            "cpu": _cpu(),
            "processes": self._groups(),
            "device": device_traffic(self._data),
            "network": network_bytes(),
            "pressure": _pressure(),
        }
        return {source: values for source, values in found.items() if values}

    def gauges(self) -> Values:
        """What does not: memory, in bytes."""
        memory = _memory()
        return {"memory": memory} if memory else {}

    def _groups(self) -> dict[str, float]:
        groups = {"client_cpu_s": process_cpu(self._engine), "server_cpu_s": tree_cpu(self._postmaster)}
        return {name: seconds for name, seconds in groups.items() if seconds is not None}


def process_cpu(pid: int | None, *, with_ended: bool = False) -> float | None:
    """CPU seconds of one process, user and system (proc(5), stat), with those of its children that have ended."""
    if pid is None:
        return None
    words = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(words) < 15:
        return None
    return sum(map(int, words[11 : 15 if with_ended else 13])) / TICKS_PER_S


def precise_cpu(pid: int) -> float | None:
    """CPU seconds of one process of one thread, to the nanosecond where the kernel keeps them so (schedstat)."""
    words = _read(f"/proc/{pid}/schedstat").split()
    return int(words[0]) / 1e9 if words and words[0].isdigit() and int(words[0]) else process_cpu(pid)


def tree_cpu(parent: int | None) -> float | None:
    """CPU seconds of a process, its children and those that have ended; None where the kernel lists no children."""
    own = process_cpu(parent, with_ended=True)
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    if own is None or not listed.exists():
        return None
    return own + sum(process_cpu(int(pid)) or 0.0 for pid in _read(str(listed)).split())


def _postmaster(data_directory: Path) -> int | None:
    first = _read(str(data_directory / "postmaster.pid")).split("\n", 1)[0]
    return int(first) if first.isdigit() else None


def _cpu() -> dict[str, float]:
    """All CPUs together, in seconds by mode, and how often they changed from one thread to another."""
    found: dict[str, float] = {}
    for line in _read("/proc/stat").splitlines():
        word, _, rest = line.partition(" ")
        if word == "cpu":
            ticks = zip(_CPU_MODES, rest.split(), strict=False)
            found |= {f"{mode}_s": int(count) / TICKS_PER_S for mode, count in ticks}
        elif word == "ctxt":
            found["context_switches"] = float(rest)
    return found


def _memory() -> dict[str, float]:
    lines = (line.split() for line in _read("/proc/meminfo").splitlines())
    return {_MEMORY[name]: int(words[0]) * 1024.0 for line, *words in lines if (name := line.rstrip(":")) in _MEMORY}


def _pressure() -> dict[str, float]:
    """Seconds in which some or all processes waited for a resource (the kernel's accounting/psi.rst)."""
    found = {}
    for resource in ("cpu", "memory", "io"):
        for line in _read(f"/proc/pressure/{resource}").splitlines():
            who, _, rest = line.partition(" ")
            found[f"{resource}_{who}_s"] = int(rest.rpartition("total=")[2]) / 1e6
    return found


def _read(path: str) -> str:
    """A file of /proc; empty where there is none, or its process is gone."""
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.readall() or b"").decode(errors="replace")
    except OSError:
        return ""
