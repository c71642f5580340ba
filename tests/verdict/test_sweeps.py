"""Studies over clients and sizes: laws, peaks and cliffs of the arms, and no average across a cliff."""

from __future__ import annotations

import pytest

from pgtrial.model.records.claims import Claim
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.results import StudyResult
from pgtrial.statistics.scalability import Curve
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.metrics.cliffs import cliffs
from pgtrial.verdict.metrics.scaling import scaling
from pgtrial.verdict.sweeps import sweeps
from tests.verdict.studies import make_plan, run, verdict_of
from tests.verdict.sweeps import CLIENTS, SCALES, misses, points, sweep

LAWS = {"a": Curve(1000.0, 0.05, 0.0005), "b": Curve(1000.0, 0.03, 0.0005)}


def by_law(arm: str, point: LoadPoint) -> float:
    return LAWS[arm].speed(point.clients)


def by_cache(a: float, b: float):
    """Speeds and reads of arms whose caches hold data of these scales."""
    holds = {"a": a, "b": b}
    return (
        lambda arm, point: 2000.0 / (1 + 6 * misses(holds[arm], point.scale)),
        lambda arm, point: 30.0 * misses(holds[arm], point.scale),
    )


def of_caches(a: float, b: float, **known) -> StudyResult:
    speed, reads = by_cache(a, b)
    return verdict_of(*sweep(points(scales=SCALES), speed, reads=reads, **known))


def test_each_arm_has_its_law_and_the_larger_peak_wins():
    result = verdict_of(*sweep(points(CLIENTS), by_law))
    assert [of_arm.arm for of_arm in result.scaling] == ["a", "b"]
    for of_arm in result.scaling:
        law, truth = of_arm.law, LAWS[of_arm.arm]
        assert law is not None
        assert law.fits
        assert of_arm.clients == list(CLIENTS)
        for known, true in (
            (law.peak_clients, truth.peak),
            (law.highest, truth.highest(1, 64)),
            (law.serial, truth.serial),
        ):
            assert known.low is not None
            assert known.high is not None
            assert known.low <= true <= known.high
    baseline, arm = result.scaling
    assert (baseline.verdict, baseline.difference) == (None, None)
    assert (arm.verdict, arm.claims) == ("better", 1)
    assert arm.difference is not None
    truth = LAWS["b"].highest(1, 64) / LAWS["a"].highest(1, 64) - 1
    assert arm.difference.low is not None
    assert arm.difference.high is not None
    assert arm.difference.low < truth < arm.difference.high


def test_a_peak_beyond_the_tested_numbers_has_no_upper_end():
    flat = Curve(1000.0, 0.05, 0.0)
    result = verdict_of(*sweep(points(CLIENTS), lambda _, point: flat.speed(point.clients)))
    assert [of_arm.law.peak_clients.high for of_arm in result.scaling if of_arm.law is not None] == [None, None]


def test_where_the_law_does_not_fit_there_is_no_verdict_on_peaks():
    result = verdict_of(*sweep(points(CLIENTS), lambda arm, point: 100.0 * min(point.clients, 8 if arm == "a" else 16)))
    assert [of_arm.law is not None and of_arm.law.fits for of_arm in result.scaling] == [False, False]
    assert (result.scaling[1].verdict, result.scaling[1].difference) == ("withheld", None)


def test_blocks_with_a_failed_trial_are_left_out_of_an_arms_law_alone():
    at = points(CLIENTS)
    plan = make_plan(("a", "b"), blocks=11, points=at)
    trials = run(
        plan,
        lambda planned: (
            None
            if (planned.arm, planned.block, planned.load_point) == ("b", 3, 2)
            else by_law(planned.arm, at[planned.load_point]) * (1 + 0.001 * planned.block * planned.load_point)
        ),
    )
    a, b = verdict_of(plan, trials).scaling
    assert (a.blocks, a.left_out, b.blocks, b.left_out) == (11, 0, 10, 1)


def test_blocks_after_an_arm_has_left_are_not_left_out():
    plan, trials = sweep(points(CLIENTS), by_law)
    plan = plan.model_copy(update={"left": {"b": 8}})
    kept = [trial for trial in trials if trial.arm == "a" or trial.block < 8]
    a, b = verdict_of(plan, kept).scaling
    assert (a.blocks, a.left_out, b.blocks, b.left_out) == (11, 0, 8, 0)


def test_sweeps_are_load_points_that_differ_in_one_number():
    plan = make_plan(points=points(CLIENTS, scales=SCALES[:6]))
    assert [each.numbers for each in sweeps(plan, "clients")] == [CLIENTS] * 6
    assert [each.numbers for each in sweeps(plan, "scale")] == [SCALES[:6]] * 7
    assert sweeps(make_plan(points=points(CLIENTS[:5])), "clients") == []
    at_rate = [point.model_copy(update={"rate": 100.0}) for point in points(CLIENTS)]
    assert sweeps(make_plan(points=at_rate), "clients") == []


