"""Tests of the conditions that declared metrics set for a study: `plan` states them before the first trial."""

from __future__ import annotations

import math

import pytest

from pgtrial.conduct.planning.declared import metrics_in_words
from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.lengths import expected_lengths
from pgtrial.conduct.planning.noise import conditions_of
from pgtrial.conduct.planning.plan import make_plan, warnings
from pgtrial.model.marks import in_toml
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.store.comparison import parse_setup
from pgtrial.store.study_file import build_study

NOW = "2026-11-26T09:00:00+00:00"
SERVERS = {"a": {}, "b": {"settings": {"shared_buffers": "64MB"}}}
SESSIONS = {"a": {}, "b": {"settings": {"jit": "off"}}}


def study(*metrics, arms=SERVERS, load=None, **verdict):
    given = {"workload": "select-only", "warmup": "1s", "duration": "30s", **(load or {})}
    return build_study({"arms": arms, "load": given, "verdict": {"metrics": list(metrics), **verdict}}, "test")


def warnings_in_words(spec):
    return in_toml(" ".join(warnings(Design(spec), make_plan(spec, 7, NOW))))


def test_a_plan_has_the_metrics_of_its_study_and_a_study_without_has_none():
    plan = make_plan(study("p99", "tps"), 7, NOW)
    assert (plan.metrics, plan.measure, plan.is_paced) == (["p99", "tps"], "p99 response time", False)
    default = make_plan(study(), 7, NOW)
    assert default.measure == "goodput"
    assert "metrics" not in default.model_dump()
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


def test_a_single_metric_may_stand_for_a_list_and_is_kept_in_the_frozen_study():
    spec = build_study({"arms": SERVERS, "verdict": {"metrics": "wal per transaction"}}, "test")
    assert spec.verdict.metrics == ["wal per transaction"]
    assert thaw(freeze(spec)).verdict.metrics == spec.verdict.metrics


def test_the_plan_says_how_long_trials_have_to_be_for_a_percentile():
    spec = study("response", "p99", "p99.9", load={"rate": 500})
    needed_s = math.ceil((100_000 + 3 * math.sqrt(100_000)) / 500)
    assert (
        f"p99.9 takes 100,000 transactions in each trial, {needed_s // 60}min {needed_s % 60}s at 500/s"
        in warnings_in_words(spec)
    )
    assert "p99 takes" not in warnings_in_words(study("p99", load={"rate": 500}))
    assert "21s at 500/s, and trials have 20s" in warnings_in_words(study("p99", load={"rate": 500, "duration": "20s"}))


def test_where_pgtrial_chooses_the_length_the_budget_is_what_to_raise():
    load = {"workload": "select-only", "rate": 100}
    spec = build_study({"arms": SERVERS, "load": load, "verdict": {"budget": "10min", "metrics": "p99"}}, "test")
    assert "raise [verdict] budget, which sets their length, or the rate" in warnings_in_words(spec)
    assert "raise [load] duration, or the rate" in warnings_in_words(study("p99", load={"rate": 100}))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["p99"], "p99 decides"),
        (["p99", "p50"], "p99 decides; p50 has an error of its own and is decided after block 8 at the earliest"),
        (
            ["response", "p50", "p99"],
            "response decides; p50 and p99 share an error and are decided after block 10 at the earliest",
        ),
    ],
)
def test_the_plan_lists_the_metrics_and_when_they_can_be_decided(names, words):
    assert metrics_in_words(make_plan(study(*names, load={"rate": 1000}), 7, NOW)) == words


def test_of_several_rates_the_lowest_says_how_long():
    assert "at 100/s" in warnings_in_words(study("p99", load={"rate": [1000, 100]}))


def test_at_a_closed_loop_percentiles_are_said_to_repeat_the_throughput():
    assert "a closed loop makes p99 follow from the throughput" in warnings_in_words(study("tps", "p99"))
    assert "closed loop" not in warnings_in_words(study("tps", "wal per transaction"))
    assert "closed loop" not in warnings_in_words(study("p50", load={"rate": 500}))


