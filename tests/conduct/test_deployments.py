"""Arms of several given servers of one product: what may be asked for, and what the plan makes of it."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import fewest_blocks, make_plan, warnings
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, has_secrets, thaw
from pgtrial.store.study_file import build_study

NOW = "2026-11-20T14:12:00+00:00"


def spec_of(number, other=None, arms="ab", **verdict):
    setups = {arm: {"dsn": [f"host={arm}{k}" for k in range(number)]} for arm in arms}
    if other is not None:
        setups["b"] = other
    lengths = {"warmup": "10s", "duration": "30s"}
    return build_study({"arms": setups, "load": lengths, "verdict": verdict or {"budget": "12h"}}, "test")


def plan_of(number, **verdict):
    return make_plan(spec_of(number, **verdict), 7, NOW)


@pytest.mark.parametrize(
    ("number", "blocks", "looks"),
    [(2, 8, [8]), (3, 12, [8, 10, 12]), (4, 8, [8]), (7, 28, [28]), (8, 32, [32]), (12, 24, [16, 20, 24])],
)
def test_the_looks_are_those_of_blocks_or_of_deployments(number, blocks, looks):
    plan = plan_of(number, blocks=blocks)
    assert (plan.deployments, plan.max_blocks, plan.looks) == (number, blocks, looks)
    assert {trial.place for trial in plan.trials} == set(range(number))


def test_a_budget_buys_as_many_blocks_for_each_and_no_more_than_help():
    assert plan_of(6, budget="12h").max_blocks == 6 * 8
    one = plan_of(6, blocks=6).trial_estimate_s * 2
    assert plan_of(6, budget=f"{int(one * 20)}s").max_blocks == 18
    with pytest.raises(StudyError, match=r"a block on each of 6 deployments takes about .*, more than the budget"):
        plan_of(6, budget=f"{int(one * 5)}s")


def test_blocks_that_cannot_be_shared_out_are_refused_with_the_nearest_number_that_can():
    with pytest.raises(StudyError, match=r"= 10 cannot be divided equally among 4 deployments; set .* = 8") as refused:
        plan_of(4, blocks=10)
    assert refused.value.keys == ("verdict.blocks", "verdict.blocks")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"dsn": ["host=c", "host=d"]}, r"\[arms.a\] names 4 deployments and \[arms.b\] 2; name as many in each"),
        ({"dsn": "host=c"}, r"\[arms.a\] names 4 deployments and \[arms.b\] 1; name as many in each"),
        ({"postgres": "18"}, r"\[arms.a\] names 4 deployments and \[arms.b\] 1; name as many in each"),
        ({"dsn": ["host=c", "host=c"]}, "names a server twice"),
        ({"dsn": ["host=c", " "]}, "a connection string is empty"),
        ({"dsn": []}, "at least 1 item"),
    ],
)
def test_deployments_that_cannot_be_paired_are_refused(other, message):
    with pytest.raises(StudyError, match=message):
        make_plan(spec_of(4, other), 7, NOW)


def test_too_few_deployments_for_so_many_arms_are_told_before_the_first_trial():
    spec = spec_of(8, arms="abcdefghi", blocks=16)
    plan = make_plan(spec, 7, NOW)
    assert "with 8 deployments no verdict is possible; 9 arms take at least 9 of each" in warnings(Design(spec), plan)
    enough = spec_of(8, blocks=16)
    assert fewest_blocks(Design(enough), make_plan(enough, 7, NOW)) == 16


def test_passwords_are_kept_of_none_of_them():
    arms = {arm: {"dsn": [f"host={arm}1", f"host={arm}2 password=hunter2"]} for arm in "ab"}
    spec = build_study({"arms": arms}, "test")
    assert has_secrets(spec)
    assert "hunter2" not in freeze(spec)
    assert thaw(freeze(spec)).arms["a"].dsn == ["host=a1", "host=a2"]


def test_a_frozen_study_with_one_dsn_as_text_is_read_as_before():
    spec = build_study({"arms": {"a": {"dsn": "host=one"}, "b": {"dsn": "host=two"}}}, "test")
    assert thaw(freeze(spec).replace('["host=one"]', '"host=one"')) == spec