def test_cliffs_are_where_the_data_outgrow_the_cache_and_reads_confirm_it():
    result = of_caches(60, 240)
    for of_arm, holds in zip(result.cliffs, (60, 240), strict=True):
        (cliff,) = of_arm.cliffs
        assert cliff.scale.low is not None
        assert cliff.scale.high is not None
        assert cliff.scale.low <= holds <= cliff.scale.high
        assert cliff.change < -0.5
        assert cliff.reads == ["buffers read"]
    a, b = result.cliffs
    assert (a.verdict, b.verdict, b.claims) == (None, "better", 1)
    assert b.difference is not None
    assert 1 < b.difference.value < 6
    assert all(40 < scale < 80 for scale in a.between)
    assert len(a.between) == 2
    assert [scale for scale, _ in a.line] == sorted(scale for scale, _ in a.line)


def test_a_fall_without_reads_is_said_to_be_one():
    speed, _ = by_cache(60, 60)
    result = verdict_of(*sweep(points(scales=SCALES), speed, reads=lambda _, __: 0.5))
    assert [cliff.reads for of_arm in result.cliffs for cliff in of_arm.cliffs] == [[], []]
    unknown = verdict_of(*sweep(points(scales=SCALES), speed))
    assert [cliff.reads for of_arm in unknown.cliffs for cliff in of_arm.cliffs] == [None, None]


def test_there_is_no_average_across_a_cliff():
    speed, reads = by_cache(60, 60)
    result = verdict_of(
        *sweep(
            points(scales=SCALES),
            lambda arm, point: speed(arm, point) * (0.6 if arm == "b" and point.scale > 60 else 1.0),
            reads=reads,
        )
    )
    (claim,) = result.primary
    assert (claim.difference, claim.totals, claim.verdict) == (None, None, "undecided")
    below, above = claim.parts
    assert (below.regime, above.regime, above.verdict) == ("below", "above", "worse")
    assert above.difference is not None
    assert above.difference.value == pytest.approx(-0.4, abs=0.02)
    assert [part.family for part in claim.parts] == [2, 2]
    assert result.exit_status == 1
    assert "below the cliff" in result.sentences[0]
    assert "above" in result.sentences[0]


@pytest.mark.parametrize("arm", ["a", "b"])
@pytest.mark.parametrize("level", [1.0, 1.2])
def test_a_small_cliff_of_one_arm_alone_is_enough(arm, level):
    """A cliff in one arm is enough even if this arm is the faster one before the cliff."""

    def speed(of: str, point: LoadPoint) -> float:
        return 2000.0 * (level * (0.7 if point.scale > 60 else 1.0) if of == arm else 1.0)

    result = verdict_of(*sweep(points(scales=SCALES), speed, sd=0.01))
    assert [part.regime for part in result.primary[0].parts] == ["below", "above"]
    assert [bool(of_arm.cliffs) for of_arm in result.cliffs] == [arm == "a", arm == "b"]


def test_without_a_cliff_there_is_one_average():
    result = verdict_of(*sweep(points(scales=SCALES), lambda arm, point: 2000.0 * point.scale**-0.1))
    (claim,) = result.primary
    assert claim.parts == []
    assert claim.difference is not None
    assert [of_arm.cliffs for of_arm in result.cliffs] == [[], []]


def test_studies_with_fewer_numbers_store_nothing_of_it():
    result = verdict_of(*sweep(points(CLIENTS[:5]), by_law))
    stored = result.model_dump(mode="json")
    assert "scaling" not in stored
    assert "cliffs" not in stored


def test_a_study_that_has_just_begun_has_no_curves_yet():
    plan, trials = sweep(points(CLIENTS), by_law)
    for number in (0, 5, 14):
        result = verdict_of(plan, trials[:number])
        assert [of_arm.law for of_arm in result.scaling] == [None, None]
        assert [of_arm.blocks for of_arm in result.scaling] == [number // 14] * 2


def test_an_arm_whose_regime_changes_has_no_curve():
    """Averaging across a regime change describes neither regime."""
    of_part = {"arm": "b", "baseline": "a", "load_point": None, "family": 1, "verdict": "undecided", "blocks": 0}
    part = Claim(**of_part, within_margin=False, fewest_blocks=8, regime="before")
    grids = [Grid(*sweep(at, by_law)) for at in (points(CLIENTS), points(scales=SCALES))]
    whole = part.model_copy(update={"regime": None, "parts": [part]})
    assert [of_arm.law for of_arm in scaling(grids[0], [whole])] == [None, None]
    assert [(of_arm.line, of_arm.cliffs) for of_arm in cliffs(grids[1], [whole])] == [([], []), ([], [])]
