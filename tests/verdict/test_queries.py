"""The queries of a suite as a family of claims beside the geometric mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgtrial.conduct.planning.stopping import Stop, next_step
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.records.results import QueryClaim
from pgtrial.report.brief import brief
from pgtrial.report.words import query_times_as_long
from pgtrial.statistics.p8 import first_look
from pgtrial.statistics.rules import P8, Looks
from tests.verdict.studies import exchanged, verdict_of
from tests.verdict.suite_trials import LIMIT_S, Queries, Query, run_suites

BLOCKS = 20


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261126)


def noisy(rng: np.random.Generator, *factors: float, sd: float = 0.02) -> Queries:
    """Queries that take 1 ms, on the arm `b` so many times as long; a trial has noise that its queries share."""

    def queries(planned: PlannedTrial) -> list[Query]:
        noise = rng.normal(rng.standard_t(2) * sd, sd, len(factors))
        return [
            Query(float(np.exp(one)) * (factor if planned.arm == "b" else 1.0))
            for factor, one in zip(factors, noise, strict=True)
        ]

    return queries


def claims_of(blocks: int, queries: Queries) -> dict[str | None, QueryClaim]:
    plan, trials = run_suites(blocks, queries)
    return {claim.query: claim for claim in verdict_of(plan, trials).queries}


def test_the_query_that_got_slower_is_named_and_no_other(rng: np.random.Generator) -> None:
    found = claims_of(BLOCKS, noisy(rng, 1.0, 3.0, 1.0, 0.5))
    assert list(found) == [None, "q0", "q1", "q2", "q3"]
    assert {query for query, claim in found.items() if query and claim.is_slower} == {"q1"}
    assert found["q3"].verdict == "better"
    slower = found["q1"]
    assert slower.difference is not None
    assert slower.difference.value == pytest.approx(1 / 3 - 1, abs=0.03)
    assert (slower.claims, slower.blocks) == (4, BLOCKS)
    whole = found[None]
    assert whole.difference is not None
    # the geometric mean of 1, 3, 1 and 0.5
    assert whole.difference.value == pytest.approx(1.5 ** (-1 / 4) - 1, abs=0.02)
    assert (whole.verdict, whole.claims) == ("worse", 1)
    assert whole.time_us["a"] == pytest.approx(1000, rel=0.05)
    assert whole.time_us["b"] == pytest.approx(1000 * 1.5 ** (1 / 4), rel=0.05)


@pytest.mark.parametrize("studies", [1, 3])
def test_the_mean_and_the_queries_of_all_studies_of_a_gate_share_one_error(rng, studies: int) -> None:
    plan, trials = run_suites(BLOCKS, noisy(rng, 1.0, 3.0, 1.0, 0.5))
    plan = plan.model_copy(update={"families": 2, "studies": studies})
    result = verdict_of(plan, trials)
    of_queries = [claim.claims for claim in result.queries if claim.query is not None]
    shares = [1 / number for number in (result.primary[0].family, *of_queries)]
    assert sum(shares) == pytest.approx(1 / studies)


def test_the_headline_names_the_queries(rng: np.random.Generator) -> None:
    plan, trials = run_suites(BLOCKS, noisy(rng, 1.0, 3.0, 1.0, 0.5))
    result = verdict_of(plan, trials)
    lines = {line.label: line.text for line in brief(result, plan).headlines[0].lines}
    assert lines["queries"].startswith("of 4: 1 slower: q1 (")
    assert "1 faster: q3 (0." in lines["queries"]
    assert lines["medians"].endswith(" ms")
    assert "geometric mean of query times" in result.sentences[0]


def test_a_query_at_the_limit_counts_as_the_limit_and_a_failure_as_the_worst() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        if planned.arm == "a":
            return [Query(), Query(), Query()]
        return [Query(1000 * LIMIT_S, over_limit=True), Query(None, failures={"22012": 1}), Query()]

    found = claims_of(BLOCKS, queries)
    cut, failed, same = (found[query] for query in ("q0", "q1", "q2"))
    assert (cut.time_us["b"], cut.over_limit) == (1e6 * LIMIT_S, {"b": BLOCKS, "a": 0})
    assert (failed.time_us["b"], failed.failed, failed.verdict) == (None, {"b": BLOCKS, "a": 0}, "worse")
    assert same.verdict == "equivalent"
    assert query_times_as_long(cut) == "at least 1,000 times as long"
    assert query_times_as_long(same) == "1 times as long"
    whole = found[None]
    assert whole.time_us["b"] == pytest.approx(math.exp((2 * math.log(1e6 * LIMIT_S) + math.log(1000)) / 3))


def test_exchanging_the_arms_turns_each_verdict(rng: np.random.Generator) -> None:
    plan, trials = run_suites(BLOCKS, noisy(rng, 1.0, 2.0))
    there = {claim.query: claim for claim in verdict_of(plan, trials).queries}
    back = {claim.query: claim for claim in verdict_of(plan, exchanged(trials, range(BLOCKS))).queries}
    assert (there["q1"].verdict, back["q1"].verdict) == ("worse", "better")


def test_a_study_goes_on_until_its_queries_are_decided() -> None:
    def queries(planned: PlannedTrial) -> list[Query]:
        return [Query(2.0 if planned.arm == "b" else 1.0) for _ in range(22)]

    plan, trials = run_suites(24, queries)
    looks = Looks(P8(), tuple(plan.looks))
    needed = looks.fewest(22)
    assert needed > looks.fewest(1)

    def ends(blocks: int) -> bool:
        step = next_step(plan, 1e9, [trial for trial in trials if trial.block < blocks])
        return isinstance(step, Stop)

    assert min(blocks for blocks in range(1, 25) if ends(blocks)) == needed


def test_failed_trials_are_the_worst() -> None:
    found = claims_of(BLOCKS, lambda planned: None if planned.arm == "b" and planned.block else [Query()])
    assert found["q0"].verdict == "worse"


def test_the_next_command_has_the_blocks_with_which_queries_can_be_decided(rng: np.random.Generator) -> None:
    five = noisy(rng, 1.0, 3.0, 1.0, 1.0, 1.0)
    plan, trials = run_suites(10, five)
    # as of a study that is too short for a look at which five claims can be decided
    plan = plan.model_copy(update={"looks": [first_look(5)]})
    short = brief(verdict_of(plan, trials), plan)
    assert short.then is not None
    assert short.then.startswith("pgtrial run DIRECTORY --more 1 measures 1 more block in about ")
    assert short.then.endswith(" and can decide all undecided queries")
    interval = next(line.text for line in short.headlines[0].lines if line.label == "interval")
    assert interval.endswith(" so far; a verdict needs at least 11 blocks")


def test_the_next_command_is_for_the_queries_where_the_mean_is_decided(rng: np.random.Generator) -> None:
    # the first differs clearly, the second by no more than its noise
    plan, trials = run_suites(9, noisy(rng, 3.0, 1.03, sd=0.03))
    result = verdict_of(plan, trials)
    assert [claim.verdict for claim in result.queries] == ["worse", "worse", "undecided"]
    assert result.queries[1].more_blocks is None
    more = result.queries[2].more_blocks
    assert more is not None
    then = brief(result, plan).then
    assert then is not None
    assert f"--more {more} measures" in then
    assert then.endswith("can decide all undecided queries")
