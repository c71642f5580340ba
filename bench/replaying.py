"""Replays of captures on the null server: statements per second, instructions per statement, memory per session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from bench.measures import Bench, Figure, at_least, at_most
from bench.programs import OURS, Ran, execute, null_server
from pgtrial.loads.process import engine_path
from pgtrial.loads.target import Target

SESSIONS, STATEMENTS = 64, 10_000
FEW, MANY = 500, 3000
MOST_SESSIONS, THEIR_STATEMENTS, LONG = 10_000, 12, 180
WAIT_S = 3
"""The time for which the many sessions are connected before their first statement, seconds, so that all are open at the
same time. Their statements are so long that they fill a chunk of a capture.
"""
_BEGIN = datetime(2026, 11, 23, tzinfo=UTC)
_FAST = "--as-fast-as-possible"


def replaying(bench: Bench) -> Iterator[Figure]:
    """Captures are made from logs that are written here."""
    yield from _speed(bench)
    yield from _instructions(bench)
    yield from _memory(bench)


def _speed(bench: Bench) -> Iterator[Figure]:
    capture = _capture(bench, "speed", SESSIONS, STATEMENTS)
    with null_server(bench.scratch) as target:
        runs = bench.interleave("replay", {OURS: _replay(target, [_FAST, str(capture)])})
    command = f"pgtrial-engine replay {_FAST} CAPTURE ({SESSIONS} sessions of {STATEMENTS:,} statements)"
    rates = [run.number(r"statements: .* \(([\d.]+) per second\)") for run in runs[OURS]]
    yield Figure("statements per second, replay, null server", "", {OURS: rates}, command, goal=at_least(50_000))
    per_cpu = [SESSIONS * STATEMENTS / run.cpu_s for run in runs[OURS]]
    yield Figure("statements per second of the client's CPU, replay, null server", "", {OURS: per_cpu}, command)


def _instructions(bench: Bench) -> Iterator[Figure]:
    if shutil.which("valgrind") is None:
        bench.skip("instructions of a replay", "valgrind is not here")
        return
    counts = []
    with null_server(bench.scratch) as target:
        for statements in (FEW, MANY):
            capture = _capture(bench, f"instructions-{statements}", 1, statements)
            output = f"--callgrind-out-file={bench.scratch / 'callgrind.out'}"
            ran = _replay(target, [_FAST, str(capture)], "valgrind", "--tool=callgrind", output)()
            counts.append(ran.number(r"Collected : (\d+)"))
    values = {OURS: [(counts[1] - counts[0]) / (MANY - FEW)]}
    command = f"valgrind --tool=callgrind pgtrial-engine replay {_FAST} CAPTURE, {MANY} statements less {FEW}"
    yield Figure("instructions per replayed statement", "", values, command)


def _memory(bench: Bench) -> Iterator[Figure]:
    peaks: dict[int, list[Ran]] = {}
    for sessions in (1, MOST_SESSIONS):
        capture = _capture(bench, f"memory-{sessions}", sessions, THEIR_STATEMENTS, wait_s=WAIT_S, long=LONG)
        with null_server(bench.scratch) as target:
            what = f"memory of a replay, {sessions:,} sessions"
            runs = bench.interleave(what, {OURS: _replay(target, ["-j", "2", str(capture)])}, min(bench.rounds, 3))
        peaks[sessions] = runs[OURS]
    alone = median(run.peak_kib for run in peaks[1])
    values = {OURS: [(run.peak_kib - alone) / (MOST_SESSIONS - 1) for run in peaks[MOST_SESSIONS]]}
    command = (
        f"VmHWM of pgtrial-engine replay -j 2 CAPTURE, {MOST_SESSIONS:,} sessions at the same time, less that of one"
    )
    yield Figure("memory per replayed session", "KiB", values, command, places=2, goal=at_most(4))


def _replay(target: Target, args: list[str], *before: str) -> Callable[[], Ran]:
    return lambda: execute(OURS, [*before, str(engine_path()), "replay", *args], target)


def _capture(bench: Bench, name: str, sessions: int, statements: int, *, wait_s: float = 0, long: int = 0) -> Path:
    """Makes a capture of sessions that begin together and send a statement each millisecond."""
    log, capture = bench.scratch / f"{name}.log", bench.scratch / name
    with log.open("w") as file:
        for session in range(sessions):
            file.write(_line(0, session, "connection authorized: user=u database=d"))
        for number in range(statements):
            at = wait_s + number / 1000
            for session in range(sessions):
                aid = (session * 7919 + number * 104_729) % 100_000 + 1
                more = f" AND filler <> '{'x' * long}'" if long else ""
                text = f"SELECT abalance FROM pgbench_accounts WHERE aid = {aid}{more};"
                file.write(_line(at, session, f"duration: 0.000 ms  statement: {text}"))
    execute(OURS, [str(engine_path()), "capture", str(log), "-o", str(capture), "--prefix", "%m %c "], bench.target)
    log.unlink()
    return capture


def _line(at_s: float, session: int, text: str) -> str:
    at = _BEGIN + timedelta(seconds=at_s)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC 6a000000.{session + 1:x} LOG:  {text}\n"
