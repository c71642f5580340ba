"""The plan of a screening study: its drawn levels, how many blocks it needs, and what it says beforehand."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.outlook import outlook
from pgtrial.conduct.planning.plan import More, extend, make_plan, warnings
from pgtrial.model.errors import BudgetError
from pgtrial.model.records.plan import Interleaving, Plan
from pgtrial.model.study.design import Design
from tests.verdict.screens import FACTORS, plan_of, screened, screening_study

METHODS = ("bitmapscan", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan", "indexscan", "material", "memoize")
MANY = {f"enable_{name}": ["on", "off"] for name in (*METHODS, "mergejoin", "nestloop", "seqscan", "sort")}


def levels_of(plan: Plan, arm: str) -> list[str]:
    return [trial.levels or "" for trial in sorted(plan.trials, key=lambda one: one.block) if trial.arm == arm]


def test_each_block_has_a_set_up_and_its_complement():
    plan = plan_of(screening_study(blocks=20))
    assert plan.arms == ["drawn", "complement"]
    assert [factor.labels for factor in plan.factors[:2]] == [
        ("shared_buffers=128MB", "shared_buffers=1GB"),
        ("jit=on", "jit=off"),
    ]
    for one, other in zip(levels_of(plan, "drawn"), levels_of(plan, "complement"), strict=True):
        assert all({a, b} == {"0", "1"} for a, b in zip(one, other, strict=True))
    assert plan.declared["complement"] == [f"settings.{name}" for name in sorted(FACTORS)]
    assert "averaged over the levels of the others" in plan.scope


def test_every_combination_of_levels_is_as_probable_as_any_other_in_either_order():
    """Counts the levels and the orders of many blocks: 2 factors and an order have 8 combinations."""
    plan = plan_of(screening_study({"jit": ["on", "off"], "work_mem": ["4MB", "8MB"]}, blocks=2000))
    first = {trial.block: trial.arm for trial in sorted(plan.trials, key=lambda one: -one.index)}
    counts = Counter((levels, first[block]) for block, levels in enumerate(levels_of(plan, "drawn")))
    assert counts.keys() == set(product(("00", "01", "10", "11"), plan.arms))
    expected = 2000 / 8
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 24.3  # 0.1% of a chi-square of 7


def test_the_levels_follow_from_the_seed_and_more_blocks_begin_with_the_same():
    short, long = (plan_of(screening_study(blocks=blocks)) for blocks in (20, 35))
    assert long.trials[: len(short.trials)] == short.trials
    assert levels_of(plan_of(screening_study(blocks=20), seed=8), "drawn") != levels_of(short, "drawn")


def test_a_study_that_has_ended_goes_on_with_further_levels():
    spec = screening_study(blocks=20)
    plan = plan_of(spec)
    design = Design.planned(spec, plan)
    longer = extend(plan, design, More(blocks=5), screened(plan, {}), decided=False, created=plan.created)
    assert longer.trials[: len(plan.trials)] == plan.trials
    assert len(levels_of(longer, "drawn")) == 25


def test_all_factors_share_the_error_and_need_blocks_beyond_their_number():
    design = Design(screening_study(MANY))
    assert design.claims == 12
    with pytest.raises(BudgetError, match=r"a verdict on 12 factors needs at least 23 blocks .* or screen fewer"):
        make_plan(screening_study(MANY, blocks=None, verdict={"budget": "3min"}), 1, "2026-11-20T14:12:03+00:00")


def test_too_few_blocks_for_the_factors_are_told_beforehand():
    spec = screening_study(MANY, blocks=14)
    plan = plan_of(spec)
    assert "with blocks = 14 no verdict is possible; 12 factors take at least 23" in list(warnings(Design(spec), plan))
    assert outlook(Design(spec), plan) is None
    enough = screening_study(MANY, blocks=40)
    assert outlook(Design(enough), plan_of(enough)) is not None


def test_factors_of_sessions_share_a_server_and_others_have_one_each():
    sessions = Design(screening_study({"jit": ["on", "off"], "work_mem": ["4MB", "8MB"]}, load={"interleave": "auto"}))
    assert interleaved(sessions).interleaving == Interleaving(slice_s=0.25, shared_server=True)
    assert not Design(screening_study()).possible_sessions


def test_the_server_of_a_trial_has_the_drawn_levels_and_the_settings_of_all():
    spec = screening_study({"jit": ["on", "off"], "postgres": ["17", "18"]}, server={"settings": {"fsync": "off"}})
    servers = [Design(spec).server_at(levels) for levels in ("00", "01", "10")]
    assert [server.settings for server in servers] == [
        {"fsync": "off", "jit": "on"},
        {"fsync": "off", "jit": "on"},
        {"fsync": "off", "jit": "off"},
    ]
    assert [server.postgres for server in servers] == ["17", "18", "17"]


def test_the_drawn_levels_are_fair_given_all_others():
    """Given the levels of the other factors, the level of a factor is a coin: no column is a function of the others."""
    plan = plan_of(screening_study({"jit": ["on", "off"], "work_mem": ["4MB", "8MB"]}, blocks=2000))
    drawn = np.array([[int(level) for level in levels] for levels in levels_of(plan, "drawn")])
    for given in (0, 1):
        share = drawn[drawn[:, 1] == given, 0].mean()
        assert abs(share - 0.5) < 0.06
