"""The engine and a server that sends garbage, stalls or lies, at each message of the protocol."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from bench.programs import sysbench_address
from bench.reliability.kind import Attack, Campaign, Figure, Kind
from bench.reliability.liar import FAULTS, Fault, Liar
from bench.reliability.served import resident_kib, served
from pgtrial.loads.process import engine_path, environment
from pgtrial.loads.target import Target

_AT_ONCE = 8
_PATIENCE_S = 1.0
"""The time after which a run that waits for its server is interrupted, as by Ctrl-C, seconds."""

_HONEST_S = 60.0
_TO_END_S = 20.0
_MOST_KIB = 200 * 1024
_MOST_MESSAGES = 200
_POLL_S = 0.01
_TABLES = ("--tables=1", "--table-size=100")

_RUNS: dict[str, tuple[str, ...]] = {
    "select-only, simple": ("pgbench", "-n", "-S", "-t", "3"),
    "select-only, prepared": ("pgbench", "-n", "-S", "-t", "3", "-M", "prepared"),
    "tpcb-like, extended": ("pgbench", "-n", "-t", "2", "-M", "extended", "--max-tries=2"),
    "sysbench": ("sysbench", "oltp_read_write", *_TABLES, "--events=2", "--time=0", "run"),
}
_INTERRUPTED = {130, -signal.SIGINT}
"""The second one before the run, while its set-up is read, as in pgbench."""

_STATUSES = {0, 1, 2, *_INTERRUPTED}


@dataclass(frozen=True)
class Ended:
    """A run of the engine: its status (negative: killed), its messages, the peak of its memory."""

    status: int
    output: str
    peak_kib: int


def _run(campaign: Campaign) -> Iterator[Figure]:
    with served(campaign, {"scale": 1}, {"huge_pages": "off"}) as target:
        socket = Path(target.host) / f".s.PGSQL.{target.port}"
        _prepare_sysbench(target)
        for name, args in _RUNS.items():
            yield _attack(campaign, name, args, target, socket)


def _attack(campaign: Campaign, name: str, args: tuple[str, ...], target: Target, socket: Path) -> Figure:
    """Tries every fault at every message that the server sends in a run without faults."""
    with Liar(socket, None, -1, Random(0)) as honest:
        first = _engine(args, target, honest.port, _HONEST_S)
        messages = min(honest.messages, _MOST_MESSAGES)
    attack = Attack(campaign, "hostile", f"a lie at each message of the server, {name}", messages * len(FAULTS))
    if first.status != 0:
        attack.defect(f"without a lie the run ended with status {first.status}: {first.output}")
    ends: Counter[str] = Counter()

    def lie(at: int, fault: Fault, seed: int) -> Ended:
        with Liar(socket, fault, at, Random(seed)) as liar:
            return _engine(args, target, liar.port, _PATIENCE_S)

    cases = [(at, what, campaign.chance.randrange(1 << 32)) for at in range(messages) for what in FAULTS]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        runs = [threads.submit(lie, at, FAULTS[what], seed) for at, what, seed in cases]
        try:
            for (at, what, _), run in zip(cases, runs, strict=True):
                ended = run.result()
                ends[_how(ended.status)] += 1
                for trouble in _troubles(ended):
                    attack.defect(f"{what} at message {at} of {name}: {trouble}")
                attack.done()
        finally:
            threads.shutdown(cancel_futures=True)
    counts = ", ".join(f"{count:,} {how}" for how, count in sorted(ends.items()))
    return attack.figure(f"{len(FAULTS)} lies at each of {messages} messages: {counts}")


def _how(status: int) -> str:
    if status in _INTERRUPTED:
        return "interrupted"
    return "ended well" if status == 0 else "refused"


def _troubles(ended: Ended) -> Iterator[str]:
    """Yields the failures of a run that are defects whatever its server does."""
    if ended.status not in _STATUSES:
        yield f"status {ended.status}: {ended.output[-200:]}"
    elif ended.status in (1, 2) and not ended.output.strip():
        yield f"status {ended.status} without a word"
    if "panicked" in ended.output:
        yield ended.output[-200:]
    if ended.peak_kib > _MOST_KIB:
        yield f"{ended.peak_kib} KiB of memory"


def _engine(args: tuple[str, ...], target: Target, port: int, patience_s: float) -> Ended:
    """Run the engine through a port. One that does not end by itself is interrupted, and killed if it goes on."""
    there = replace(target, host="127.0.0.1", port=port, extra={"sslmode": "disable"})
    address = sysbench_address(there) if args[0] == "sysbench" else []
    command = [str(engine_path()), *args[:2], *address, *args[2:]]
    with subprocess.Popen(
        command,
        env=environment(there.environment()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        began, peak, interrupted = time.monotonic(), 0, False
        while process.poll() is None:
            peak = max(peak, resident_kib(process.pid))
            elapsed = time.monotonic() - began
            if elapsed > patience_s and not interrupted:
                process.send_signal(signal.SIGINT)
                interrupted = True
            if elapsed > patience_s + _TO_END_S:
                process.kill()
            time.sleep(_POLL_S)
        output = process.stdout.read() if process.stdout else ""
    return Ended(process.returncode, output, peak)


def _prepare_sysbench(target: Target) -> None:
    command = [str(engine_path()), "sysbench", "oltp_read_write", *_TABLES, *sysbench_address(target), "prepare"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


KIND = Kind("hostile", lambda campaign: 600.0, _run)
