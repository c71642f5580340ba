"""The durability probe: how fast the data volume (and WAL's, if elsewhere) says that 8 kB are safe."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import Files
from pgtrial.facts.flush_elsewhere import flush_rate_elsewhere
from pgtrial.facts.flush_rate import PATIENCE_S, Rates, parse_pg_test_fsync, rates_of
from pgtrial.facts.mounted import volume_of
from pgtrial.facts.storage import wal_elsewhere
from pgtrial.host.machine import LOCAL, Machine
from pgtrial.host.windows import WindowsHost

_BLOCK = b"\x5a" * 8192
_FILE_MB = 16
_SECONDS = 1.0


@collector("probes")
def flush_rates(subject: Subject) -> Rates:
    """Of the volume of the data directory; with `wal_` in front that of pg_wal where it lies on another device."""
    files, machine, data = subject.files, subject.machine, subject.data_directory
    if not subject.measure or not subject.ours or data is None or files is None:
        return {}
    if machine is None or isinstance(machine, WindowsHost):
        return {}
    program = _pg_test_fsync(subject, files)
    found = flush_rate(machine, data, program)
    wal = wal_elsewhere(files, data)
    if wal is not None and _device(files, wal) != _device(files, data):
        found |= {f"wal_{name}": value for name, value in flush_rate(machine, wal, program).items()}
    return found


def flush_rate(machine: Machine, directory: Path, program: Path | None = None) -> Rates:
    """By pg_test_fsync if that is given and works, else by a probe of our own; None each where nobody may write."""
    measured: Rates = {}
    with suppress(OSError):
        if machine is LOCAL:
            with probe_file(directory) as path:
                measured = (_by_pg_test_fsync(program, path) if program is not None else None) or own_probe(path)
        else:
            measured = flush_rate_elsewhere(machine, directory, program)
    return {name: measured.get(name) for name in ("flushes_per_s", "flush_us", "flush_tool")}


def own_probe(path: Path, seconds: float = _SECONDS, file_mb: int = _FILE_MB) -> Rates:
    """Write 8 kB at the start of a file that has its size already, flush, and again. Raises OSError.

    The time of a flush is the median's, for others may use the device meanwhile; the rate is what follows from it.
    """
    flush = getattr(os, "fdatasync", os.fsync)
    times: list[float] = []
    with path.open("r+b", buffering=0) as file:
        file.write(b"\0" * (file_mb << 20))
        os.fsync(file.fileno())
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end or not times:
            file.seek(0)
            file.write(_BLOCK)
            flush(file.fileno())
            times.append(time.perf_counter() - begin)
    return rates_of(median(times), f"own probe, {flush.__name__}")


def _by_pg_test_fsync(program: Path, path: Path) -> Rates | None:
    """Its first measurement of fdatasync; the other half minute of its methods is not waited for."""
    try:
        process = subprocess.Popen(
            [program, "-s", "1", "-f", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError:
        return None
    limit = threading.Timer(PATIENCE_S, process.kill)
    limit.start()
    try:
        return next((told for line in process.stdout or () if (told := parse_pg_test_fsync(line)) is not None), None)
    finally:
        limit.cancel()
        process.terminate()
        process.communicate()


@contextmanager
def probe_file(directory: Path) -> Iterator[Path]:
    """An empty file on the volume, gone afterwards, also where pg_test_fsync has removed it."""
    number, name = tempfile.mkstemp(prefix="pgtrial-flush-", dir=directory)
    os.close(number)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _device(files: Files, directory: Path) -> str | None:
    volume = volume_of(files, directory)
    return None if volume is None else volume.device or str(volume.target)


def _pg_test_fsync(subject: Subject, files: Files) -> Path | None:
    directory = subject.value("SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
    program = Path(directory or "/nonexistent") / "pg_test_fsync"
    return program if files.exists(program) else None
