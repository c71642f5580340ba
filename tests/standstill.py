"""Hunts chance: while tests run, processes of theirs stand still at random moments, as they may on a busy machine.

`python -m tests.standstill [SEED]` in one terminal, as the tests' own user, and the tests in another; Ctrl-C ends it. A
test that fails stands on timing, unless it stops processes itself: those may be woken early.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress

NAMES = {"initdb", "pg_ctl", "pgbench", "pgtrial", "pgtrial-engine", "postgres", "sysbench"}
"""The programs that the tests may stop. sshd is not among them, since its sandbox forbids the system call with which a
stopped process continues.
"""

NEWBORN = 0.25
"""The share of processes that stand still right after they were made: what begins is what others wait for."""

MEAN_S = 0.15
GAP_S = 0.06
"""The means of how long one stands still, and of the time between two, both exponentially distributed."""


def main() -> None:
    seed = sys.argv[1] if len(sys.argv) > 1 else str(time.time_ns())
    print(f"seed {seed}; processes of the tests stand still until Ctrl-C", flush=True)
    chance = random.Random(seed)
    stopped: dict[int, float] = {}
    for ending in (signal.SIGINT, signal.SIGTERM):  # the first one also in the background, where it is ignored else
        signal.signal(ending, signal.default_int_handler)
    try:
        _hunt(chance, stopped)
    except KeyboardInterrupt:
        print()
    finally:
        for pid in stopped:
            _send(pid, signal.SIGCONT)


def _hunt(chance: random.Random, stopped: dict[int, float]) -> None:
    known = _processes()
    due = time.monotonic()
    while True:
        now = time.monotonic()
        for pid in [pid for pid, until in stopped.items() if until <= now]:
            _send(pid, signal.SIGCONT)
            del stopped[pid]
        found = _processes()
        chosen = [pid for pid in sorted(found - known) if chance.random() < NEWBORN]
        known = found
        if now >= due and found:
            chosen.append(chance.choice(sorted(found)))
            due = now + chance.expovariate(1 / GAP_S)
        for pid in chosen:
            if _running(pid) and _send(pid, signal.SIGSTOP):
                stopped[pid] = now + chance.expovariate(1 / MEAN_S)
        time.sleep(0.004)


def _processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit() and _name(int(name)) in NAMES}


def _name(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().rstrip("\n")
    return ""


def _running(pid: int) -> bool:
    """True if the process is not stopped. A process that something else stopped must not be continued here."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "TtZ"
    return False


def _send(pid: int, which: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, which)
        return True
    return False


if __name__ == "__main__":
    main()
