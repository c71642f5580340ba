"""The durability probe on another host: by pg_test_fsync where it is, else by dd, else not at all."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from pgtrial.facts.flush_rate import PATIENCE_S, Rates, parse_pg_test_fsync, rates_of
from pgtrial.host.machine import HostError, Machine

_PG_TEST_FSYNC = """"$1" -s 1 -f "$2" 2>/dev/null | sed '/fdatasync .*ops/q'"""
"""Its next line ends it, since nobody reads that: the other half minute of its methods is not waited for."""

_ALLOCATE = 'dd if=/dev/zero of="$1" bs=1048576 count=16 conv=fsync 2>/dev/null && '
_DD = 'LC_ALL=C dd if=/dev/zero of="$1" bs=8192 count="$2" conv=notrunc oflag=dsync 2>&1'
_FEW = 20
_MOST = 2048
"""Writes of 8 kB that the file has room for."""

_SECONDS = 0.8
_COPIED = re.compile(r"copied, ([\d.e+-]+) s")


def flush_rate_elsewhere(machine: Machine, directory: Path, program: Path | None) -> Rates:
    """Of the volume of a directory of that host; nothing is left there. Raises HostLost if the machine is gone."""
    file = directory / f"pgtrial-flush-{secrets.token_hex(6)}"
    try:
        return (None if program is None else _by_pg_test_fsync(machine, file, program)) or _by_dd(machine, file) or {}
    finally:
        machine.unlink(file)


def parse_dd(text: str, count: int) -> Rates | None:
    """GNU dd's last line: `163840 bytes (164 kB, 160 KiB) copied, 0.0123 s, 13.3 MB/s`."""
    found = _COPIED.search(text)
    if found is None or float(found[1]) <= 0:
        return None
    return rates_of(float(found[1]) / count, "dd, dsync")


def _by_pg_test_fsync(machine: Machine, file: Path, program: Path) -> Rates | None:
    try:
        said = machine.run(["sh", "-c", _PG_TEST_FSYNC, "sh", program, file], timeout_s=PATIENCE_S).stdout
    except HostError:  # too slow
        return None
    return next((told for line in said.splitlines() if (told := parse_pg_test_fsync(line)) is not None), None)


def _by_dd(machine: Machine, file: Path) -> Rates | None:
    first = parse_dd(machine.run(["sh", "-c", _ALLOCATE + _DD, "sh", file, str(_FEW)]).stdout, _FEW)
    if first is None:
        return None
    count = min(_MOST, int(first["flushes_per_s"] * _SECONDS))
    if count <= _FEW:
        return first
    return parse_dd(machine.run(["sh", "-c", _DD, "sh", file, str(count)]).stdout, count)
