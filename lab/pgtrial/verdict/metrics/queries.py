"""The comparisons of the single queries of a suite (queries in files): which of them are faster or slower on an arm. At
each look (interim analysis) the queries of a comparison share the allowed probability of a wrong verdict evenly
(Bonferroni), so that all their verdicts hold together.

The time of a query in a trial is the geometric mean of its runs. It is compared within a block, in the same way as
speeds. A run that was cancelled at the time limit counts with this limit, and so does a run that failed while others
succeeded. A query without any time gets the worst rank. The first row of a comparison is about the geometric mean over
all queries, which decides the verdict of the study.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import QueryClaim
from pgtrial.model.records.suite import QueryResult
from pgtrial.model.records.trial import Trial
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metric import Metric
from pgtrial.verdict.series import Series, read


def query_claims(grid: Grid, primary: Sequence[Claim]) -> list[QueryClaim]:
    """Returns the comparisons of each arm with the baseline: first by the mean over all queries, then by the single
    queries in their order. The result is empty if the load is not a suite of query files."""
    queries = queries_of_plan(grid.plan)
    if not queries:
        return []
    return [
        claim
        for whole in primary
        for claim in (_primary(grid, whole), *(_of_query(grid, query, whole) for query in queries))
    ]


def queries_of_plan(plan: Plan) -> list[str]:
    """Returns the queries of the study's suite. The result is empty if the load is not a suite. A study with a suite
    has a single load point."""
    suite = plan.load_points[0].suite
    return suite.queries if suite is not None else []


def series_of_queries(grid: Grid, arm: str) -> list[Series]:
    """Returns the states of the comparisons of the suite's queries on an arm. The result is empty if the load is not a
    suite."""
    return [_series(grid, query, arm) for query in queries_of_plan(grid.plan)]


def result_of(trial: Trial, query: str) -> QueryResult | None:
    """Returns the result of a query in a trial; None if the trial failed or did not run the query."""
    if trial.suite is None or trial.status == "failed":
        return None
    return next((result for result in trial.suite.queries if result.query == query), None)


def _time_us(query: str, trial: Trial) -> float | None:
    result = result_of(trial, query)
    return result.time_us(trial.suite.limit_s) if result is not None and trial.suite is not None else None


def _is_bound(query: str, trial: Trial) -> bool:
    """True if the stored time of a query in a trial is only a lower bound, because some of its runs were cancelled at
    the time limit or failed. Without the limit the query would have taken longer."""
    result = result_of(trial, query)
    return result is not None and result.is_bound


def _series(grid: Grid, query: str, arm: str) -> Series:
    family = grid.plan.sharing(len(queries_of_plan(grid.plan)), in_each_comparison=True)
    # a failed trial gets the worst rank; a pair in which both trials failed does not count
    bound = partial(_is_bound, query) if grid.plan.spending is not None else lambda _: False
    metric = Metric(f"query {query}", "us", partial(_time_us, query), "less", missing="worst", is_bound=bound)
    return read(grid, grid.gains(arm, [0], metric), family, cut=grid.cut(arm, [0], metric), arm=arm)


def _primary(grid: Grid, claim: Claim) -> QueryClaim:
    same = {
        name: getattr(claim, name) for name in ("arm", "baseline", "verdict", "within_margin", "difference", "blocks")
    }
    pair = (claim.arm, claim.baseline)
    values = {arm: _median(grid, arm, lambda trial: trial.suite.mean_us if trial.suite else None) for arm in pair}
    return QueryClaim(**same, query=None, time_us=values, over_limit={}, failed={}, claims=claim.family)


def _of_query(grid: Grid, query: str, claim: Claim) -> QueryClaim:
    series = _series(grid, query, claim.arm)
    pair = (claim.arm, claim.baseline)
    results = {arm: [found for trial in grid.of(arm) if (found := result_of(trial, query)) is not None] for arm in pair}
    return QueryClaim(
        query=query,
        arm=claim.arm,
        baseline=claim.baseline,
        time_us={arm: _median(grid, arm, partial(_time_us, query)) for arm in pair},
        over_limit={arm: sum(result.over_limit for result in results[arm]) for arm in pair},
        failed={arm: sum(sum(result.failures.values()) for result in results[arm]) for arm in pair},
        verdict=series.verdict(withheld=claim.verdict == "withheld"),
        within_margin=series.within_margin,
        difference=series.difference,
        claims=series.asked.family,
        blocks=len(series.used),
        more_blocks=_more_blocks(grid, series),
    )


def _more_blocks(grid: Grid, series: Series) -> int | None:
    if series.decided or series.asked.cut or grid.units.unit != "block":
        return None
    asked = series.asked
    return grid.units.more(list(asked.values.values()), asked.margin, asked.family, grid.counted)


def _median(grid: Grid, arm: str, value: Callable[[Trial], float | None]) -> float | None:
    """Returns the median of a value over the arm's trials that did not fail and in which the value is known; None if
    there is no such trial."""
    known = [found for trial in grid.of(arm) if trial.status != "failed" and (found := value(trial)) is not None]
    return median(known) if known else None
