"""The canary: a short, fixed piece of work without any arm, to see whether the machine is as usual.

A loop of hashing on every CPU, flushes of a small file beside the clusters, and one client of the engine against its
own null server: a way through kernel and client without any arm's server. It takes about a second.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import StatisticsError, fmean, median

import psutil

from pgtrial.evidence.observe.linux import LocalLinux
from pgtrial.evidence.observe.system import whole_cpu
from pgtrial.loads.engine import EngineRun, load_command
from pgtrial.loads.process import begun
from pgtrial.machines.cpus import running_on, usable_cpus
from pgtrial.machines.machine import LOCAL, wait_or_kill
from pgtrial.model.errors import PgtrialError
from pgtrial.model.records.disturbances import CanaryReading

_MIB = bytes(1 << 20)
_BLOCK = b"\x5a" * 8192
_HASHED_MIB = 160
_MOST_THREADS = 16
_FLUSH_S = 0.2
_FLUSH_FILE_MB = 1
_TRANSACTIONS = 40_000
_PATIENCE_S = 20.0
_NULL_SERVER_STOP_S = 5.0

_STALLS = {"cpu": "cpu_some_s", "io": "io_some_s", "memory": "memory_some_s", "memory_full": "memory_full_s"}


class CanaryProbes:
    """Takes one canary after another: `probes()` gives a CanaryReading. No probe raises; what fails is None."""

    def __init__(self, directory: Path, sockets: Path):
        """Both directories exist: `directory` on the volume that is flushed, `sockets` with a path short enough."""
        self._directory = directory
        self._sockets = sockets
        self._before: dict[str, float] = {}

    def __call__(self) -> CanaryReading:
        """Take a canary now."""
        since, self._before = self._before, _counters()
        changes = {name: value - since[name] for name, value in self._before.items() if name in since}
        shares = {name: _share(changes.get(name), changes.get("elapsed_s")) for name in _STALLS}
        cpu_per_s = _cpu_loop()
        return CanaryReading(
            taken=datetime.now(UTC).isoformat(timespec="milliseconds"),
            cpu_per_s=cpu_per_s,
            mhz=_mean_mhz(),
            flushes_per_s=self._flushes(),
            select1_per_s=self._select1(),
            steal_share=_share(changes.get("cpu_steal_s"), changes.get("cpu_s")),
            pressure={name: round(share, 5) for name, share in shares.items() if share is not None},
        )

    def _flushes(self) -> float | None:
        # what a block leaves to be written back would make every canary after one slower than those of the reference
        os.sync()
        with suppress(OSError):
            return _flush_rate(self._directory)
        return None

    def _select1(self) -> float | None:
        """Client and null server take turns on one CPU, so that the scheduler's choice of two does not count."""
        script = self._directory / "select1.sql"
        options = ["-n", "-f", str(script), "-M", "simple", "-c", "1", "-j", "1", "-t", str(_TRANSACTIONS)]
        server = {"PGHOST": str(self._sockets)}
        with suppress(OSError, ValueError, PgtrialError):
            script.write_text("SELECT 1;\n")
            with _on_one_cpu(), self._null_server(), EngineRun(load_command("pgbench", options, server), server) as run:
                for event in run.events(time.monotonic() + _PATIENCE_S):
                    if event["event"] == "done" and event["status"] == 0 and event.get("measure"):
                        return round(float(event["measure"]["tps"]), 1)
        return None

    @contextmanager
    def _null_server(self) -> Iterator[None]:
        """It works in the run's directory: should this lab be killed, the next one finds it there and ends it."""
        command = ["null-server", "--socket-dir", str(self._sockets)]
        with begun(command, {}, stderr=subprocess.DEVNULL, cwd=self._directory) as process:
            try:
                if not process.stdout or not process.stdout.readline():
                    raise OSError("the null server did not start")
                yield
            finally:
                process.terminate()
                wait_or_kill(process, _NULL_SERVER_STOP_S)


def _flush_rate(directory: Path) -> float:
    """Flushes a second: 8 kB are written at the start of a file that has its size already, flushed, and again.

    The time of a flush is the median's, for others may use the device meanwhile. Raises OSError.
    """
    flush = getattr(os, "fdatasync", os.fsync)
    times: list[float] = []
    with tempfile.NamedTemporaryFile(prefix="pgtrial-flush-", dir=directory, buffering=0) as file:
        file.write(bytes(_FLUSH_FILE_MB << 20))
        os.fsync(file.fileno())
        end = time.perf_counter() + _FLUSH_S
        while (begin := time.perf_counter()) < end or not times:
            file.seek(0)
            file.write(_BLOCK)
            flush(file.fileno())
            times.append(time.perf_counter() - begin)
    rate = 1 / median(times)
    return float(round(rate)) if rate >= 1 else float(f"{rate:.2g}")


def _cpu_loop() -> float:
    """MiB of SHA-256 a second, all threads together; hashing does not hold Python's lock."""
    threads = min(len(usable_cpus(LOCAL)), _MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        # the first round starts the threads and wakes the processors
        list(pool.map(_hash, [_HASHED_MIB // 8] * threads))
        begin = time.perf_counter()
        list(pool.map(_hash, [_HASHED_MIB] * threads))
        return round(threads * _HASHED_MIB / (time.perf_counter() - begin), 1)


def _hash(mib: int) -> None:
    digest = hashlib.sha256()
    for _ in range(mib):
        digest.update(_MIB)


def _on_one_cpu() -> AbstractContextManager[None]:
    """The last usable CPU, since interrupts come to the first; where affinity cannot be set, any."""
    return running_on(str(max(usable_cpus(LOCAL))) if hasattr(os, "sched_setaffinity") else None)


def _mean_mhz() -> float | None:
    with suppress(OSError, NotImplementedError, AttributeError, StatisticsError):
        return round(fmean(cpu.current for cpu in psutil.cpu_freq(percpu=True) or [] if cpu.current), 1)
    return None


def _counters() -> dict[str, float]:
    """What grows since the system was started, in seconds; what is not known is not in it."""
    sources = LocalLinux(None).look().counters
    counters = {"elapsed_s": time.monotonic(), **whole_cpu(sources.get("cpu", {}))}
    stalls = sources.get("pressure", {})
    return counters | {name: stalls[kind] for name, kind in _STALLS.items() if kind in stalls}


def _share(part: float | None, whole: float | None) -> float | None:
    """At most 1: the kernel's numbers and the time are not read at the same instant."""
    return min(1.0, part / whole) if part is not None and whole else None
