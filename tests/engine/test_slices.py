"""Engines that take turns in slices of time: they agree without talking, and count what overruns."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.events import Event, done_of, events_of, histogram, of_kind, summed, wait_for
from tests.engine.programs import Ended, Program, ended
from tests.engine.sysbench.sides import ours as sysbench
from tests.slice_order import Slices

pytestmark = pytest.mark.server


SLICE_S = 0.1
ROUNDS = 10
SEED = 9
CLIENTS = 3
LEADS_S = (2.0, 10.0, 40.0)
"""The times between telling the engines when to start and that start, seconds. An engine that a busy machine lets read
that only afterwards refuses to run, and all are started again with the next, longer time.
"""
PAST = "from which all engines count their slices: give a later time"


def planned(participant: int, of: int) -> list[float]:
    """Returns the times at which a participant's slices must begin according to the lab, seconds since the start."""
    turns = islice(Slices(SLICE_S, of, SEED).turns(), ROUNDS * of)
    return [number * SLICE_S for number, turn in enumerate(turns) if turn == participant]


def slice_options(participant: int, of: int, at: str) -> list[str]:
    length = f"--slice={SLICE_S * 1000:.0f}ms"
    return [length, f"--slice-of={participant + 1}/{of}", f"--slice-seed={SEED}", f"--start-at={at}"]


def take_turns(
    program: Program, targets: list[Target], tmp_path: Path, args: Callable[[int, Path], list[str]]
) -> list[tuple[Ended, list[Event]]]:
    """Runs an engine on each target, all at once; returns the result and the events of each."""
    for lead_s in LEADS_S:
        told = take_turns_after(lead_s, program, targets, tmp_path, args)
        if not any(PAST in done.stdout + done.stderr for done, _ in told):
            break
    for done, _ in told:
        assert done.status == 0, (done.stdout, done.stderr)
    return told


def take_turns_after(
    lead_s: float, program: Program, targets: list[Target], tmp_path: Path, args: Callable[[int, Path], list[str]]
) -> list[tuple[Ended, list[Event]]]:
    """Runs the engines once, which are to start after `lead_s` seconds; returns the result and the events of each, also
    of one that has refused.
    """
    paths = [tmp_path / f"events-{lead_s:g}-{number}" for number in range(len(targets))]
    running: list[subprocess.Popen[str]] = [
        program.start(
            target, [*slice_options(number, len(targets), "-"), *args(number, path)], directory=tmp_path, typed=True
        )
        for number, (target, path) in enumerate(zip(targets, paths, strict=True))
    ]
    for path in paths:
        wait_for(path, lambda events: bool(of_kind(events, "ready")))
    start = f"{time.time() + lead_s:.6f}\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write(start)
        process.stdin.flush()
    told = []
    for process, path in zip(running, paths, strict=True):
        with process:
            told.append((ended(process), events_of(path.read_text())))
    return told


def take_turns_at_200_tps(
    program: Program, targets: list[Target], tmp_path: Path, args: Callable[[int, Path], list[str]]
) -> list[tuple[Ended, list[Event]]]:
    """Takes turns at this rate for a second of each engine's own time; again, up to twice, if an engine did less than
    half of it, since a busy machine kept it from the end of its time.
    """
    for attempt in range(3):
        (tmp_path / str(attempt)).mkdir()
        told = take_turns(program, targets, tmp_path / str(attempt), args)
        counts = [done_of(events)["measure"]["transactions"] for _, events in told]
        # 200 and a deviation of 14: twice as many if starts were scheduled in the other's slices too
        assert max(counts) < 300
        if min(counts) > 100:
            return told
    pytest.fail(f"the engines did {counts} transactions")


def assert_turns(told: list[list[Event]], warmup_rounds: int) -> None:
    """Asserts that each engine reported every planned slice at its time, and that the slices add up to the totals of
    the run.
    """
    for number, events in enumerate(told):
        ticks = of_kind(events, "tick")
        slices = [tick["slice"] for tick in ticks]
        assert [one["round"] for one in slices] == list(range(ROUNDS))
        assert [one["planned_begin_s"] for one in slices] == pytest.approx(planned(number, len(told)))
        assert all(one["planned_end_s"] - one["planned_begin_s"] == pytest.approx(SLICE_S) for one in slices)
        # A slice that is next to the former one may begin with what that has overrun; none begins before its time.
        assert all(one["begin_s"] >= one["planned_begin_s"] - 1e-9 for one in slices if one["begin_s"] is not None)
        assert all(one["client_s"] >= 0 for one in slices)
        assert [tick["phase"] for tick in ticks] == ["warmup"] * warmup_rounds + ["measure"] * (ROUNDS - warmup_rounds)
        done = done_of(events)
        for phase in ("warmup", "measure"):
            of_phase = of_kind(events, "tick", phase=phase)
            if of_phase:
                assert summed(of_phase)[0] == done[phase]["transactions"]
                assert sum(tick["slice"]["client_s"] for tick in of_phase) == pytest.approx(done[phase]["client_s"])
        assert done["drain"]["transactions"] == 0
        assert done["measure"]["transactions"] > 0
        assert done["measure"]["duration_s"] == pytest.approx((ROUNDS - warmup_rounds) * SLICE_S * len(told))


