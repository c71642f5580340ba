"""A rule on transactions that were rolled back although the script or the program of the load reports no failure.

A client program that catches its errors, and a script of sysbench's that calls `pcall`, count failures as work done.
The server has counted them as rolled back, and the engine has seen the errors of a script. An exception that a function
catches itself is neither: the transaction goes on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.trial import Phase, Trial
from pgtrial.model.units import percent
from pgtrial.verdict.rules.case import Case, Concern, rule
from pgtrial.verdict.rules.failures import worse_arms

_NOTABLE = 0.001
"""The share of hidden failures, or the difference of two shares, up to which there is no finding. The lab's own
sessions and the transactions at the edges of the measured part may account for that much."""
_ERRORS = 4.0
"""The number of standard errors of the mean difference over the blocks that a difference must exceed as well."""
_LEAK_S = 1.0
"""The seconds of warm-up that the server's counters may hold besides the measured part
(`evidence/observe/views.py`)."""

_CURE = (
    "A transaction that fails takes less time than it would. Have the script or program report its errors, and end "
    "transactions in all arms alike: ROLLBACK in one and COMMIT in the other looks the same."
)


@rule("hidden_failures", "transactions failed that the load does not report", over_trials=True)
def hidden_failures(case: Case) -> Iterator[Concern]:
    """Finds arms whose unreported failures differ by over 0.1% of the transactions and four standard errors over
    blocks.

    A verdict stands if the arm with more of them is the slower one. Replays and suites know each statement's errors,
    and have rules of their own. If client programs share a server, nobody knows whose transactions were rolled back;
    then more than 0.1% of rolled-back transactions withhold the verdict.
    """
    for number, point in enumerate(case.plan.load_points):
        if point.kind.knows_each_statement:
            continue
        if case.plan.shares_server and not point.kind.counts_failures:
            yield from _on_shared_server(case, number, point)
            continue
        for arm in case.others:
            pairs = [(_share(base), _share(trial)) for base, trial in case.pairs(arm, point)]
            known = [(base, ours) for base, ours in pairs if base is not None and ours is not None]
            if (excess := _excess(known)) is None:
                continue
            agrees = (arm in worse_arms(case)) == (excess > 0)
            theirs, ours = (percent(statistics.fmean(side)) for side in zip(*known, strict=True))
            what = "transactions had statements that failed" if _is_own_lua(point) else "transactions were rolled back"
            yield Concern(
                [case.baseline, arm],
                f"In {arm} {ours} of the {what} without a failure that the load reports, and {theirs} in "
                f"{case.baseline}.",
                _CURE,
                "warning" if agrees else "withhold",
                cells=[(arm, number)],
            )


def _on_shared_server(case: Case, number: int, point: LoadPoint) -> Iterator[Concern]:
    trials = [trial for trial in case.completed(None, point) if trial.shared_deltas]
    shares = [share for trial in trials if (share := _rolled_back(trial.measured, trial.shared_deltas)) is not None]
    if shares and (mean := statistics.fmean(shares)) > _NOTABLE:
        yield Concern(
            case.plan.arms,
            f"{percent(mean)} of the transactions on the server were rolled back without a failure that a client "
            "program reports, and the arms share the server, so that nobody knows whose they were.",
            f"Give each arm a server of its own ([load] share_server = false), which counts them for each. {_CURE}",
            "withhold",
            cells=[(arm, number) for arm in case.others],
        )


def _share(trial: Trial) -> float | None:
    """Returns the share of a trial's transactions that failed unreported, or had such statements; None if unknown."""
    phase = trial.served
    if phase is None or phase.retries is None:
        return None
    if _is_own_lua(trial.load_point):
        errors = phase.statement_errors
        return None if errors is None else min(1.0, errors / max(1, phase.transactions))
    return _rolled_back(phase, trial.server_deltas)


def _is_own_lua(point: LoadPoint) -> bool:
    """True if a script of the user's own handles errors; the engine has counted them."""
    return point.sysbench and point.workload.endswith(".lua")


def _rolled_back(phase: Phase | None, deltas: dict[str, dict[str, float]]) -> float | None:
    """Returns the share of transactions that the server rolled back and the load neither reported nor tried again."""
    database = deltas.get("database", {})
    committed, rolled_back = database.get("xact_commit"), database.get("xact_rollback")
    if phase is None or phase.retries is None or committed is None or rolled_back is None or not phase.duration_s:
        return None
    told = (sum(phase.failures.values()) + phase.retries) * (1 + _LEAK_S / phase.duration_s)
    return max(0.0, rolled_back - told) / max(1.0, committed + rolled_back)


def _excess(pairs: list[tuple[float, float]]) -> float | None:
    """Returns by how much the arm's share is larger on average over the blocks; None if that is not notable."""
    if len(pairs) < 2:
        return None
    differences = [ours - base for base, ours in pairs]
    mean, error = statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(len(differences))
    return mean if abs(mean) > max(_NOTABLE, _ERRORS * error) else None
