"""Synthetic studies on disk, written through the store as a run would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import ClientWarning, SliceRow, Trial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySection, StudySpec
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import OBSERVED_SCHEMA, PROVIDER_SCHEMA, SLICES_SCHEMA, TIMELINE_SCHEMA, WAITS_SCHEMA
from tests.verdict.screens import plan_of, screened, screening_study
from tests.verdict.slices import Turn, alternate, interleaved_plan
from tests.verdict.studies import LoadPoint, make_plan, noisy, run

from .browser import browser

__all__ = ["browser"]

POINTS = [
    LoadPoint(workload=workload, scale=20, clients=clients, protocol="prepared")
    for workload in ("select-only", "tpcb-like")
    for clients in (1, 8, 32)
]


Changes = dict[int, dict[int, float]]
"""Changes of speed by index of the trial: the second of the measured part from which on a factor applies to the tps."""


def write_study(
    path: Path,
    plan: Plan,
    trials: list[Trial],
    audit: Audit,
    question: str,
    *,
    changes: Changes | None = None,
    published: str | None = None,
    slices: Mapping[int, list[SliceRow]] | None = None,
    spec: StudySpec | None = None,
) -> StudyDirectory:
    """Writes a study directory as `pgtrial run` leaves it, without the engine's events. Without `spec`, the study file
    is made from the plan's arms and load points.
    """
    load = plan.load_points
    spec = spec or StudySpec(
        study=StudySection(question=question, name=plan.name, published=published),
        load=LoadSection(
            workload=list(dict.fromkeys(point.workload for point in load)),
            scale=list(dict.fromkeys(point.scale for point in load)),
            clients=list(dict.fromkeys(point.clients for point in load)),
            warmup=plan.warmup_s,
            duration=plan.duration_s,
        ),
        arms={arm: SetUp(settings={"synchronous_commit": arm}) for arm in plan.arms},
    )
    directory = StudyDirectory.create(path, spec, plan)
    for trial in trials:
        where = directory.begin_trial(plan.trials[trial.index])
        timeline(trial, (changes or {}).get(trial.index)).write_parquet(where / "timeline.parquet")
        if slices is not None:
            rows = [row.model_dump() for row in slices[trial.index]]
            pl.DataFrame(rows, schema=SLICES_SCHEMA).write_parquet(where / "slices.parquet")
        directory.write_trials([trial])
    for arm in plan.arms:
        directory.write_facts(facts(arm).model_copy(update={"deployment": 0 if plan.deployments > 1 else None}))
    directory.write_audit(audit)
    return directory


def timeline(trial: Trial, changes: dict[int, float] | None = None) -> pl.DataFrame:
    """Returns the trial's seconds, with a rising warm-up; no rows when it failed."""
    rng = np.random.default_rng(trial.index)
    rows = []
    for name, phase in (("warmup", trial.warmup), ("measure", trial.measured)):
        if phase is None:
            continue
        for second in range(int(phase.duration_s)):
            level = next((by for s, by in (changes or {}).items() if name == "measure" and second >= s), 1.0)
            tps = round(phase.tps * level * (1 + 0.03 * rng.standard_normal()))
            lag = 8e6 / max(tps, 1)
            rows.append((name, second, tps, 0, lag, 0.9 * lag, 1.8 * lag, 3.1 * lag, 9 * lag))
    return pl.DataFrame(rows, schema=TIMELINE_SCHEMA, orient="row")


def facts(arm: str) -> Facts:
    return Facts(
        arm=arm,
        collected="2026-11-20T14:12:00Z",
        facts={
            "cpu": {"model": "AMD EPYC 7B13", "cores": 2, "governor": None},
            "memory": {"total_mb": 7951, "huge_pages": False},
            "server": {"version": "18.6", "configure": ["--with-openssl", "--with-lz4"]},
            "settings": {"shared_buffers": "256MB", "synchronous_commit": arm},
        },
    )