def assert_apart(told: list[list[Event]]) -> None:
    """Asserts that no client of one engine works in a slice of the other, except to end the transaction that it began
    in its own slice.

    Such a transaction ends at most the longest reported latency after the slice.
    """
    for events in told:
        ticks = of_kind(events, "tick")
        longest_s = max(tick["latency_us"]["max"] for tick in ticks if tick["latency_us"]) / 1e6
        for one in (tick["slice"] for tick in ticks if tick["slice"]["end_s"] is not None):
            assert one["end_s"] - one["planned_end_s"] <= longest_s + 1e-6


@pytest.fixture
def targets(fresh) -> list[Target]:
    return [fresh(18), fresh(18)]


def test_two_engines_take_turns(peers, targets, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text("\\set aid random(1, 100)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n")

    def args(number: int, path: Path) -> list[str]:
        what = ["-S", "-M", "prepared"] if number else ["-f", str(script), "-j", "2"]
        return ["-n", "-c", str(CLIENTS), "--warmup=1", "-T", "1", "--events", str(path), *what]

    told = take_turns(peers[1], targets, tmp_path, args)
    events = [one for _, one in told]
    assert_turns(events, warmup_rounds=5)
    assert_apart(events)
    for number, (done, one) in enumerate(told):
        assert one[0]["plan"]["slices"] == {"length_s": SLICE_S, "number": number + 1, "of": 2, "seed": str(SEED)}
        assert f"slices: engine {number + 1} of 2, 100 ms each" in done.stdout
        measure = done_of(one)["measure"]
        tps = measure["transactions"] * CLIENTS / measure["client_s"]
        assert f"tps = {tps:.6f} " in done.stdout


def test_transactions_that_overrun_are_finished_and_counted_with_their_time(peers, targets, tmp_path):
    script = tmp_path / "slow.sql"
    script.write_text("SELECT pg_sleep(0.03);\n")

    def args(number: int, path: Path) -> list[str]:
        return ["-n", "-c", str(CLIENTS), "-T", "2", "--events", str(path), "-f", str(script)]

    events = [one for _, one in take_turns(peers[1], targets, tmp_path, args)]
    assert_turns(events, warmup_rounds=0)
    for one in events:
        measure = done_of(one)["measure"]
        # Each client's time is that of its transactions and of the moments between them, in which a busy machine may
        # stop the engine. Without the overruns it would be shorter than its transactions, by a seventh.
        spent = measure["transactions"] * measure["latency_us"]["mean"] / 1e6
        assert spent * (1 - 1e-4) <= measure["client_s"] <= spent * 1.1


def test_threads_of_sysbench_take_turns(targets, tmp_path):
    side = sysbench()
    test = ["oltp_point_select", "--table-size=100", "--tables=1"]
    for target in targets:
        assert side.run(target, *test, "prepare", directory=tmp_path).status == 0

    def args(_number: int, path: Path) -> list[str]:
        return [*test, f"--threads={CLIENTS}", "--time=1", "--warmup-time=1", f"--jsonl={path}", "run"]

    told = take_turns(side, targets, tmp_path, args)
    events = [one for _, one in told]
    assert_turns(events, warmup_rounds=5)
    assert_apart(events)
    for done, one in told:
        assert f"({own_tps(of_kind(one, 'tick', phase='measure')):.2f} per sec.)" in done.stdout


OWN_S = SLICE_S * ROUNDS
"""An engine's time of a load without warm-up."""


def own_tps(ticks: list[Event]) -> float:
    """Transactions per second of these slices."""
    return sum(tick["transactions"] for tick in ticks) * CLIENTS / sum(tick["slice"]["client_s"] for tick in ticks)


def assert_kept_to_slices(events: list[Event]) -> None:
    """Asserts that with a rate clients count for at most the length of each slice, whatever overruns it, and that lags
    do not include the slices of others.
    """
    for tick in of_kind(events, "tick"):
        assert tick["slice"]["client_s"] <= CLIENTS * SLICE_S + 1e-9
    measure = done_of(events)["measure"]
    lags, service = (histogram([measure[f"{key}_histogram"]]) for key in ("lag", "service"))
    # but for the three digits of the histograms
    assert lags.get_max_value() <= 1e9 * OWN_S * 1.001
    parts_us = (lags.get_mean_value() + service.get_mean_value()) / 1000
    assert measure["latency_us"]["mean"] == pytest.approx(parts_us, rel=5e-3, abs=3)


def test_starts_at_a_rate_are_scheduled_in_own_slices_and_wait_for_the_next_ones(peers, targets, tmp_path):
    """More of them than can be begun: those that are left at the end of a slice are begun in the next one."""
    script = tmp_path / "slow.sql"
    script.write_text("SELECT pg_sleep(0.03);\n")

    def args(_number: int, path: Path) -> list[str]:
        what = ["-f", str(script), "-R", "400", "--random-seed=1"]
        return ["-n", "-c", str(CLIENTS), "-T", "2", "--events", str(path), *what]

    told = take_turns(peers[1], targets, tmp_path, args)
    assert_turns([one for _, one in told], warmup_rounds=0)
    for _, one in told:
        assert_kept_to_slices(one)
        # the last ones have waited for most of the engine's time, and not for the other's as well
        assert done_of(one)["measure"]["lag_us"]["p50"] > 1e5


def test_a_rate_is_that_of_the_engines_own_time_and_so_are_progress_lines(peers, targets, tmp_path):
    def args(number: int, path: Path) -> list[str]:
        jobs = ["-j", str(number + 1), "--random-seed=1"]
        return ["-n", "-S", "-c", str(CLIENTS), "-T", "2", "-R", "200", "-P", "1", "--events", str(path), *jobs]

    told = take_turns_at_200_tps(peers[1], targets, tmp_path, args)
    assert_turns([one for _, one in told], warmup_rounds=0)
    for done, one in told:
        assert_kept_to_slices(one)
        ticks = of_kind(one, "tick")
        assert re.findall(r"^progress: (\S+) s, (\S+) tps", done.stderr, re.M) == [
            ("1.0", f"{own_tps(ticks[:5]):.1f}"),
            ("2.0", f"{own_tps(ticks[5:]):.1f}"),
        ]


def test_the_queue_of_sysbench_and_its_intervals_are_of_own_time(targets, tmp_path):
    side = sysbench()
    test = ["oltp_point_select", "--table-size=100", "--tables=1"]
    for target in targets:
        assert side.run(target, *test, "prepare", directory=tmp_path).status == 0

    def args(_number: int, path: Path) -> list[str]:
        options = ["--rate=200", "--report-interval=1", "--report-checkpoints=1"]
        return [*test, *options, f"--threads={CLIENTS}", "--time=2", f"--jsonl={path}", "run"]

    told = take_turns_at_200_tps(side, targets, tmp_path, args)
    assert_turns([one for _, one in told], warmup_rounds=0)
    for done, one in told:
        assert_kept_to_slices(one)
        ticks = of_kind(one, "tick")
        first, second = (f"{own_tps(own):.2f}" for own in (ticks[:5], ticks[5:]))
        assert re.findall(r"^\[ (\d)s \] thds: 3 tps: (\S+) ", done.stdout, re.M) == [("1", first), ("2", second)]
        assert re.findall(r"transactions: .*\((\S+) per sec\.\)", done.stdout) == [first, second]
        assert len(re.findall(r"^\[ \ds \] queue length: \d+, concurrency: [0-3]$", done.stdout, re.M)) == 2


def test_what_slices_cannot_do_is_said(peers, targets, tmp_path):
    options = slice_options(0, 2, "0")
    for program, args, sentence in [
        (peers[1], ["--pool=1", "--tasks=1"], "--slice cannot be combined with --pool: tasks that wait"),
        (
            peers[1],
            ["-T", "1", "--warmup=0.3"],
            "--warmup=0.3 does not consist of whole rounds of slices (slices per round: 2, of 0.1 s each): the nearest "
            "value that does is 0.4",
        ),
        (peers[1], ["-T", "1"], "give a later time"),
        (peers[1], ["-T", "1", "--slice=9ms"], "a slice must be from 10 ms to 3600 s long"),
        (
            sysbench(),
            ["oltp_point_select", "--slice-of=1/3", "--time=1", "run"],
            "--time=1 does not consist of whole rounds of slices (slices per round: 3, of 0.1 s each): the nearest "
            "value that does is 3",
        ),
        (
            sysbench(),
            ["oltp_point_select", "--forced-shutdown=1", "--time=1", "run"],
            "--forced-shutdown cannot be combined with --slice: transactions that outlast a slice are always finished",
        ),
    ]:
        done = program.run(targets[0], *options, *args, directory=tmp_path)
        assert done.status == 1, (args, done)
        assert sentence in done.stdout + done.stderr, (args, done)
