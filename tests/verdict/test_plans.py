"""Plans of both arms beside each other: where they begin to differ, what the verdict says of it, and of planning."""

from __future__ import annotations

import pytest

from pgtrial.model.records.trial import LoadStatement
from pgtrial.report.brief import brief
from pgtrial.verdict.plans import PlanPair
from tests.verdict import studies
from tests.verdict.studies import make_plan, noisy, run

ONE = "SELECT a FROM t WHERE b = $1"
SCAN = ["Sort", "  Sort Key: a", "  ->  Seq Scan on t", "        Filter: (b = 1)"]
BY_INDEX = ["Sort", "  Sort Key: a", "  ->  Index Scan using t_b on t", "        Index Cond: (b = 1)"]


def statement(plan, chosen="custom", **others) -> LoadStatement:
    return LoadStatement(text=ONE, plan=plan, chosen=chosen, **others)


@pytest.mark.parametrize(
    ("base", "other", "expected"),
    [
        (SCAN, BY_INDEX, ("Seq Scan on t", "Index Scan using t_b on t")),
        (SCAN[:3], [*SCAN, "  ->  Hash"], ("nothing more", "Hash")),
        (["Gather", "  Workers: 2"], ["Gather", "  Workers: 4"], ("Workers: 2", "Workers: 4")),
    ],
)
def test_plans_differ_from_their_first_node_that_is_not_the_same(base, other, expected):
    pair = PlanPair(statement(base), statement(other))
    assert not pair.is_same
    assert pair.first_difference() == expected


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (["Sort", "  Sort Key: t.a", "  ->  Seq Scan on t", "        Filter: (b = '1'::integer)"], True),
        (["Sort", "  Sort Key: a", "  ->  Seq Scan on t", "        Disabled: true", "        Filter: (b = 1)"], True),
        (["Sort", "  Sort Key: a", "  ->  Seq Scan on t"], False),
        (["Sort", "  Sort Key: a", "  ->  Parallel Seq Scan on t", "        Filter: (b = 1)"], False),
    ],
    ids=["another text", "a further line", "no filter", "another node"],
)
def test_the_shape_of_a_plan_is_its_nodes_and_the_kinds_of_their_conditions(other, is_same):
    assert PlanPair(statement(SCAN), statement(other)).has_same_shape == is_same


def test_the_result_of_an_initplan_has_another_name_in_other_versions_and_is_the_same_plan():
    before = ["Seq Scan on t", "  Filter: (b = $0)", "  InitPlan 1 (returns $0)", "    ->  Result"]
    today = ["Seq Scan on t", "  Filter: (b = (InitPlan 1).col1)", "  InitPlan 1", "    ->  Result"]
    assert PlanPair(statement(before), statement(today)).is_same
    pair = PlanPair(statement(before), statement([*today[:3], "    ->  Seq Scan on u"]))
    assert pair.first_difference() == ("Result", "Seq Scan on u")


def test_a_plan_for_all_values_is_not_the_plan_for_the_values_of_each_execution():
    pair = PlanPair(statement(SCAN, "generic"), statement(SCAN))
    assert pair.kinds_differ
    assert not pair.is_same
    assert pair.first_difference() == ("generic plan", "custom plan")
    assert PlanPair(statement(SCAN, "unknown"), statement(SCAN)).is_same


def results_with(plans, chosen=("custom", "custom"), speed=1.4, texts=(ONE,), planning_ms=None):
    """Returns the result of a study whose arms have these plans, and the short form of the result."""
    plan = make_plan()
    trials = [
        trial.model_copy(
            update={
                "statements": {
                    text: statement(
                        plans[trial.arm == "off"],
                        chosen[trial.arm == "off"],
                        planning_ms=planning_ms if chosen[trial.arm == "off"] == "custom" else None,
                    )
                    for text in texts
                }
            }
        )
        for trial in run(plan, noisy({"off": speed}))
    ]
    result = studies.verdict_of(plan, trials)
    (headline,) = brief(result, plan).headlines
    return result, {line.label: line.text for line in headline.lines}


def test_the_changed_plan_is_named_beside_the_verdict():
    _, lines = results_with((SCAN, BY_INDEX))
    assert lines["plans"] == f"the plan of {ONE} differs: Seq Scan on t in on, Index Scan using t_b on t in off"
    assert "plans" not in results_with((SCAN, SCAN))[1]


def test_at_most_three_changed_plans_are_named():
    _, lines = results_with((SCAN, BY_INDEX), texts=[f"SELECT {number}" for number in "abcde"])
    assert lines["plans"].count("differs: ") == 3
    assert lines["plans"].endswith("; 2 more")


def test_trials_that_are_older_than_plans_for_known_values_name_no_plan():
    result, lines = results_with((SCAN, BY_INDEX), (None, None))
    assert result.plans == []
    assert "plans" not in lines


def planning(**study):
    result, _ = results_with((SCAN, SCAN), ("generic", "custom"), **study)
    return [finding for finding in result.findings if finding.rule == "planned_each_time"]


def test_an_arm_that_plans_each_execution_is_named_with_what_planning_weighs():
    (finding,) = planning(planning_ms=0.01)
    assert finding.severity == "info"
    assert finding.message == (
        f"off makes a plan for each execution of {ONE} (0.01 ms), where on takes one plan for all values: planning is "
        "a part of the difference."
    )
    (finding,) = planning(planning_ms=1000.0)
    assert finding.message.endswith("planning is where the time of off goes.")
    result, _ = results_with((SCAN, SCAN))
    assert "planned_each_time" not in [one.rule for one in result.findings]


def drawn(plan_of):
    """Returns the result of a study, like `results_with`, in which a plan depends on the sample of ANALYZE. `plan_of`
    returns the plan of an arm in a block.
    """
    plan = make_plan()
    trials = []
    for trial in run(plan, noisy({"off": 1.4})):
        lines = plan_of(trial.arm, trial.block)
        nodes = {ONE: [line for line in lines if "->" in line or not line.startswith(" ")]}
        first = {ONE: statement(lines)} if trial.block == 0 else {}
        trials.append(trial.model_copy(update={"statements": first, "plan_nodes": nodes}))
    return studies.verdict_of(plan, trials)


def test_a_plan_that_the_sample_of_analyze_chooses_is_named_with_its_share_and_is_no_difference_of_the_arms():
    result = drawn(lambda arm, block: BY_INDEX if arm == "off" and block % 3 == 0 else SCAN)
    (finding,) = [finding for finding in result.findings if finding.rule == "plans_vary"]
    blocks = make_plan().max_blocks
    by_index = len(range(0, blocks, 3))
    assert (finding.severity, finding.arms) == ("info", ["off"])
    assert finding.message == (
        f"In off the plan is another one from trial to trial, as ANALYZE samples: {ONE}: Seq Scan on t in "
        f"{blocks - by_index} of {blocks} trials and Index Scan using t_b on t in {by_index} of {blocks} trials."
    )
    assert result.plans == [], "the first block alone shows a difference, and both arms had the plan"


def test_plans_that_differ_in_every_block_are_a_difference_of_the_arms():
    result = drawn(lambda arm, block: BY_INDEX if arm == "off" else SCAN)
    assert [(one.at_baseline, one.at_arm) for one in result.plans] == [("Seq Scan on t", "Index Scan using t_b on t")]
    assert "plans_vary" not in [finding.rule for finding in result.findings]
