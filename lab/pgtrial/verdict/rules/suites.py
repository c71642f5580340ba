"""Rules on suites: whether queries give the same answers, whether queries fail, and whether caches were empty if the
study asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgtrial.model.records.suite import QueryAnswer, QueryResult
from pgtrial.model.records.trial import Trial
from pgtrial.model.units import shortened
from pgtrial.verdict.rules.case import Case, Concern, rule

_SHOWN = 100
"""The number of characters of a server's message that are shown."""
_NAMED = 5
"""The number of queries that a message names."""

_BLOCK_BYTES = 8192
_LEAST_READ = 1.0
"""The smallest number of blocks that a query reads if shared buffers are empty. Reading the system catalogs alone takes
more than this."""
_LEAST_SHARE = 0.1
"""If the kernel's cache was empty, the host reads at least this share of the query's blocks from its devices."""


def _results(case: Case, arm: str) -> dict[str, list[QueryResult]]:
    """Returns the results of each query in the completed trials of an arm."""
    found: dict[str, list[QueryResult]] = {}
    for trial in case.completed(arm):
        for result in trial.suite.queries if trial.suite is not None else ():
            found.setdefault(result.query, []).append(result)
    return found


def _answers(results: Sequence[QueryResult]) -> list[QueryAnswer]:
    """Returns the different answers that a query gave in all trials."""
    return list(dict.fromkeys(answer for result in results for answer in result.answers))


def _named(queries: Sequence[str]) -> str:
    more = f" and {len(queries) - _NAMED} more" if len(queries) > _NAMED else ""
    return f"{', '.join(queries)}" if not more else f"{', '.join(queries[:_NAMED])}{more}"


@rule("unequal_results", "queries do not return the same rows", over_trials=True)
def unequal_results(case: Case) -> Iterator[Concern]:
    """Finds queries that return other rows than on the baseline, although each of the two arms always returns the same
    rows. The difference then comes from the arm and not from chance.

    Another number of rows withholds the verdict, since the query does not do the same work. With the same number, other
    values are a warning: a LIMIT or a sum of floating-point numbers may return them with another plan.
    """
    unchecked = {name for point in case.plan.load_points if point.suite is not None for name in point.suite.unchecked}
    base = _results(case, case.baseline)
    for arm in case.others:
        other = _results(case, arm)
        odd = {}
        for query in base.keys() & other.keys() - unchecked:
            ours, theirs = _answers(base[query]), _answers(other[query])
            if len(ours) == len(theirs) == 1 and ours != theirs:
                odd[query] = (ours[0], theirs[0])
        if odd:
            ranked = sorted(odd, key=lambda query: (odd[query][0].rows == odd[query][1].rows, query))
            mine, other_answer = odd[ranked[0]]
            unlike = (
                f"{mine.rows:,} rows in {case.baseline} and {other_answer.rows:,} in {arm}"
                if mine.rows != other_answer.rows
                else f"{mine.rows:,} rows in both, with the hashes {mine.rows_hash} in {case.baseline} and "
                f"{other_answer.rows_hash} in {arm}"
            )
            more = f"; also {_named(ranked[1:])}" if len(odd) > 1 else ""
            yield Concern(
                [case.baseline, arm],
                f"The query {ranked[0]} does not return the same rows: {unlike}{more}.",
                "Find out which answer is right before the faster arm is chosen; where a difference is meant, name the "
                "query in [load.suite] unchecked.",
                "withhold" if mine.rows != other_answer.rows else "warning",
            )


@rule("unsteady_results", "results of queries change from run to run", over_trials=True)
def unsteady_results(case: Case) -> Iterator[Concern]:
    """Finds queries that give several different answers on one arm. Their results cannot be compared between arms."""
    unchecked = {name for point in case.plan.load_points if point.suite is not None for name in point.suite.unchecked}
    odd: dict[str, list[str]] = {}
    for arm in [case.baseline, *case.others]:
        for query, results in _results(case, arm).items():
            if query not in unchecked and len(_answers(results)) > 1:
                odd.setdefault(query, []).append(arm)
    if odd:
        arms = [arm for arm in case.plan.arms if any(arm in of_query for of_query in odd.values())]
        yield Concern(
            arms,
            f"Results change from run to run, and cannot be compared between arms: {_named(sorted(odd))}.",
            "Give such a query an order (ORDER BY before LIMIT), and no random values or present times; or name it in "
            "[load.suite] unchecked.",
        )


