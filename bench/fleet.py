"""Measures the cost of a load that several engines share under Ray, and how exactly the engines begin together."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.measures import Bench, Figure, at_least, at_most
from bench.programs import OURS, Failed
from pgtrial.loads.engine import Event
from pgtrial.loads.fleet.fleet import load_maker
from pgtrial.loads.load_makers import Each, LoadMaker, LoadOrder
from pgtrial.model.errors import PgtrialError
from pgtrial.model.study.spec import StudySpec

CLIENTS = 8
ENGINES = 2
_GRACE_S = 60.0
_ARMS = {"server": {}, "unused": {}}
_FLEET = {"address": "local", "machines": ENGINES, "share_machines": True}


@dataclass(frozen=True)
class _Ran:
    tps: float
    skew_us: float
    """The time from the first to the last engine that begins, microseconds."""


def fleet(bench: Bench) -> Iterator[Figure]:
    """Transactions per second of two engines of one thread each, and of one with two."""
    with ExitStack() as stack:
        makers = {}
        try:
            for name, more in {"one": {}, "shared": {"fleet": _FLEET}}.items():
                spec = StudySpec.model_validate({"arms": _ARMS, **more})
                makers[name] = stack.enter_context(load_maker(spec, bench.report))
        except PgtrialError as error:
            raise Failed(str(error)) from None
        contestants = {name: lambda maker=maker: _run(bench, maker) for name, maker in makers.items()}
        runs = bench.interleave("one engine, and two under Ray", contestants)
    command = f"pgtrial-engine pgbench {' '.join(_options(1, Each(ENGINES)))}, twice, and merged"
    for name, ran in runs.items():
        what = "one engine of two threads" if name == "one" else "two engines of one thread under Ray"
        yield Figure(f"tps, {what}", "", {OURS: [run.tps for run in ran]}, command)
    ratios = [two.tps / one.tps for one, two in zip(runs["one"], runs["shared"], strict=True)]
    yield Figure("tps of two engines / of one", "", {OURS: ratios}, command, places=3, goal=at_least(0.95))
    skews = [run.skew_us / 1000 for run in runs["shared"]]
    yield Figure("from the first to the last engine's start", "ms", {OURS: skews}, command, places=2, goal=at_most(5))


def _run(bench: Bench, maker: LoadMaker) -> _Ran:
    with tempfile.TemporaryDirectory(dir=bench.scratch) as folder:
        order = LoadOrder(
            "pgbench", lambda each: _options(bench.seconds, each), bench.target, Path(folder) / "events", CLIENTS
        )
        done: Event = {}
        maker.ready(bench.report)
        with maker.started(order) as run:
            for event in run.events(time.monotonic() + bench.seconds + _GRACE_S):
                done = event
            if run.finish() != 0:
                raise Failed(run.trouble or run.last_words())
            starts = [share.start_skew_us or 0.0 for share in run.machines(done)] or [0.0]
    return _Ran(done["measure"]["tps"], max(starts) - min(starts))


def _options(seconds: int, each: Each) -> list[str]:
    threads = ENGINES // each.engines
    limit = ["-T", str(seconds), "--random-seed", "1"]
    return ["-n", "-b", "select-only", "-M", "prepared", "-c", str(CLIENTS), "-j", str(threads), *limit]