THP = Finding(
    rule="thp", severity="info", arms=["on", "off"], message="Transparent huge pages are on.", cure="Nothing to do."
)
LOCALE = Finding(
    rule="undeclared",
    severity="warning",
    arms=["on", "off"],
    message="server.locale differs and the study did not declare it: C, en_US.UTF-8.",
    cure="Give both arms the same initdb options.",
)
FSYNC = Finding(
    rule="durability",
    severity="withhold",
    arms=["on", "off"],
    message="fsync is off in one arm only, which the study did not declare.",
    cure="Make durability equal, or declare the difference.",
)

Studies = Callable[[str], StudyDirectory]


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Studies:
    """Studies by name: the keys of _MAKERS."""
    made: dict[str, StudyDirectory] = {}

    def study(name: str) -> StudyDirectory:
        if name not in made:
            made[name] = _MAKERS[name](tmp_path_factory.mktemp(name) / "study")
        return made[name]

    return study


@pytest.fixture(scope="session")
def reports(studies: Studies) -> Studies:
    """Returns a function that returns a study by its name, like `studies`, after its report was written."""
    return cache(lambda name: _with_report(studies(name)))


def _with_report(study: StudyDirectory) -> StudyDirectory:
    build_report(study)
    return study


def demo(path: Path) -> StudyDirectory:
    plan = make_plan()
    audit = Audit(findings=[THP, LOCALE])
    question = "How much does synchronous_commit = off gain on TPC-B-like transactions?"
    return write_study(path, plan, run(plan, noisy({"off": 1.41}, sd=0.03)), audit, question)


def grid(path: Path) -> StudyDirectory:
    plan = make_plan(("15", "16", "17", "18"), points=POINTS, blocks=12, duration_s=8.0)
    base = {1: 900.0, 8: 4200.0, 32: 6100.0}
    tps = noisy({"16": 1.01, "17": 1.06, "18": 0.93}, base=1.0, sd=0.03)
    trials = run(plan, lambda p: tps(p) * base[POINTS[p.load_point].clients] * (6 if p.load_point < 3 else 1))
    return write_study(path, plan, trials, Audit(findings=[THP]), "Has PostgreSQL become faster from 15 to 18?")


def long(path: Path) -> StudyDirectory:
    """A study of so many trials that its HTML report contains the rows of the trials and the charts in
    compressed form.
    """
    plan = make_plan(("a", "b", "c"), points=POINTS[:2], blocks=150)
    return write_study(path, plan, run(plan, noisy({"b": 1.02})), Audit(findings=[]), "Is b faster?")


def sizes(path: Path) -> StudyDirectory:
    """A study at two scales, one of which exceeds shared_buffers; its report shows published figures of both arms for
    comparison.
    """
    points = [
        LoadPoint(workload="tpcb-like", scale=scale, clients=clients, protocol="prepared")
        for scale in (10, 40)
        for clients in (1, 8)
    ]
    plan = make_plan(("ext4", "ext4-nobarrier"), points=points)
    tps = noisy({"ext4-nobarrier": 5.2}, base=1.0, sd=0.03)
    base = [90.0, 160.0, 54.0, 96.0]
    trials = run(plan, lambda p: tps(p) * base[p.load_point])
    question = "What does the write barrier cost?"
    return write_study(path, plan, trials, Audit(findings=[]), question, published="filesystem-durability")


def rated(path: Path) -> StudyDirectory:
    """A study at two rates, whose engine reports its use of CPU and in the first trial a warning."""
    points = [POINTS[1].model_copy(update={"rate": rate}) for rate in (500.0, 1000.0)]
    plan = make_plan(points=points)
    told = {"cpu_per_transaction_us": 3.25, "warnings": []}
    warned = {**told, "warnings": [ClientWarning(kind="client-busy", message="The busiest thread was busy.")]}
    trials = [
        trial.model_copy(
            update={"client": trial.client and trial.client.model_copy(update=told if trial.index else warned)}
        )
        for trial in run(plan, lambda planned: points[planned.load_point].rate)
    ]
    return write_study(path, plan, trials, Audit(findings=[]), "Which answers sooner?")


def withheld(path: Path) -> StudyDirectory:
    plan = make_plan()
    return write_study(path, plan, run(plan, noisy({"off": 1.4})), Audit(findings=[THP, FSYNC]), "Is off faster?")


