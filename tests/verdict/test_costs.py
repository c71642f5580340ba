"""Tests of the costs of a transaction: whether the arms' costs differ, and whether the difference fits the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import Cost, StudyResult
from pgtrial.model.records.trial import Trial
from pgtrial.report.brief import brief
from tests.verdict.studies import verdict_of

from .studies import make_plan, noisy, run

POINTS = [LoadPoint(workload="tpcb-like", scale=10, clients=clients, protocol="prepared") for clients in (1, 8)]


def with_deltas(trials: list[Trial], arm: str, factor: dict[str, float], sd: float = 0.002) -> list[Trial]:
    """Trials with counters: 1,000 bytes of WAL, 2 flushes and 5 buffers hit a transaction, times the arm's factor."""
    rng = np.random.default_rng(5)

    def counted(trial: Trial) -> Trial:
        if trial.measured is None:
            return trial
        committed = float(trial.measured.transactions) * 1.1  # counters that start early
        base = {"wal_bytes": 1000.0, "wal_sync": 2.0, "blks_hit": 5.0}
        values = {
            name: per
            * committed
            * (factor.get(name, 1.0) if trial.arm == arm else 1.0)
            * float(np.exp(rng.normal(0, sd)))
            for name, per in base.items()
        }
        database = {"xact_commit": committed + 20, "blks_hit": values.pop("blks_hit")}
        return trial.model_copy(
            update={
                "client": None,
                "server_deltas": {"wal": values, "database": database, "sampler": {"transactions": 20.0}},
            }
        )

    return [counted(trial) for trial in trials]


def analysed(plan: Plan, speed: float, factor: dict[str, float], **options: float) -> StudyResult:
    return verdict_of(plan, with_deltas(run(plan, noisy({"off": speed})), "off", factor, **options))


def cost(result: StudyResult, what: str, arm: str = "off", point: int | None = 0) -> Cost:
    return next(c for c in result.costs if (c.what, c.arm, c.load_point) == (what, arm, point))


def test_a_cost_is_divided_by_the_transactions_of_the_same_span_without_the_samplers():
    result = analysed(make_plan(), 1.4, {}, sd=0.0)
    assert cost(result, "WAL").median == pytest.approx(1000.0)
    assert cost(result, "WAL flushes", "on").median == pytest.approx(2.0)


def with_rows(trials: list[Trial], hot: dict[str, float]) -> list[Trial]:
    """Trials with an update and half a delete a transaction; `hot` is by arm the share of updates that are HOT."""

    def of(trial: Trial) -> Trial:
        assert trial.measured is not None
        assert trial.warmup is not None
        number = trial.measured.transactions
        rows = {"updated": number, "hot_updated": hot[trial.arm] * number, "deleted": 0.5 * number}
        grown = 10.0 * (number + trial.warmup.transactions)
        return trial.model_copy(
            update={
                "server_deltas": {"tables": rows},
                "relations_before": {"t": {"bytes_table": 100.0, "bytes_indexes": 100.0}},
                "relations": {"t": {"bytes_table": 100.0 + grown, "bytes_indexes": 100.0 + 3 * grown}},
            }
        )

    return [of(trial) for trial in trials]


def test_updates_that_are_not_hot_dead_rows_and_the_growth_of_tables_and_indexes_are_costs():
    plan = make_plan()
    result = verdict_of(plan, with_rows(run(plan, noisy({"off": 1.4})), {"on": 0.02, "off": 0.98}))
    assert cost(result, "updates that are not HOT", "on").median == pytest.approx(98.0)
    assert cost(result, "updates that are not HOT").median == pytest.approx(2.0)
    assert cost(result, "dead rows").median == pytest.approx(1.5)
    assert cost(result, "growth of tables").median == pytest.approx(10.0)
    assert cost(result, "growth of indexes").median == pytest.approx(30.0)
    (moved,) = result.moved
    assert "updates that are not HOT -98%" in moved
    (headline,) = brief(result, plan).headlines
    assert {line.label: line.text for line in headline.lines}["updates"] == "98% of them are HOT in off, 2% in on"


