"""The table of a suite, which is a set of queries in files. It has a row for each query: its times on both arms, its
verdict, and its errors."""

from __future__ import annotations

from functools import partial

from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.results import QueryClaim
from pgtrial.model.records.suite import CACHES, SuiteLoad
from pgtrial.model.units import as_written, format_duration
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import milliseconds, verdict_text
from pgtrial.report.words import query_times_as_long, signed


def query_tables(data: StudyData) -> list[Table[QueryClaim]]:
    """Returns one table for each comparison, with a row for each query of the suite. The result is empty if the load of
    the study is not a suite of query files."""
    suite = data.plan.load_points[0].suite
    if suite is None:
        return []
    arms = dict.fromkeys(claim.arm for claim in data.result.queries)
    return [_queries(data, suite, arm) for arm in arms]


def _queries(data: StudyData, suite: SuiteLoad, arm: str) -> Table[QueryClaim]:
    claims = [claim for claim in data.result.queries if claim.arm == arm]
    baseline = claims[0].baseline
    caption = (
        f"Queries of {arm} against {baseline}, {CACHES[suite.cache]}: times of the median trial, from sending to the "
        f"end of the answer. A run that is cancelled after {format_duration(suite.limit_s)} counts as that, and so "
        "does one that fails beside others. The difference is one of speed (-50%: twice the time); the margin is "
        f"{as_written(data.plan.margin)}. The first row is the verdict; the claims on queries share the error of each "
        "look: their intervals hold together."
    )

    def times(name: str, claim: QueryClaim) -> str | None:
        time_us = claim.time_us.get(name)
        return None if time_us is None else milliseconds(time_us)

    troubles = [
        number(f"{name}: {head}", partial(_count, kind, name))
        for kind, head in (("over_limit", "cancelled"), ("failed", "failed"))
        for name in (baseline, arm)
        if any(getattr(claim, kind).get(name) for claim in claims)
    ]
    return Table(
        caption,
        claims,
        [
            Column("query", lambda claim: claim.query or "all, geometric mean"),
            *(number(f"{name}: ms", partial(times, name)) for name in (baseline, arm)),
            number("difference", lambda claim: claim.difference, lambda difference: signed(difference.value)),
            number("95% interval", lambda claim: claim.difference, Estimate.text),
            Column("verdict", _verdict, verdict=lambda claim: claim.verdict),
            number("claims", lambda claim: claim.claims),
            *troubles,
        ],
        lambda claim: claim.query is None or claim.is_slower,
    )


def _verdict(claim: QueryClaim) -> str:
    if claim.is_slower and claim.difference is not None:
        return f"worse: {query_times_as_long(claim)}"
    return verdict_text(claim)


def _count(kind: str, arm: str, claim: QueryClaim) -> int | None:
    number_of = getattr(claim, kind).get(arm)
    return number_of or None