COLLAPSE_S = 34


def collapsing(path: Path) -> StudyDirectory:
    """A study in which the baseline has a constant speed. The other arm is twice as fast until its credits are
    used up.
    """
    plan = make_plan(duration_s=60.0)
    trials = run(plan, noisy({"off": 2.0}))
    changed = {trial.index: {COLLAPSE_S: 0.25} for trial in trials if trial.arm == "off"}
    return write_study(path, plan, trials, Audit(findings=[]), "Does a burst last?", changes=changed)


def hostile(path: Path) -> StudyDirectory:
    """Words of others that would break out of HTML, script or Markdown."""
    arms = ("</script><script>alert(1)</script>", "a|b*<b>'\"")
    plan = make_plan(arms)
    trials = [
        trial.model_copy(update={"notes": ["</td><img src=x onerror=alert(2)>"]}) for trial in run(plan, noisy({}))
    ]
    return write_study(path, plan, trials, Audit(findings=[]), "<script>alert(3)</script> & `code`?")


def named_as_data(path: Path) -> StudyDirectory:
    """Arms that are called as the data of charts is, at two load points."""
    plan = make_plan(("rows0", "rows of b"), points=POINTS[:2], blocks=8)
    return write_study(path, plan, run(plan, noisy({})), Audit(findings=[]), "Which rows?")


def failing(path: Path) -> StudyDirectory:
    plan = make_plan(blocks=12)
    tps = noisy({"off": 1.3})
    trials = run(plan, lambda p: None if p.block == 4 or (p.block, p.arm) == (7, "off") else tps(p), upto=21)
    return write_study(path, plan, trials, Audit(findings=[]), "What happens when trials fail?")


def interleaved(path: Path) -> StudyDirectory:
    """A study with alternating arms. The arm `off` is slower in slices after `on`, and one trial failed."""
    plan = interleaved_plan(blocks=12, points=POINTS[3:5])
    rng = np.random.default_rng(4)

    def tps(turn: Turn) -> float:
        arm = turn.planned.arm
        lost = 0.2 if arm == "off" and turn.follows("on") else 0.0
        return 4000.0 * (1.3 if arm == "off" else 1.0) * (1 - lost) * float(np.exp(0.03 * rng.standard_normal()))

    trials, slices = alternate(plan, tps)
    last = trials[-1]
    trials[-1] = last.model_copy(update={"status": "failed", "measured": None, "reason": "the server was lost"})
    slices[last.index] = []
    return write_study(path, plan, trials, Audit(findings=[]), "Does off gain side by side?", slices=slices)


def disturbed(path: Path) -> StudyDirectory:
    """Returns a study with a folder of a discarded block, as an earlier version of pgtrial left it."""
    plan = make_plan(blocks=8)
    study = write_study(path, plan, run(plan, noisy({"off": 1.4})), Audit(findings=[]), "Was the machine quiet?")
    (path / "voided" / "b02-1").mkdir(parents=True)
    return study


def began(path: Path) -> StudyDirectory:
    plan = make_plan()
    return write_study(path, plan, run(plan, noisy({"off": 1.4}), upto=5), Audit(findings=[]), "Is it running?")


def empty(path: Path) -> StudyDirectory:
    return write_study(path, make_plan(), [], Audit(findings=[]), "Is there nothing yet?")


def watched(path: Path) -> StudyDirectory:
    """A study of two arms. `on` waits for WAL, sampling took a share of the server's CPU, and flushes of WAL were
    counted.
    """
    plan = make_plan()
    cost = {"samples": 12.0, "transactions": 18.0, "lab_cpu_s": 0.012, "statements_s": 0.02, "server_cpu_s": 0.006}
    trials = [
        trial.model_copy(
            update={
                "server_deltas": {
                    "sampler": cost,
                    "wal": {"wal_sync": trial.measured.transactions * (1.0 if trial.arm == "on" else 0.5)},
                }
            }
        )
        for trial in run(plan, noisy({"off": 1.4}))
        if trial.measured
    ]
    study = write_study(path, plan, trials, Audit(findings=[]), "Why is it?")
    for trial in trials:
        waits(trial.arm == "on", range(-2, 6)).write_parquet(study.trial_path(trial) / "waits.parquet")
    return study


