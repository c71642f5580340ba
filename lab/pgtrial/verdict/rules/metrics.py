"""Rules on the metrics that a study declares: whether a verdict by the first metric, which decides the study, is
reliable, and which metrics only repeat the throughput."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from pgtrial.model.metrics import PERCENTILES
from pgtrial.verdict.declared import objection
from pgtrial.verdict.rules.case import Case, Concern, rule


@rule("metric_does_not_stand", "the primary metric does not stand", over_trials=True)
def metric_does_not_stand(case: Case) -> Iterator[Concern]:
    """Finds studies whose first metric, which decides the verdict, is not reliable, such as a percentile with too few
    slower transactions."""
    plan, grid = case.plan, case.grid
    if not plan.metrics:
        return
    name = plan.metrics[0]
    for arm, point in product(plan.others, grid.points):
        served = [trial for of in (arm, plan.baseline) for trial in grid.of(of, point) if grid.goodput(trial)]
        reason = objection(plan, name, served)
        if reason is not None:
            percentile = name in PERCENTILES
            yield Concern(
                [arm],
                f"The claim on {name} does not stand: {reason}.",
                "Find out why transactions fail; or make the trials longer ([load] duration), raise [load] rate, or "
                "declare a lower percentile."
                if percentile
                else "Declare another metric first ([verdict] metrics).",
                "withhold",
                cells=[(arm, point)],
            )


@rule("closed_loop", "metrics that follow from the throughput", over_trials=True)
def closed_loop(case: Case) -> Iterator[Concern]:
    """Finds metrics that only repeat the throughput. In a closed loop a client starts a transaction when its last one
    has ended, so that the response time follows from the throughput."""
    names = case.plan.repeated_metrics
    if names and case.trials:
        yield Concern(
            case.others,
            f"The load is a closed loop: {' and '.join(names)} follow from the throughput, and a stall delays few "
            "transactions.",
            "Give the study a rate ([load] rate) that all arms can serve.",
        )
