"""Tests of findings on trials of suites: different rows, answers that change, errors, and caches that should have been
empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgtrial.model.records.facts import Finding
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.suite import Cache
from tests.verdict.studies import verdict_of
from tests.verdict.suite_trials import Queries, Query, run_suites

RULES = {"unequal_results", "unsteady_results", "failed_queries", "over_limit", "caches_not_empty"}


def found(queries: Queries, unchecked: Sequence[str] = ()) -> dict[str, list[Finding]]:
    plan, trials = run_suites(8, queries, unchecked=unchecked)
    of_rule: dict[str, list[Finding]] = {}
    for finding in verdict_of(plan, trials).findings:
        if finding.rule in RULES:
            of_rule.setdefault(finding.rule, []).append(finding)
    return of_rule


def test_other_rows_are_a_finding_unless_they_are_unchecked() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        other = planned.arm == "b"
        return [
            Query(answers=[(5, "a")]),
            Query(answers=[(5, "b" if other else "a")]),
            Query(answers=[(6 if other else 5, "a")]),
        ]

    (finding,) = found(queries)["unequal_results"]
    assert finding.message == "The query q2 does not return the same rows: 5 rows in a and 6 in b; also q1."
    assert (finding.arms, finding.severity) == (["a", "b"], "withhold")
    (finding,) = found(queries, ["q2"])["unequal_results"]
    assert finding.message == (
        "The query q1 does not return the same rows: 5 rows in both, with the hashes a in a and b in b."
    )
    assert (finding.arms, finding.severity) == (["a", "b"], "warning")
    assert found(queries, ["q1", "q2"]) == {}


def test_a_query_that_is_fast_since_it_finds_nothing_is_not_better() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        return [Query(1.0 if planned.arm == "b" else 9.0, answers=[(0 if planned.arm == "b" else 5, "a")])]

    plan, trials = run_suites(8, queries)
    assert verdict_of(plan, trials).primary[0].verdict == "withheld"
    plan, trials = run_suites(8, queries, unchecked=["q0"])
    assert verdict_of(plan, trials).primary[0].verdict == "better"


def test_answers_that_change_are_another_finding() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        return [Query(answers=[(5, f"{planned.index}")]), Query()]

    assert set(found(queries)) == {"unsteady_results"}
    (finding,) = found(queries)["unsteady_results"]
    assert finding.message == "Results change from run to run, and cannot be compared between arms: q0."
    assert found(queries, ["q0"]) == {}


def test_errors_and_limits_are_named_with_their_arms() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        if planned.arm == "a":
            return [Query(), Query()]
        return [Query(None, failures={"22012": 1}, answers=[]), Query(10_000.0, over_limit=True, answers=[])]

    (failed,) = found(queries)["failed_queries"]
    assert failed.message == "The query q0 fails in b, 8 times: division by zero."
    (cut,) = found(queries)["over_limit"]
    assert cut.message == "In b queries were cancelled after 10s, and count as that: q1."
    assert (cut.arms, cut.severity) == (["b"], "info")


def read(cache: Cache, blocks: float, device_bytes: float | None) -> list[str]:
    plan, trials = run_suites(8, lambda planned: [Query()], cache)
    deltas = {"database": {"blks_read": blocks}, "host": {"elapsed_s": 1.0}}
    if device_bytes is not None:
        deltas["host"]["device_read_bytes"] = device_bytes
    trials = [
        trial.model_copy(
            update={
                "server_deltas": deltas,
                "measured": trial.measured and trial.measured.model_copy(update={"transactions": 10}),
            }
        )
        for trial in trials
    ]
    return [finding.message for finding in verdict_of(plan, trials).findings if finding.rule == "caches_not_empty"]


def test_caches_that_were_not_empty_are_seen_by_what_was_read() -> None:
    assert read("warm", 0, 0) == []
    assert read("os", 500, 0) == []
    assert read("os", 3, 0)[0].startswith("Queries of a read nothing from outside of shared buffers in 8 of 8 trials")
    assert read("cold", 500, 500 * 8192) == []
    assert read("cold", 500, None) == []
    assert read("cold", 500, 8192)[0].startswith("The machine read less than 10% of the blocks of a from its devices")