@rule("failed_queries", "queries fail", over_trials=True)
def failed_queries(case: Case) -> Iterator[Concern]:
    """Finds queries that end with an error on an arm. It yields one concern (problem) for each arm, about the query
    that fails most often."""
    for arm in [case.baseline, *case.others]:
        failed = {
            query: failing
            for query, results in _results(case, arm).items()
            if (failing := [result for result in results if result.failures])
        }
        if failed:
            worst = max(failed, key=lambda query: (len(failed[query]), query))
            times = sum(sum(result.failures.values()) for result in failed[worst])
            words = " ".join((failed[worst][0].message or "").removeprefix("ERROR:").split())
            more = f"; also {_named(sorted(query for query in failed if query != worst))}" if len(failed) > 1 else ""
            yield Concern(
                [arm],
                f"The query {worst} fails in {arm}, {times:,} times: {shortened(words, _SHOWN)}{more}.",
                "What fails costs less than what is answered: give all arms the data and the schema that the queries "
                "need.",
            )


@rule("over_limit", "queries were cancelled at the limit", over_trials=True)
def over_limit(case: Case) -> Iterator[Concern]:
    """Finds queries that were cancelled at the time limit on an arm. The limit then counts as their time."""
    for arm in [case.baseline, *case.others]:
        cut = sorted(query for query, results in _results(case, arm).items() if any(r.over_limit for r in results))
        limits = [point.suite.limit_s for point in case.plan.load_points if point.suite is not None]
        if cut and limits:
            yield Concern(
                [arm],
                f"In {arm} queries were cancelled after {limits[0]:g}s, and count as that: {_named(cut)}.",
                "Their times, and the geometric mean, are longer in truth; a longer [load.suite] limit shows them.",
                "info",
            )


@rule("caches_not_empty", "queries found their data in memory", over_trials=True)
def caches_not_empty(case: Case) -> Iterator[Concern]:
    """Finds trials whose caches should have been empty and were not. The number of blocks that the queries read from
    outside the caches shows this."""
    suite = case.plan.load_points[0].suite
    if suite is None or suite.cache == "warm":
        return
    for arm in [case.baseline, *case.others]:
        trials = case.completed(arm)
        known = [(trial, read) for trial in trials if (read := _blocks_read(trial)) is not None]
        in_buffers = [trial for trial, read in known if read / max(1, _executions(trial)) < _LEAST_READ]
        if in_buffers:
            yield Concern(
                [arm],
                f"Queries of {arm} read nothing from outside of shared buffers in {len(in_buffers)} of {len(known)} "
                "trials, though the server was restarted before each.",
                "Look whether an extension or setup_sql loads data at the start (autoprewarm).",
            )
        if suite.cache == "cold":
            device = [(trial, read, _device_read(trial)) for trial, read in known]
            cached = [
                trial
                for trial, read, bytes_read in device
                if bytes_read is not None and bytes_read < _LEAST_SHARE * read * _BLOCK_BYTES
            ]
            if cached:
                yield Concern(
                    [arm],
                    f"The machine read less than {_LEAST_SHARE:.0%} of the blocks of {arm} from its devices in "
                    f"{len(cached)} of {len(device)} trials, though the kernel's cache was emptied before each query.",
                    "The data is in memory all the same: put it on a disk (storage, or PGTRIAL_STATE), not on tmpfs, "
                    "ZFS or a device with a cache of its own.",
                )


def _executions(trial: Trial) -> int:
    return trial.measured.transactions if trial.measured is not None else 0


def _blocks_read(trial: Trial) -> float | None:
    return trial.server_deltas.get("database", {}).get("blks_read")


def _device_read(trial: Trial) -> float | None:
    return trial.server_deltas.get("host", {}).get("device_read_bytes")