def test_shares_of_hot_updates_that_are_alike_are_not_told_and_all_or_none_can_be():
    plan = make_plan()

    def lines(hot):
        result = verdict_of(plan, with_rows(run(plan, noisy({"off": 1.4})), hot))
        (headline,) = brief(result, plan).headlines
        return {line.label: line.text for line in headline.lines}

    assert "updates" not in lines({"on": 0.95, "off": 0.98})
    assert lines({"on": 1.0, "off": 0.0})["updates"] == "0% of them are HOT in off, 100% in on"


def test_a_script_of_several_transactions_is_divided_by_the_engines_count():
    plan = make_plan(points=[LoadPoint(workload="orders.sql", scale=10, clients=8, protocol="prepared")])
    assert cost(analysed(plan, 1.0, {}, sd=0.0), "WAL").median == pytest.approx(1100.0)


def test_a_lower_cost_of_a_faster_arm_moved_with_the_effect_and_a_higher_one_against_it():
    result = analysed(make_plan(), 1.4, {"wal_bytes": 0.8, "blks_hit": 1.5})
    wal = cost(result, "WAL").difference
    assert wal is not None
    assert wal.value == pytest.approx(-0.2, abs=0.01)
    (sentence,) = result.moved
    assert sentence.startswith("Costs per transaction, off against on: WAL -20")
    assert ", which fits the verdict; buffers hit +50" in sentence
    assert sentence.endswith(" rose all the same.")
    assert "flushes" not in sentence


def test_a_slower_arm_is_explained_by_what_costs_more():
    (sentence,) = analysed(make_plan(), 0.7, {"wal_sync": 1.25}).moved
    assert "off against on: WAL flushes +25" in sentence
    assert sentence.endswith(", which fits the verdict.")


def test_a_difference_within_the_margin_is_not_clear():
    assert analysed(make_plan(), 1.4, {"wal_bytes": 0.995}).moved == []


def test_nothing_is_said_to_move_with_an_effect_that_is_not_there():
    result = analysed(make_plan(margin=0.2), 1.0, {"wal_bytes": 0.5})
    assert result.primary[0].verdict == "equivalent"
    assert cost(result, "WAL").difference is not None
    assert result.moved == []


def test_an_arm_that_has_none_of_a_cost_is_told_in_words():
    (sentence,) = analysed(make_plan(), 1.4, {"wal_sync": 0.0}).moved
    assert "WAL flushes to next to none" in sentence


def test_with_several_load_points_the_sentence_is_about_the_mean_of_the_ratios():
    plan = make_plan(points=POINTS, blocks=12)
    result = analysed(plan, 1.4, {"wal_bytes": 0.8})
    mean = cost(result, "WAL", point=None)
    assert mean.median is None
    assert mean.difference is not None
    assert mean.difference.value == pytest.approx(-0.2, abs=0.01)
    assert len(result.moved) == 1


def test_before_the_first_look_there_is_a_median_and_no_difference():
    plan = make_plan()
    result = verdict_of(plan, with_deltas(run(plan, noisy({}), upto=6), "off", {}))
    assert cost(result, "WAL").median is not None
    assert cost(result, "WAL").difference is None


def test_what_no_arm_has_more_than_next_to_none_of_is_left_out():
    result = analysed(make_plan(), 1.0, {})
    assert not any(c.what in ("full-page images", "device reads", "network") for c in result.costs)


def test_a_failed_trial_has_no_cost():
    plan = make_plan()
    tps = noisy({"off": 1.4})
    trials = with_deltas(run(plan, lambda p: None if (p.block, p.arm) == (2, "off") else tps(p)), "off", {})
    assert cost(verdict_of(plan, trials), "WAL").trials == 7
    assert cost(verdict_of(plan, trials), "WAL", "on").trials == 8
