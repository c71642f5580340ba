"""The durability probe: how fast the data volume (and WAL's, if elsewhere) says that 8 kB are safe."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from pgtrial.facts.collect import Subject, collector

_BLOCK = b"\x5a" * 8192
_FILE_MB = 16
_SECONDS = 1.0
_PATIENCE_S = 20.0
_PG_TEST_FSYNC = re.compile(r"fdatasync\s+([\d.]+) ops/sec\s+(\d+) usecs/op")

Rates = dict[str, Any]
"""flushes_per_s: whole number; flush_us: microseconds of one flush; flush_tool: what measured."""


@collector("probes")
def flush_rates(subject: Subject) -> Rates:
    """Of the volume of the data directory; with `wal_` in front that of pg_wal where it lies on another device."""
    if not subject.measure or not subject.ours or subject.data_directory is None:
        return {}
    program = _pg_test_fsync(subject)
    found = flush_rate(subject.data_directory, program)
    wal = subject.data_directory / "pg_wal"
    if _elsewhere(wal, subject.data_directory):
        found |= {f"wal_{name}": value for name, value in flush_rate(wal.resolve(), program).items()}
    return found


def flush_rate(directory: Path, program: Path | None = None) -> Rates:
    """By pg_test_fsync if that is given and works, else by a probe of our own; None each where nobody may write."""
    try:
        with probe_file(directory) as path:
            measured = (_by_pg_test_fsync(program, path) if program is not None else None) or own_probe(path)
    except OSError:
        measured = {}
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
    typical = median(times)
    return {
        "flushes_per_s": round(1 / typical),
        "flush_us": round(typical * 1e6, 1),
        "flush_tool": f"own probe, {flush.__name__}",
    }


def parse_pg_test_fsync(line: str) -> Rates | None:
    """Its line on fdatasync."""
    found = _PG_TEST_FSYNC.search(line)
    if found is None:
        return None
    rate = float(found[1])
    return {"flushes_per_s": round(rate), "flush_us": round(1e6 / rate, 1), "flush_tool": "pg_test_fsync, fdatasync"}


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
    limit = threading.Timer(_PATIENCE_S, process.kill)
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


def _pg_test_fsync(subject: Subject) -> Path | None:
    directory = subject.value("SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
    program = Path(directory or "/nonexistent") / "pg_test_fsync"
    return program if program.is_file() else None


def _elsewhere(wal: Path, data_directory: Path) -> bool:
    try:
        return wal.stat().st_dev != data_directory.stat().st_dev
    except OSError:
        return False
