"""Many clients for a long time: 1,000 that write to a server, and 10,000 that are idle or slow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine.events import events_of, of_kind, summed

from bench.programs import null_server
from bench.reliability.kind import Attack, Campaign, Figure, Kind
from bench.reliability.served import Watched, open_files, run_engine, served
from pgtrial.loads.target import Target

WRITERS, IDLERS = 1_000, 10_000
_SCALE = 50
_SETTINGS = {"max_connections": str(WRITERS + 20), "shared_buffers": "512MB", "huge_pages": "off"}
_FILES = IDLERS + 1_000
_IDLE = "\\sleep 500 ms\nSELECT 1;\n"
_SLOW = "mix:0.5*0,0.5*exponential:2s"
"""The delays of the null server: half of the statements are answered at once, the others take two seconds in the
mean.
"""


def _run(campaign: Campaign) -> Iterator[Figure]:
    with open_files(_FILES):
        yield _writers(campaign)
        yield _idlers(campaign)


def _writers(campaign: Campaign) -> Figure:
    attack = Attack(campaign, "crowds", f"{WRITERS:,} clients that write", 1)
    with served(campaign, {"scale": _SCALE}, _SETTINGS) as target:
        before = _books(target)
        run, events = _load(campaign, attack, target, ["-N", "-M", "prepared", "-c", str(WRITERS)])
        after = _books(target)
    attack.done()
    reported = _processed(run)
    rows, delta, balance = (new - old for new, old in zip(after, before, strict=True))
    if rows != reported:
        attack.defect(f"{reported} transactions were reported and {rows} rows written")
    if delta != balance:
        attack.defect(f"the history adds up to {delta} and the balances to {balance}")
    return attack.figure(f"{reported:,} transactions, each one in the tables; {_memory_of(run)}{_lost(events)}")


def _idlers(campaign: Campaign) -> Figure:
    attack = Attack(campaign, "crowds", f"{IDLERS:,} clients that are idle or wait for a slow server", 1)
    script = campaign.scratch / "idle.sql"
    script.write_text(_IDLE)
    with null_server(campaign.scratch, "--delay", _SLOW) as target:
        run, events = _load(campaign, attack, target, ["-f", str(script), "-c", str(IDLERS)])
    attack.done()
    return attack.figure(f"{_processed(run):,} transactions; {_memory_of(run)}{_lost(events)}")


def _load(campaign: Campaign, attack: Attack, target: Target, more: list[str]) -> tuple[Watched, list[dict[str, Any]]]:
    """Runs a load of `load_s` seconds, which must end well, with consistent events and memory that does not grow."""
    path: Path = campaign.scratch / "events"
    seconds = f"{campaign.load_s:.0f}"
    run = run_engine(target, ["pgbench", "-n", "-j", "2", "-T", seconds, "--events", str(path), *more])
    if run.status != 0 or "panicked" in run.stderr:
        last = run.stderr.strip().splitlines()[-1:] or ["nothing"]
        attack.defect(f"the engine ended with status {run.status}: {last[0]}")
    if run.grew:
        attack.defect(f"memory grew from {run.steady_kib} to {run.last_kib} KiB")
    events = events_of(path.read_text())
    _check_sums(attack, events)
    path.unlink()
    return run, events


def _check_sums(attack: Attack, events: list[dict[str, Any]]) -> None:
    """Checks that the reports of all seconds of a phase add up to the phase's summary."""
    end = events[-1] if events else {"event": "nothing"}
    if end["event"] != "done":
        attack.defect(f"the events end with {end['event']}")
        return
    for phase in ("measure", "drain"):
        transactions, failures = summed(of_kind(events, "tick", phase=phase))
        reported = (end[phase]["transactions"], end[phase]["failures"]) if end[phase] else (0, {})
        if (transactions, dict(failures)) != reported:
            attack.defect(
                f"the seconds of {phase} add up to {transactions}, {dict(failures)}, and the end says {reported}"
            )


def _books(target: Target) -> tuple[int, int, int]:
    """Rows and sum of the history, and the sum of all balances."""
    with target.connect_as_user() as connection:
        row = connection.execute(
            "SELECT count(*), coalesce(sum(delta), 0), (SELECT sum(abalance) FROM pgbench_accounts)"
            " FROM pgbench_history"
        ).fetchone()
    assert row is not None
    rows, delta, balance = map(int, row)
    return rows, delta, balance


def _processed(run: Watched) -> int:
    found = re.search(r"actually processed: (\d+)", run.stdout)
    return int(found[1]) if found else 0


def _memory_of(run: Watched) -> str:
    return f"{run.steady_kib / 1024:.1f} MB of memory after a fifth of the time, {run.last_kib / 1024:.1f} at the end"


def _lost(events: list[dict[str, Any]]) -> str:
    if not events or events[-1]["event"] != "done":
        return "; it did not come to its end"
    end = events[-1]
    failures = sum(end["measure"]["failures"].values()) if end["measure"] else 0
    return f"; {failures} failed, {end['clients_aborted']} clients given up" if failures else "; none failed"


KIND = Kind("crowds", lambda campaign: 2 * campaign.load_s + 60, _run)
