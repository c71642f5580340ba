"""The capacity in the report: the response time over the rate, and its tables."""

from __future__ import annotations

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.report.brief import brief
from pgtrial.report.charts.capacity import capacity_charts
from pgtrial.report.data import StudyData
from pgtrial.report.tables.capacity import capacity_tables
from pgtrial.report.tables.results import level_table
from pgtrial.store.study_file import build_study, with_fleet
from tests.report.test_metrics import data_of
from tests.verdict.capacities import POINT, capacity_plan, trials_of
from tests.verdict.studies import make_plan, verdict_of


def capacity_data() -> StudyData:
    plan = capacity_plan()
    trials = trials_of(plan, lambda planned: (900.0 if planned.arm == "off" else 1000.0) + planned.block)
    load = {"workload": "tpcb-like", "capacity": {"p99": "20ms"}}
    spec = build_study({"load": load, "arms": {arm: {} for arm in plan.arms}}, "test")
    return StudyData(spec, plan, trials, {}, verdict_of(plan, trials))


def test_the_chart_has_probes_the_promise_and_the_capacities():
    (figure,) = capacity_charts(capacity_data())
    assert "the promise is p99 within 20ms" in figure.alt
    assert "on 1,006/s; off 906/s" in figure.alt
    rows = [row for dataset in figure.spec["datasets"].values() for row in dataset]
    assert {row["ms"] for row in rows if "kept" in row} == {15, 40}
    assert [row for row in rows if set(row) == {"ms"}] == [{"ms": 20}]
    assert {row["arm"]: row["rate"] for row in rows if set(row) == {"arm", "rate", "low", "high"}} == {
        "on": 1005.5,
        "off": 905.5,
    }


def test_tables_have_capacities_with_intervals_and_every_probe():
    data = capacity_data()
    levels, probes = capacity_tables(data)
    assert [row[1:3] for row in levels.rows] == [["on", "1,006"], ["off", "906"]]
    assert all(row[3] for row in levels.rows)
    assert len(probes.rows) == 2 * len(data.trials)
    assert {row[-1] for row in probes.rows} == {"kept", "broken"}
    assert level_table(data).caption.startswith("Capacity of each arm")


def test_another_study_has_no_section_on_it():
    data = data_of("p99")
    assert capacity_charts(data) == []
    assert capacity_tables(data) == []


def alone(blocks: int = 8) -> tuple[Plan, StudyResult]:
    plan = make_plan(("on",), blocks=blocks, points=[POINT], duration_s=5.0).model_copy(
        update={"metrics": ["capacity"]}
    )
    trials = trials_of(plan, lambda planned: 1000.0 + planned.block)
    return plan, verdict_of(plan, trials)


def test_one_arm_alone_has_its_capacity_with_an_interval_over_blocks():
    plan, result = alone()
    (text,) = result.sentences
    assert text.startswith(
        "on serves 1,004 transactions per second with p99 within 20ms (tpcb-like, scale 10, 8 clients); interval 1,000 "
        "to 1,007 (95% interval of the median, 8 blocks), probes of 5s"
    )
    (headline,) = brief(result, plan).headlines
    assert (headline.verdict, headline.text) == (None, "on serves 1,004 transactions per second with p99 within 20ms")
    assert (result.primary, result.exit_status) == ([], 0)


def test_the_interval_of_one_arm_takes_six_blocks():
    plan, result = alone(blocks=5)
    (headline,) = brief(result, plan).headlines
    assert headline.lines[0].text == "takes 6 blocks without a failed trial, and there are 5"
    assert result.exit_status == 2


def test_a_study_of_one_arm_without_a_promise_is_refused():
    with pytest.raises(StudyError, match="a study needs at least two arms"):
        build_study({"arms": {"on": {}}}, "test")


def test_a_fleet_makes_no_probes():
    load = {"workload": "tpcb-like", "capacity": {"p99": "20ms"}}
    spec = build_study({"load": load, "arms": {"on": {}}}, "test")
    with pytest.raises(StudyError, match=r"\[fleet\] one engine makes the probes of a capacity"):
        with_fleet(spec, address="local")
    jobs = build_study({"load": {"query": "SELECT 1"}, "arms": {"on": {}, "off": {}}}, "test")
    assert with_fleet(jobs, address="local").fleet is not None