def sessions(second: int, event: str | None, number: float, state: str = "active") -> tuple[Any, ...]:
    kind = None if event is None else "Client" if event == "ClientRead" else "IO"
    return (second, "client backend", kind, event, state, number)


def waits(slower: bool, seconds: range) -> pl.DataFrame:
    rows = []
    for second in seconds:
        rows += [sessions(second, None, 1.5), sessions(second, "ClientRead", 2.0, "idle in transaction")]
        rows += [sessions(second, "WalSync", 4.0)] if slower else []
        rows.append((second, "walwriter", "Activity", "WalWriterMain", None, 1.0))
    return pl.DataFrame(rows, schema=WAITS_SCHEMA, orient="row")


def hosted(path: Path) -> StudyDirectory:
    """A study on the lab's own machine, with statements, and with a provider's metrics."""
    plan = make_plan()
    trials = run(plan, noisy({"off": 1.4}))
    study = write_study(path, plan, trials, Audit(findings=[]), "What did the server do?")
    for trial in trials:
        host(trial).write_parquet(study.trial_path(trial) / "observed.parquet")
        study.write_provider_metrics(trial, provided({"CPUUtilization": [42.0]}, since=0, span=6))
    return study


def host(trial: Trial, seconds: range = range(-2, 6)) -> pl.DataFrame:
    """Returns the host's counters in a trial: in `on` the host writes to the device and waits for it; in `off` it uses
    more CPU.
    """
    rows: list[tuple[int | None, str, str, float]] = []
    for second in seconds:
        rows += [(second, "cpu", "user_s", 0.5), (second, "cpu", "nice_s", 0.25), (second, "cpu", "idle_s", 1.0)]
        rows += [(second, "memory", "dirty_bytes", 50e6)]
        if trial.arm == "on":
            rows += [(second, "device", "written_bytes", 8e6), (second, "pressure", "io_some_s", 0.4)]
            rows += [(second, "cpu", "iowait_s", 0.2)]
        else:
            rows += [(second, "cpu", "system_s", 0.5), (second, "device", "reads", 1.0)]
    gained = {"calls": 100.0, "exec_ms": 50.0, "rows": 200.0, "blks_hit": 9.0, "blks_read": 25.0, "wal_bytes": 4e4}
    for text, times in (("UPDATE accounts: SET x = $1", 3.0), ("SELECT $1", 1.0)):
        rows += [(None, "pg_stat_statements", f"{name}: {text}", times * value) for name, value in gained.items()]
    return pl.DataFrame(rows, schema=OBSERVED_SCHEMA, orient="row")


def provided(values: dict[str, list[float]], *, since: int = -90, span: int = 60) -> pl.DataFrame:
    rows = [
        (since + place * span, "cloudwatch", name, value, span)
        for name, series in values.items()
        for place, value in enumerate(series)
    ]
    return pl.DataFrame(rows, schema=PROVIDER_SCHEMA, orient="row")


def screening(path: Path) -> StudyDirectory:
    """A study that screens four factors, of which two matter and two interact."""
    spec = screening_study(study={"question": "Which of four settings matter?", "name": "synthetic"})
    plan = plan_of(spec)
    trials = screened(plan, {"shared_buffers": 0.2, "jit": -0.1}, pairs={("jit", "work_mem"): 0.3})
    return write_study(path, plan, trials, Audit(findings=[]), spec.study.question, spec=spec)


_MAKERS = {
    "demo": demo,
    "grid": grid,
    "long": long,
    "sizes": sizes,
    "rated": rated,
    "collapsing": collapsing,
    "watched": watched,
    "hosted": hosted,
    "withheld": withheld,
    "hostile": hostile,
    "named_as_data": named_as_data,
    "failing": failing,
    "disturbed": disturbed,
    "interleaved": interleaved,
    "began": began,
    "empty": empty,
    "screening": screening,
}