def test_costs_of_arms_that_share_a_server_are_said_to_be_unknown():
    assert "share_server = false" in warnings_in_words(study("tps", "wal per transaction", arms=SESSIONS))
    assert "share_server" not in warnings_in_words(study("tps", "wal per transaction", arms=SERVERS))
    assert "share_server" not in warnings_in_words(study("response", "p99", arms=SESSIONS, load={"rate": 100}))


@pytest.mark.parametrize("percentile", ["p50", "p99"])
def test_chosen_lengths_hold_the_transactions_that_a_percentile_takes(percentile):
    load = {"workload": "select-only", "rate": 400}
    spec = build_study(
        {"arms": SERVERS, "load": load, "verdict": {"budget": "3h", "metrics": ["response", percentile]}}, "test"
    )
    default = build_study({"arms": SERVERS, "load": load, "verdict": {"budget": "3h"}}, "test")
    shortest, chosen = (
        expected_lengths(interleaved(Design(default))).duration_s,
        expected_lengths(interleaved(Design(spec))).duration_s,
    )
    assert chosen == (shortest if percentile == "p50" else pytest.approx(26))
    assert percentile not in warnings_in_words(spec)


def test_the_first_look_can_decide_the_claims_that_share_an_error():
    assert [Design(study(*names)).claims for names in ([], ["tps"], ["tps", "p99"], ["tps", "p50", "p99", "p90"])] == [
        1, 1, 1, 3,
    ]  # fmt: skip
    assert make_plan(study("tps", "p50", "p99", "p90"), 7, NOW).looks[0] == 10


def test_noise_of_one_metric_says_nothing_of_another():
    known = [conditions_of(Design(study(*names)), 30.0) for names in ([], ["p99"], ["p99", "p50"], ["p50"])]
    assert known[1] == known[2]
    assert len({str(each) for each in known}) == 3
    assert "metric" not in known[0].model_dump()


PRICED = {"a": {"price": "0.42 USD/h"}, "b": {"price": "613.2 USD/month", "settings": {"shared_buffers": "64MB"}}}


def test_prices_declare_transactions_per_cent_behind_what_decides():
    plan = make_plan(study(arms=PRICED), 7, NOW)
    assert plan.metrics == ["tps", "transactions per cent"]
    assert plan.prices == pytest.approx({"a": 42.0, "b": 84.0})
    assert (
        make_plan(study("transactions per cent", "tps", arms=PRICED), 7, NOW).primary_metric == "transactions per cent"
    )
    assert make_plan(study("wal per transaction", arms=PRICED), 7, NOW).metrics[1:] == ["transactions per cent"]
    assert conditions_of(Design(study(arms=PRICED)), 30.0) == conditions_of(Design(study()), 30.0)


def test_a_price_is_shared_by_the_arms_and_is_no_difference_of_servers():
    shared = build_study({"server": {"price": "1 EUR/d"}, "arms": SERVERS}, "test")
    plan = make_plan(shared, 7, NOW)
    assert plan.prices == pytest.approx({"a": 100 / 24, "b": 100 / 24})
    assert plan.declared["b"] == ["settings.shared_buffers"]
    assert thaw(freeze(shared)).server.price == "1 EUR/d"


def test_at_a_rate_prices_are_said_to_be_unused():
    spec = study(arms=PRICED, load={"rate": 100})
    assert make_plan(spec, 7, NOW).metrics == []
    assert "prices are not used" in warnings_in_words(spec)
    assert "prices" not in warnings_in_words(study(arms=PRICED))


def test_a_price_stands_in_a_set_up_of_the_command_line():
    assert parse_setup("postgres=18,price=0.42 USD/h") == {"postgres": "18", "price": "0.42 USD/h"}
