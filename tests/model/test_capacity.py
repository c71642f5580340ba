"""The promise of a study of capacity: how it is written, what it asks of a study, and the plan that follows."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.declared import metrics_in_words
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StudyError
from pgtrial.model.study.capacity import LONGER, CapacitySection
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import load_points
from pgtrial.report.kinds import words_of
from pgtrial.statistics.capacity import EXPECTED
from pgtrial.store.study_file import build_study

ARMS = {"a": {}, "b": {"settings": {"shared_buffers": "64MB"}}}


def spec_of(capacity=None, verdict=None, **load):
    promise = {"p99": "20ms"} if capacity is None else capacity
    return build_study({"load": {"capacity": promise, **load}, "arms": ARMS, "verdict": verdict or {}}, "test")


def test_a_promise_names_a_percentile_its_limit_and_the_failures():
    written = {"p99.9": "1.5s", "failures": "1%"}
    assert spec_of(written).load.capacity == CapacitySection(percentile="p99.9", limit=1.5, failures=0.01)
    assert spec_of().load.capacity == CapacitySection(percentile="p99", limit=0.02, failures=0.001)
    spec = spec_of(written)
    assert thaw(freeze(spec)) == spec
    (point,) = load_points(spec)
    assert point.label.endswith("p99.9 within 1.5s")


@pytest.mark.parametrize(
    ("capacity", "complaint"),
    [
        ({"p98": "20ms"}, "did you mean 'p9"),
        ({"failures": "1%"}, "must have one percentile with its limit"),
        ({"p99": "20ms", "p50": "1ms"}, "must have one percentile with its limit"),
        ({"p99": "soon"}, "is not a duration"),
        ({"p99": 0}, "greater than 0"),
        ({"p99": "20ms", "failures": "100%"}, "less than 1"),
        ("20ms", "capacity"),
    ],
)
def test_another_promise_is_refused(capacity, complaint):
    with pytest.raises(StudyError, match=complaint):
        spec_of(capacity)


@pytest.mark.parametrize(
    ("load", "verdict", "complaint"),
    [
        ({"rate": 500}, {}, "rate is not for a study of capacity"),
        ({"max_tries": 3, "latency_limit": "1s"}, {}, "latency_limit is not for a study of capacity"),
        ({"interleave": "250ms"}, {}, "interleave is not for a study of capacity"),
        ({"workload": "oltp_read_only"}, {}, "capacity is not for oltp_read_only"),
        ({"workload": "app-tasks"}, {}, "capacity is not for app-tasks"),
        ({}, {"metrics": ["p99"]}, r'"p99" is not for a study of capacity'),
    ],
)
def test_what_does_not_go_with_it_is_refused(load, verdict, complaint):
    with pytest.raises(StudyError, match=complaint):
        spec_of(verdict=verdict, **load)


def test_the_metric_takes_a_promise():
    with pytest.raises(StudyError, match='"capacity" takes a promise'):
        build_study({"arms": ARMS, "verdict": {"metrics": ["capacity"]}}, "test")


def test_a_plan_fits_its_probes_into_the_budget():
    plans = [make_plan(spec_of(verdict={"budget": budget}), 1, "now") for budget in ("10min", "1h")]
    for plan, budget_s in zip(plans, (600, 3600), strict=True):
        assert plan.metrics == ["capacity"]
        assert plan.interleaving is None
        assert plan.lengths is None
        assert plan.max_blocks >= 8
        assert plan.max_blocks * plan.block_estimate_s <= budget_s
        trial_s = plan.warmup_s + EXPECTED * (plan.duration_s + 0.5)
        assert plan.trial_estimate_s > trial_s
    assert plans[0].duration_s < plans[1].duration_s == 10
    assert words_of(plans[1]).planned_trial(spec_of(), plans[1]).endswith("about 8 probes of 10s")
    assert "at 1,000/s or more" in metrics_in_words(plans[1])


def test_given_lengths_are_those_of_the_warm_up_and_of_a_probe():
    plan = make_plan(spec_of(warmup="4s", duration="7s"), 1, "now")
    assert (plan.warmup_s, plan.duration_s) == (4, 7)


def test_a_probe_of_a_slow_rate_is_longer_up_to_a_bound():
    promise = CapacitySection(percentile="p99", limit=0.02)
    assert [promise.probe_s(rate, 5) for rate in (10_000, 2000, 1000, 1)] == [5, 5, 10, LONGER * 5]
    assert promise.settling_s == 0.5
    assert CapacitySection(percentile="p99", limit=0.2).settling_s == 2
