"""The criteria of a comparison on tasks: who wins, who does not, and what becomes of failures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.records.results import Criterion, StudyResult
from pgtrial.statistics.p8 import interval, schedule
from pgtrial.statistics.rules import P8, Looks
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.criteria import SECONDARY, criteria
from tests.verdict.studies import deployed, make_plan, make_trial, verdict_of
from tests.verdict.tasks import BLOCKS, PLANNED, POINT, Tasks, analysed, noisy, run_tasks, trials_of


def winners(result: StudyResult) -> dict[str, str]:
    return {row.what: row.winner for row in result.criteria}


def row(result: StudyResult, what: str) -> Criterion:
    return next(row for row in result.criteria if row.what == what)


def test_the_faster_arm_wins_the_times_and_counts_that_are_equal_have_no_winner():
    found = winners(analysed(slow=noisy(1.0), fast=noisy(0.8)))
    assert found == {
        **dict.fromkeys(("shortest", "longest", "mean", "median"), "fast"),
        **dict.fromkeys(("failures", "under 5 s", "within 0.1 s", "within 1 s", "within 10 s"), "no difference"),
    }


def test_the_baseline_can_win():
    assert winners(analysed(fast=noisy(0.8), slow=noisy(1.0)))["median"] == "fast"


def test_equal_arms_have_no_winner_in_any_criterion():
    assert set(winners(analysed(a=noisy(1.0), b=noisy(1.0))).values()) == {"no difference"}


def test_the_mean_is_the_primary_claim_and_the_others_share_an_error():
    result = analysed(slow=noisy(1.0), fast=noisy(0.8))
    (claim,) = result.primary
    mean = row(result, "mean")
    assert (mean.primary, mean.claims) == (True, 1)
    assert (mean.verdict, mean.difference, mean.blocks) == (claim.verdict, claim.difference, claim.blocks)
    secondary = [entry for entry in result.criteria if not entry.primary]
    assert [entry.claims for entry in secondary] == [SECONDARY] * SECONDARY


def test_a_secondary_interval_is_that_of_the_signed_ranks_at_the_shared_error():
    plan, trials = run_tasks(12, slow=noisy(1.0), fast=noisy(0.8))
    medians = {(t.block, t.arm): t.tasks.response_us.median for t in trials if t.tasks and t.tasks.response_us}
    logs = [math.log((medians[block, "slow"] or 0) / (medians[block, "fast"] or 0)) for block in range(12)]
    look = schedule([8, 12])[-1]
    expected = interval(logs, look.alpha / SECONDARY)
    found = row(verdict_of(plan, trials), "median").difference
    assert found is not None
    assert [found.low, found.value, found.high] == pytest.approx(
        [np.expm1(value) for value in (expected.low, expected.estimate, expected.high)]
    )


def test_eight_blocks_decide_the_mean_and_no_secondary_criterion():
    result = analysed(8, slow=noisy(1.0), fast=noisy(0.5))
    assert row(result, "mean").winner == "fast"
    assert {entry.winner for entry in result.criteria if not entry.primary} == {"undecided"}
    assert Looks(P8(), ()).fewest(SECONDARY) == 12


def test_failed_tasks_count_with_the_time_until_they_failed():
    """Dropped, the arm that fails half of its tasks would have the same mean as the other."""
    result = analysed(sound=noisy(1.0), failing=noisy(1.0, failed=450))
    found = winners(result)
    assert found["mean"] == "sound"
    assert found["failures"] == "sound"
    assert found["under 5 s"] == "sound"
    assert found["median"] == "no difference", "of those that were completed"
    assert row(result, "mean").values["failing"] == pytest.approx((1.1 + 15) / 2, rel=0.05)
    assert result.sentences[0].startswith("Failures of failing: 8,100 of 16,200 tasks (50%), sound: 0. ")


def test_failures_are_summed_over_all_trials_so_that_rare_ones_show():
    rare = iter([8, *[0] * (BLOCKS - 1)])
    result = analysed(a=noisy(1.0), b=lambda rng: Tasks(failed=next(rare)))
    entry = row(result, "failures")
    assert entry.values == {"a": 0, "b": 8}
    assert entry.winner == "undecided", "one accident in one of 18 trials decides nothing"


def test_a_few_failures_in_each_trial_are_a_difference_of_tasks():
    entry = row(analysed(a=noisy(1.0), b=noisy(1.0, failed=3)), "failures")
    assert (entry.winner, entry.by) == ("a", "difference")
    assert entry.difference is not None
    assert entry.difference.value == pytest.approx(-3 / PLANNED)


def test_tasks_within_a_limit_are_better_the_more_there_are():
    entry = row(analysed(quick=noisy(1.0), slow=noisy(1.0, slow=90)), "under 5 s")
    assert entry.winner == "quick"
    assert entry.values == {"quick": 900, "slow": 810}


def test_failed_trials_are_the_worst_there_is():
    result = analysed(sound=noisy(1.0), broken=lambda rng: None)
    assert set(winners(result).values()) == {"sound"}
    assert row(result, "median").values["broken"] is None


def test_a_trial_in_which_no_task_was_completed_is_worse_than_any_other():
    result = analysed(sound=noisy(1.0), stuck=noisy(1.0, failed=PLANNED))
    found = winners(result)
    assert found["median"] == found["failures"] == found["mean"] == "sound"


def test_a_withheld_comparison_has_no_winner():
    grave = Finding(rule="r", severity="withhold", arms=["b"], message="Unequal.", cure="Make it equal.")
    result = analysed(a=noisy(1.0), b=noisy(0.5), audit=Audit(findings=[grave]))
    assert set(winners(result).values()) == {"no verdict"}


def test_each_comparison_has_its_own_rows():
    result = analysed(a=noisy(1.0), b=noisy(0.5), c=noisy(2.0))
    assert {(entry.arm, entry.winner) for entry in result.criteria if entry.what == "median"} == {
        ("b", "b"),
        ("c", "a"),
    }


@pytest.mark.parametrize("deployments", [6, 12])
def test_where_deployments_are_the_unit_they_are_so_for_every_criterion(deployments):
    plan = deployed(deployments).model_copy(update={"load_points": [POINT], "margin": 0.05})
    first, second = plan.arms
    result = verdict_of(plan, trials_of(plan, {first: noisy(1.0), second: noisy(0.5)}))
    assert {entry.blocks for entry in result.criteria} == {deployments}
    assert winners(result)["median"] == winners(result)["mean"] == second


def test_equal_arms_have_a_winner_in_any_criterion_in_at_most_one_study_of_twenty():
    def alike(rng: np.random.Generator) -> Tasks:
        slow_moment = 1.5 if rng.random() < 0.1 else 1.0
        median = slow_moment * float(np.exp(0.05 * rng.standard_normal()))
        return Tasks(median_s=median, failed=int(rng.poisson(2)), slow=int(rng.poisson(20)))

    claims = analysed(12, a=alike, b=alike).primary
    studies = (criteria(Grid(*run_tasks(12, a=alike, b=alike, seed=seed)), claims) for seed in range(150))
    won = sum(any(each.verdict in ("better", "worse") for each in rows if not each.primary) for rows in studies)
    # 5% are allowed; more than 16 of 150 would be there by chance in one of 1000 runs of this test
    assert won <= 16


def test_a_study_without_tasks_has_no_criteria_and_its_verdict_does_not_name_them():
    plan = make_plan()
    result = verdict_of(plan, [make_trial(plan, planned, 1000.0) for planned in plan.trials])
    assert result.criteria == []
    assert "criteria" not in result.model_dump_json()
