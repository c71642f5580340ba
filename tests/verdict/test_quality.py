"""Arms are compared at equal quality: else, and below what the study asks for, there is no verdict but a sentence."""

from __future__ import annotations

import pytest

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.pack import PackLoad, Quality
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.trial import Trial
from tests.verdict.studies import make_plan, noisy, run, verdict_of

RECALL = Quality(name="recall@10", tolerance=0.02)


def point_of(quality: Quality | None, clients: int = 8) -> LoadPoint:
    pack = PackLoad(
        name="vectors",
        mix="nearest",
        scripts={"nearest.sql": 1},
        variables={},
        transaction="one search",
        mb_per_scale=12,
        quality=quality,
    )
    return LoadPoint(workload="vectors/nearest", scale=1, pack=pack, clients=clients, protocol="prepared")


def study(quality: Quality | None, points: int = 1, **found: float) -> tuple[Plan, list[Trial]]:
    """Arms `exact`, the baseline, and `quick` with these qualities at the last load point; elsewhere 0.9."""
    plan = make_plan(
        ("exact", "quick"), blocks=12, points=[point_of(quality, 8 * (place + 1)) for place in range(points)]
    )
    trials = run(plan, noisy({"quick": 1.5}))
    last = plan.load_points[-1]
    return plan, [
        trial.model_copy(update={"quality": found[trial.arm] if trial.load_point == last else 0.9}) for trial in trials
    ]


def test_at_equal_quality_within_the_tolerance_the_verdict_stands():
    for quick in (0.93, 0.95, 0.97):
        result = verdict_of(*study(RECALL, exact=0.95, quick=quick))
        assert result.primary[0].verdict == "better"
        assert result.findings == []


@pytest.mark.parametrize("quick", [0.92, 0.98])
def test_at_unequal_quality_the_verdict_is_withheld_and_says_both(quick):
    result = verdict_of(*study(RECALL, exact=0.95, quick=quick))
    assert result.primary[0].verdict == "withheld"
    (finding,) = result.findings
    assert finding.rule == "unequal_quality"
    assert f"recall@10 {quick} of quick against 0.95 of exact" in result.sentences[0]
    assert "the tolerance of 0.02" in result.sentences[0]
    assert "[load.pack] tolerance" in result.sentences[0]


def test_only_the_load_point_is_withheld_and_the_mean_that_holds_it():
    result = verdict_of(*study(RECALL, points=2, exact=0.95, quick=0.5))
    assert result.primary[0].verdict == "withheld"
    assert [claim.verdict for claim in result.claims("quick")] == ["better", "withheld"]


def test_a_quality_that_is_not_reached_withholds_the_verdict_with_what_was_asked_for():
    asked = RECALL.model_copy(update={"at_least": 0.99})
    result = verdict_of(*study(asked, exact=0.995, quick=0.98))
    assert result.primary[0].verdict == "withheld"
    assert (
        "recall@10 0.98 of quick (vectors/nearest, scale 1, 8 clients) is not the 0.99 that the study asks for"
        in (result.sentences[0])
    )


def test_a_baseline_that_does_not_reach_it_is_compared_with_no_arm():
    asked = RECALL.model_copy(update={"at_least": 0.9})
    result = verdict_of(*study(asked, exact=0.8, quick=0.95))
    assert result.primary[0].verdict == "withheld"
    assert "recall@10 0.8 of exact" in result.sentences[0]


def test_of_some_qualities_less_is_better():
    lag = Quality(name="lag, s", better="less", tolerance=1, at_least=2)
    assert verdict_of(*study(lag, exact=1.5, quick=1.9)).primary[0].verdict == "better"
    result = verdict_of(*study(lag, exact=1.5, quick=2.1))
    assert result.primary[0].verdict == "withheld"
    assert "is not the 2 that the study asks for at most" in result.sentences[0]


def test_an_arm_without_a_completed_trial_is_judged_by_its_failures():
    plan, trials = study(RECALL, exact=0.95, quick=0.5)
    lost = {"quality": None, "status": "failed", "measured": None}
    failed = [trial.model_copy(update=lost) if trial.arm == "quick" else trial for trial in trials]
    assert verdict_of(plan, failed).primary[0].verdict == "worse"


def test_the_level_of_an_arm_has_its_quality_beside_its_throughput():
    levels = verdict_of(*study(RECALL, exact=0.95, quick=0.95)).levels
    assert {level.arm: level.quality and level.quality.median for level in levels} == {"exact": 0.95, "quick": 0.95}
