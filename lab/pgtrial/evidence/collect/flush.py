"""Measures how fast the volume of the data directory, and that of the WAL, flushes a write of 8 kB, that is, reports
that it is on stable storage."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect.files import Files
from pgtrial.evidence.collect.storage import volume_of, wal_elsewhere
from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.machines.machine import HostError, Machine
from pgtrial.machines.windows import WindowsHost


@collector("probes", measures=True)
def flush_rates(subject: Subject) -> Rates:
    """Returns the flush rate of the data directory's volume and, with the prefix `wal_`, that of pg_wal if it is on
    another device."""
    files, machine, data = subject.host, subject.machine, subject.data_directory
    if not subject.ours or data is None or machine is None or isinstance(machine, WindowsHost):
        return {}
    program = _pg_test_fsync(subject, files)
    rates = flush_rate(machine, data, program, subject.account)
    wal = wal_elsewhere(files, data)
    if wal is not None and _device(files, wal) != _device(files, data):
        rates |= {f"wal_{name}": value for name, value in flush_rate(machine, wal, program, subject.account).items()}
    return rates


def flush_rate(machine: Machine, directory: Path, program: Path | None = None, account: str | None = None) -> Rates:
    """Measures the flush rate of the volume of a directory with GNU dd, or with pg_test_fsync if that is given and dd
    does not work. The values are None if neither works.

    dd makes at most 2,068 flushes. pg_test_fsync takes two seconds, all of them processor time if flushes are fast. The
    function leaves no file in the directory. The commands run as `account`, the owner of the directory (None for the
    lab's own account), since this account could replace the test file by a link to another file, and its server decides
    which program runs as pg_test_fsync. Raises HostLost if the machine is not reachable any more.
    """
    file = directory / f"pgtrial-flush-{secrets.token_hex(6)}"
    probe = _Probe(machine, file, account)
    measured: Rates = {}
    with suppress(HostError):  # a command was too slow, or somebody replaced the file by a pipe
        try:
            measured = _by_dd(probe) or (_by_pg_test_fsync(probe, program) if program else None) or {}
        finally:
            probe.run("rm", "-f", file)
    return {name: measured.get(name) for name in ("flushes_per_s", "flush_us", "flush_tool")}


def _device(files: Files, directory: Path) -> str | None:
    volume = volume_of(files, directory)
    return None if volume is None else volume.device or str(volume.target)


def _pg_test_fsync(subject: Subject, files: Files) -> Path | None:
    directory = subject.value("SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
    program = Path(directory or "/nonexistent") / "pg_test_fsync"
    return program if files.exists(program) else None


PATIENCE_S = 60.0
"""The time limit for pg_test_fsync, in seconds, which is enough for a device that stalls while the file is created."""

_DD_PATIENCE_S = 120.0
"""The time limit for dd, in seconds, which is enough for a device that stalls for seconds at each of the first 20
flushes."""

_PG_TEST_FSYNC = re.compile(r"fdatasync\s+([\d.]+) ops/sec\s+(\d+) usecs/op")

Rates = dict[str, Any]
"""The facts of a measurement: flushes_per_s, which is a whole number if it is at least 1; flush_us, the microseconds of
one flush; flush_tool, the name of the tool."""


def rates_of(flush_s: float, tool: str) -> Rates:
    """Returns the facts of a measurement in which one flush took `flush_s` seconds; `tool` is the program that measured
    it. For a device that stalls for seconds, the rate is below 1 but not 0."""
    rate = 1 / flush_s
    return {
        "flushes_per_s": round(rate) if rate >= 1 else float(f"{rate:.2g}"),
        "flush_us": round(flush_s * 1e6, 1),
        "flush_tool": tool,
    }


def parse_pg_test_fsync(text: str) -> Rates | None:
    """Returns the facts of the flush rate from the line about fdatasync in the output of pg_test_fsync; None if there
    is none."""
    per_s = _positive(_PG_TEST_FSYNC, text)
    return None if per_s is None else rates_of(1 / per_s, "pg_test_fsync, fdatasync")


_ASK_PG_TEST_FSYNC = """
sh -c 'echo "$$"; exec "$0" -s 1 -f "$1" 2>/dev/null' "$1" "$2" |
{ read -r pid && sed '/fdatasync .*ops/q' && kill "$pid" 2>/dev/null; true; }
"""
"""The script that runs pg_test_fsync, and ends it after the line about fdatasync: measuring the other methods of
flushing that it knows would take half a minute."""

_ALLOCATE = 'dd if=/dev/zero of="$1" bs=1048576 count=16 conv=fsync 2>/dev/null && '
_DD = 'LC_ALL=C dd if=/dev/zero of="$1" bs=8192 count="$2" conv=notrunc oflag=dsync 2>&1'
_FEW = 20
_MOST = 2048
"""The largest number of flushes that one measurement with dd makes. Each flush writes 8 kB, and the test file has space
for this number of writes."""

_FLUSHING_S = 0.8
_COPIED = re.compile(r"copied, ([\d.e+-]+) s")


def parse_dd(text: str, count: int) -> Rates | None:
    """Returns the facts from the last line that GNU dd printed after `count` flushes: `163840 bytes (164 kB, 160 KiB)
    copied, 0.0123 s, 13.3 MB/s`."""
    taken_s = _positive(_COPIED, text)
    return None if taken_s is None else rates_of(taken_s / count, "dd, dsync")


def _positive(pattern: re.Pattern[str], text: str) -> float | None:
    """Returns the number that the pattern finds in the text; None if it finds no number, or zero."""
    match = pattern.search(text)
    return (float(match[1]) or None) if match else None


@dataclass(frozen=True)
class _Probe:
    """The file that a measurement of the flush rate writes, and the account that owns the file's directory and runs the
    commands."""

    machine: Machine
    file: Path
    account: str | None

    def run(self, *command: str | Path, timeout_s: float = _DD_PATIENCE_S) -> str:
        """Runs a command and returns its output. Raises HostError if it cannot be started or does not end in time."""
        return self.machine.run(command, user=self.account, timeout_s=timeout_s).stdout


def _by_pg_test_fsync(probe: _Probe, program: Path) -> Rates | None:
    return parse_pg_test_fsync(
        probe.run("sh", "-c", _ASK_PG_TEST_FSYNC, "sh", program, probe.file, timeout_s=PATIENCE_S)
    )


def _by_dd(probe: _Probe) -> Rates | None:
    first = parse_dd(probe.run("sh", "-c", _ALLOCATE + _DD, "sh", probe.file, str(_FEW)), _FEW)
    if first is None:
        return None
    count = min(_MOST, int(first["flushes_per_s"] * _FLUSHING_S))
    if count <= _FEW:
        return first
    return parse_dd(probe.run("sh", "-c", _DD, "sh", probe.file, str(count)), count)
