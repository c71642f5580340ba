"""A rule on transactions that were rolled back although the script or the program of the load reports no failure.

If a client program catches its errors, or a sysbench script calls `pcall`, a failed transaction counts as work done.
But the server has counted it as rolled back, and for a script the load engine has seen the error. An exception that a
function inside the database catches is not a failure, since the transaction goes on.
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
"""A share of transactions with hidden failures gives no finding up to this value, and neither does a difference of two
such shares. pgtrial's own sessions and the transactions at both ends of the measured part may explain that much."""
_ERRORS = 4.0
"""A difference between an arm and the baseline must also exceed this number of standard errors, which are computed from
the spread of the differences over the blocks."""
_LEAK_S = 1.0
"""The server's counters may include this many seconds of the warm-up in addition to the measured part
(`evidence/observe/views.py`)."""

_CURE = (
    "A transaction that fails takes less time than it would. Have the script or program report its errors, and end "
    "transactions in all arms alike: ROLLBACK in one and COMMIT in the other looks the same."
)


@rule("hidden_failures", "transactions failed that the load does not report", over_trials=True)
def hidden_failures(case: Case) -> Iterator[Concern]:
    """Finds arms with hidden failures, which are failed transactions that the load did not report. Their share must
    differ from the baseline's by more than 0.1% of the transactions, and by more than four standard errors over the
    blocks.

    The verdict is kept if the arm with more of these failures is also the slower one. Replays of recorded sessions and
    suites of queries know the errors of each statement and have rules of their own. If client programs share a server,
    it is not known whose transactions were rolled back; the verdict is then withheld (not given) if more than 0.1% of
    the transactions were rolled back.
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
    """Returns the share of a trial's transactions that failed without being reported or, for a script of the user's own
    in Lua, that had failed statements. Returns None if it is not known."""
    phase = trial.served
    if phase is None or phase.retries is None:
        return None
    if _is_own_lua(trial.load_point):
        errors = phase.statement_errors
        return None if errors is None else min(1.0, errors / max(1, phase.transactions))
    return _rolled_back(phase, trial.server_deltas)


def _is_own_lua(point: LoadPoint) -> bool:
    """True if the load is a Lua script of the user, which may handle errors itself. The load engine has counted these
    errors."""
    return point.sysbench and point.workload.endswith(".lua")


def _rolled_back(phase: Phase | None, deltas: dict[str, dict[str, float]]) -> float | None:
    """Returns the share of transactions that the server rolled back, and that the load neither reported as failed nor
    tried again."""
    database = deltas.get("database", {})
    committed, rolled_back = database.get("xact_commit"), database.get("xact_rollback")
    if phase is None or phase.retries is None or committed is None or rolled_back is None or not phase.duration_s:
        return None
    reported = (sum(phase.failures.values()) + phase.retries) * (1 + _LEAK_S / phase.duration_s)
    return max(0.0, rolled_back - reported) / max(1.0, committed + rolled_back)


def _excess(pairs: list[tuple[float, float]]) -> float | None:
    """Returns by how much the arm's share of hidden failures is larger than the baseline's, on average over the blocks.
    Returns None if the difference is too small to matter."""
    if len(pairs) < 2:
        return None
    differences = [ours - base for base, ours in pairs]
    mean, error = statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(len(differences))
    return mean if abs(mean) > max(_NOTABLE, _ERRORS * error) else None
