"""Synthetic studies of replays: what became of each template's statements is given, without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.replay import ReplayLoad, ReplaySummary, StatementTimes, TemplateResult
from pgtrial.model.records.trial import Trial
from tests.verdict.studies import make_plan, make_trial

POINT = LoadPoint(
    workload="replay:monday",
    scale=1,
    clients=1,
    protocol="as recorded",
    replay=ReplayLoad(
        capture="monday",
        data="shop.sql",
        capture_sha256="0" * 64,
        data_sha256="1" * 64,
        sessions=4,
        statements=600,
        speed=None,
        sample=1.0,
        copies=1,
    ),
)


@dataclass(frozen=True)
class Template:
    """Statements of a template in a trial: how long each takes, how many there are, their rows, and their errors."""

    ms: float = 1.0
    statements: int = 100
    rows: int = 100
    failures: Mapping[str, int] = field(default_factory=dict)
    rows_hash: str | None = None
    expected: Mapping[str, int] = field(default_factory=dict)
    missing_failures: Mapping[str, int] = field(default_factory=dict)
    consequences: Mapping[str, int] = field(default_factory=dict)
    missing_consequences: Mapping[str, int] = field(default_factory=dict)


Templates = Callable[[PlannedTrial], list[Template] | None]
"""The templates of a planned trial, numbered from 0; None: it failed."""


def run_replays(blocks: int, templates: Templates, seed: int = 3) -> tuple[Plan, list[Trial]]:
    """Returns the plan and the trials of a study of the arms `a`, the baseline, and `b`."""
    plan = make_plan(("a", "b"), blocks=blocks, points=(POINT,), seed=seed)
    return plan, [_trial(plan, planned, templates(planned)) for planned in plan.trials]


def _trial(plan: Plan, planned: PlannedTrial, templates: list[Template] | None) -> Trial:
    if templates is None:
        return make_trial(plan, planned, None)
    total_s = sum(each.ms * each.statements for each in templates) / 1000
    statements = sum(each.statements for each in templates)
    trial = make_trial(plan, planned, statements / total_s)
    return trial.model_copy(update={"replay": _summary(templates, statements)})


def _summary(templates: list[Template], statements: int) -> ReplaySummary:
    return ReplaySummary(
        statements=statements,
        transactions=statements,
        rows=sum(each.rows for each in templates),
        sessions={"begun": 4, "finished": 4, "refused": 0, "lost": 0, "begun_before": 0, "left_open": 0},
        templates=[_result(number, each) for number, each in enumerate(templates)],
    )


def _result(number: int, template: Template) -> TemplateResult:
    us = 1000 * template.ms
    is_timed = sum(template.failures.values()) < template.statements
    return TemplateResult(
        template=number,
        text=f"SELECT {number}",
        statements=template.statements,
        rows=template.rows,
        rows_hash=template.rows_hash,
        failures=dict(template.failures),
        expected=dict(template.expected),
        missing_failures=dict(template.missing_failures),
        consequences=dict(template.consequences),
        missing_consequences=dict(template.missing_consequences),
        time_us=StatementTimes(mean=us, p50=us, p90=2 * us, p99=3 * us, max=4 * us) if is_timed else None,
    )
