"""Synthetic studies on disk, written through the store as a run would write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pgtrial.report.build import build_report
from pgtrial.store.directory import TIMELINE_SCHEMA, StudyDirectory
from pgtrial.store.records import Audit, ClientWarning, Facts, Finding, Plan, Trial
from pgtrial.study.spec import LoadSection, SetUp, StudySection, StudySpec

from ..analyse.studies import LoadPoint, make_plan, noisy, run

POINTS = [
    LoadPoint(workload=workload, scale=20, clients=clients, protocol="prepared")
    for workload in ("select-only", "tpcb-like")
    for clients in (1, 8, 32)
]


def write_study(path: Path, plan: Plan, trials: list[Trial], audit: Audit, question: str) -> StudyDirectory:
    """A study directory as `pgtrial run` leaves it, without the engine's events."""
    load = plan.load_points
    spec = StudySpec(
        study=StudySection(question=question, name=plan.name),
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
        timeline(trial).write_parquet(where / "timeline.parquet")
        directory.write_trial(trial)
    for arm in plan.arms:
        directory.write_facts(facts(arm))
    directory.write_audit(audit)
    return directory


def timeline(trial: Trial) -> pl.DataFrame:
    """The trial's seconds, its warm-up rising; no rows when it failed."""
    rng = np.random.default_rng(trial.index)
    rows = []
    for name, phase in (("warmup", trial.warmup), ("measure", trial.measured)):
        if phase is None:
            continue
        for second in range(int(phase.duration_s)):
            tps = round(phase.tps * (1 + 0.03 * rng.standard_normal()))
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
    """Studies by name: demo, grid, withheld, hostile, failing, began, empty."""
    made: dict[str, StudyDirectory] = {}

    def study(name: str) -> StudyDirectory:
        if name not in made:
            made[name] = _MAKERS[name](tmp_path_factory.mktemp(name) / "study")
        return made[name]

    return study


@pytest.fixture(scope="session")
def reports(studies: Studies) -> Studies:
    """The same studies with their reports written."""
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


def rated(path: Path) -> StudyDirectory:
    """At two rates, with an engine that tells what it used; it warned in the first trial."""
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


def hostile(path: Path) -> StudyDirectory:
    """Words of others that would break out of HTML, script or Markdown."""
    arms = ("</script><script>alert(1)</script>", "a|b*<b>'\"")
    plan = make_plan(arms)
    trials = [
        trial.model_copy(update={"notes": ["</td><img src=x onerror=alert(2)>"]}) for trial in run(plan, noisy({}))
    ]
    return write_study(path, plan, trials, Audit(findings=[]), "<script>alert(3)</script> & `code`?")


def failing(path: Path) -> StudyDirectory:
    plan = make_plan(blocks=12)
    tps = noisy({"off": 1.3})
    trials = run(plan, lambda p: None if p.block == 4 or (p.block, p.arm) == (7, "off") else tps(p), upto=21)
    return write_study(path, plan, trials, Audit(findings=[]), "What happens when trials fail?")


def began(path: Path) -> StudyDirectory:
    plan = make_plan()
    return write_study(path, plan, run(plan, noisy({"off": 1.4}), upto=5), Audit(findings=[]), "Is it running?")


def empty(path: Path) -> StudyDirectory:
    return write_study(path, make_plan(), [], Audit(findings=[]), "Is there nothing yet?")


_MAKERS = {
    "demo": demo,
    "grid": grid,
    "rated": rated,
    "withheld": withheld,
    "hostile": hostile,
    "failing": failing,
    "began": began,
    "empty": empty,
}
