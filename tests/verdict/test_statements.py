"""The statements of a replay as a family of claims: which templates these are, and that the claims hold together."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.trial import Trial
from pgtrial.model.study.replay import MOST_STATEMENTS
from pgtrial.statistics.p8 import ALPHAS, interval, schedule
from pgtrial.statistics.rules import P8, Looks
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.statements import statement_claims
from tests.verdict.replays import Template, Templates, run_replays
from tests.verdict.studies import exchanged, verdict_of, ways

BLOCKS = 18


def noisy(rng: np.random.Generator, *factors: float, sd: float = 0.03) -> Templates:
    """Templates that take 1 ms, on the arm `b` so many times as long; a trial has noise that its templates share."""

    def templates(planned: PlannedTrial) -> list[Template]:
        of_trial = rng.standard_t(2) * sd
        of_each = rng.normal(of_trial, sd, len(factors))
        return [
            Template(float(np.exp(noise)) * (factor if planned.arm == "b" else 1.0))
            for factor, noise in zip(factors, of_each, strict=True)
        ]

    return templates


def primary(withheld: tuple[str, ...] = ()):
    """Returns stand-ins for the study's primary claims, with the fields that the statements' claims read: the arm and
    the verdict.
    """
    return [SimpleNamespace(arm="b", verdict="withheld" if "b" in withheld else "undecided")]


def claims_of(blocks: int, templates: Templates, withheld: tuple[str, ...] = ()):
    plan, trials = run_replays(blocks, templates)
    return {claim.template: claim for claim in statement_claims(Grid(plan, trials), primary(withheld))}


def test_the_template_that_got_slower_is_named_and_no_other(rng):
    found = claims_of(BLOCKS, noisy(rng, 1.0, 3.0, 1.0, 0.5))
    assert {number for number, claim in found.items() if claim.is_slower} == {1}
    assert found[3].verdict == "better"
    slower = found[1]
    assert slower.difference is not None
    assert slower.difference.low is not None
    assert slower.difference.high is not None
    assert slower.difference.low < 1 / 3 - 1 < slower.difference.high < -0.6
    assert (slower.claims, slower.blocks, slower.statements) == (4, BLOCKS, 100)
    assert slower.share["b"] == pytest.approx(3 / 5.5, abs=0.03)
    assert next(iter(found)) == 1, "the largest share comes first"


def test_the_interval_is_that_of_the_signed_ranks_at_the_shared_error(rng):
    plan, trials = run_replays(12, noisy(rng, 1.0, 1.2, 1.0))
    means = {(t.block, t.arm): t.replay.templates[1].time_us.mean for t in trials if t.replay}
    logs = [math.log(means[block, "a"] / means[block, "b"]) for block in range(12)]
    look = schedule(plan.looks)[-1]
    expected = interval(logs, look.alpha / 3)
    (found,) = [claim for claim in statement_claims(Grid(plan, trials), primary()) if claim.template == 1]
    assert found.difference is not None
    assert found.difference.value == pytest.approx(math.expm1(expected.estimate))
    assert found.difference.low == pytest.approx(math.expm1(expected.low))


def test_as_many_templates_as_there_may_be_are_decided_by_twelve_blocks(rng):
    assert Looks(P8(), ()).fewest(MOST_STATEMENTS) == 12
    found = claims_of(12, noisy(rng, *[2.0] * 20, sd=0.01))
    assert len(found) == MOST_STATEMENTS
    assert all(claim.is_slower for claim in found.values())


def test_rare_and_cheap_templates_are_no_claims():
    def templates(planned):
        rare = 9 if planned.block == 2 else 50
        return [Template(10.0), Template(0.05), Template(1.0, rare), Template(0.05 if planned.arm == "a" else 1.0)]

    found = claims_of(8, templates)
    assert set(found) == {0, 3}, "a share on one arm is enough"
    assert found[3].share["a"] < 0.01 < found[3].share["b"]


def test_a_failed_trial_is_the_worst_there_is_and_errors_are_not_timed(rng):
    def templates(planned):
        if planned.arm == "b" and planned.block == 4:
            return None
        failing = {"42P01": 100} if planned.arm == "b" else {}
        return [Template(float(np.exp(rng.normal(0, 0.01)))), Template(failures=failing)]

    found = claims_of(12, templates)
    assert set(found) == {0}, "a template that always fails on one arm has no time there"
    assert found[0].blocks == 12
    assert found[0].verdict == "undecided"


def test_a_comparison_that_is_withheld_has_no_slower_statements(rng):
    found = claims_of(BLOCKS, noisy(rng, 1.0, 3.0), ("b",))
    assert {claim.verdict for claim in found.values()} == {"withheld"}
    assert not any(claim.is_slower for claim in found.values())


def test_other_studies_have_none(rng):
    plan, trials = run_replays(8, noisy(rng, 1.0))
    plain = [trial.model_copy(update={"replay": None}) for trial in trials]
    assert statement_claims(Grid(plan, plain), primary()) == []
    assert verdict_of(plan, trials).statements != []


def test_of_studies_of_arms_that_are_alike_five_in_a_hundred_name_a_statement_at_most():
    studies, wrong = 400, 0
    for study in range(studies):
        rng = np.random.default_rng([7, study])
        plan, trials = run_replays(27, noisy(rng, *[1.0] * 6, sd=0.2), seed=study)
        claims = statement_claims(Grid(plan, trials), primary())
        wrong += any(claim.verdict in ("better", "worse") for claim in claims)
    # more than 31 of 400 would be seen once in a hundred times if the error were 5%
    assert wrong <= 31


def near_the_least_share(seed: int, blocks: int) -> tuple[Plan, list[Trial]]:
    """Returns the plan and the trials of equal arms. One statement takes nearly all of the time, and each of many
    others has a share near the least that is compared.
    """
    rng = np.random.default_rng([11, seed])

    def templates(planned: PlannedTrial) -> list[Template]:
        return [Template(float(ms * np.exp(rng.normal(0, 0.2)))) for ms in [80.0] + [0.95] * 21]

    return run_replays(blocks, templates, seed=seed)


def test_exchanging_the_trials_of_a_block_changes_no_family():
    for seed in range(40):
        plan, trials = near_the_least_share(seed, 9)
        families = [
            [claim.template for claim in statement_claims(Grid(plan, exchanged(trials, blocks)), primary())]
            for blocks in ([], [4], [0, 3, 8])
        ]
        assert len(families[0]) > 1
        assert families[1:] == families[:1] * 2


def test_of_all_ways_in_which_the_coin_can_fall_no_more_than_the_looks_allow_name_a_statement():
    """A template of the whole time, and one whose share is near the least one, by an outlier in one trial."""

    def templates(planned: PlannedTrial) -> list[Template]:
        noise = np.random.default_rng([3, planned.index]).normal(0, 0.3, 2)
        outlier = 6.0 if planned.index % 3 == 0 else 0.5
        return [Template(80 * math.exp(noise[0])), Template(0.95 * outlier * math.exp(noise[1]))]

    plan, trials = run_replays(10, templates)
    false, families = [], set()
    for blocks in ways(plan.max_blocks):
        claims = statement_claims(Grid(plan, exchanged(trials, blocks)), primary())
        families.add(tuple(claim.template for claim in claims))
        false.append(any(claim.verdict in ("better", "worse") for claim in claims))
    assert len(families) == 1
    assert 0 < sum(false) / len(false) <= ALPHAS[0] + ALPHAS[1]


def test_a_statement_that_one_look_named_stays_named(rng):
    """From block 8 on the statement takes less than one hundredth of the time."""

    def templates(planned: PlannedTrial) -> list[Template]:
        slower = 3.0 if planned.arm == "b" else 1.0
        return [Template(slower * float(np.exp(rng.normal(0, 0.01)))), Template(1.0 if planned.block < 8 else 5000.0)]

    plan, trials = run_replays(18, templates)
    words = []
    for blocks in plan.looks:
        claims = statement_claims(Grid(plan, [trial for trial in trials if trial.block < blocks]), primary())
        words.append([(claim.template, claim.verdict, claim.claims) for claim in claims])
    assert plan.looks == [8, 12, 18]
    assert words[1:] == [[(0, "worse", 2), (1, "equivalent", 2)], [(1, "equivalent", 1), (0, "worse", 2)]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)
