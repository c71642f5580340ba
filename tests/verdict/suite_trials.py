"""Synthetic studies of suites: what became of each query is given, without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.suite import Cache, QueryAnswer, QueryResult, SuiteLoad, SuiteSummary
from pgtrial.model.records.trial import Trial
from tests.verdict.studies import make_plan, make_trial

LIMIT_S = 10.0


def point(queries: int, cache: Cache = "warm", unchecked: Sequence[str] = ()) -> LoadPoint:
    return LoadPoint(
        workload="suite:shop",
        scale=1,
        clients=1,
        protocol="simple",
        suite=SuiteLoad(
            name="shop",
            queries=[f"q{number}" for number in range(queries)],
            runs=1,
            limit_s=LIMIT_S,
            cache=cache,
            data=None,
            unchecked=list(unchecked),
        ),
    )


@dataclass(frozen=True)
class Query:
    """A query in a trial: its time, None if its run failed; whether it was cancelled; its answers."""

    ms: float | None = 1.0
    over_limit: bool = False
    failures: Mapping[str, int] = field(default_factory=dict)
    answers: Sequence[tuple[int, str | None]] = ((1, "0"),)


Queries = Callable[[PlannedTrial], list[Query] | None]
"""The queries of a planned trial, `q0`, `q1` and so on; None: it failed."""


def run_suites(
    blocks: int,
    queries: Queries,
    cache: Cache = "warm",
    unchecked: Sequence[str] = (),
    *,
    seed: int = 3,
    arms: Sequence[str] = ("a", "b"),
) -> tuple[Plan, list[Trial]]:
    """Returns the plan and the trials of a study of these arms, the baseline first."""
    number = len(queries(PlannedTrial(index=0, block=0, load_point=0, arm=arms[0], seed=1)) or [])
    plan = make_plan(arms, blocks=blocks, points=(point(number, cache, unchecked),), seed=seed)
    return plan, [_trial(plan, planned, queries(planned)) for planned in plan.trials]


def _trial(plan: Plan, planned: PlannedTrial, queries: list[Query] | None) -> Trial:
    if queries is None:
        return make_trial(plan, planned, None)
    trial = make_trial(plan, planned, 100.0)
    results = [
        QueryResult(
            query=f"q{number}",
            times_us=[] if query.ms is None else [1000 * query.ms],
            over_limit=int(query.over_limit),
            failures=dict(query.failures),
            message="ERROR:  division by zero" if query.failures else None,
            answers=[QueryAnswer(rows=rows, rows_hash=rows_hash) for rows, rows_hash in query.answers],
        )
        for number, query in enumerate(queries)
    ]
    return trial.model_copy(update={"suite": SuiteSummary(queries=results, limit_s=LIMIT_S)})
