"""A search for the capacity: from events to probes, where it begins, and on real servers."""

from __future__ import annotations

import math

import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.conduct.progress import Second
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.probes import Search, first_rate, probe_of, start_rate
from pgtrial.model.latencies import Latencies
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.report.build import build_report, differences
from pgtrial.report.data import read_data
from pgtrial.statistics import capacity
from pgtrial.store.bundle import open_study, write_bundle
from tests.conduct.small import small_study
from tests.conftest import require_engine
from tests.verdict.capacities import POINT, trials_of
from tests.verdict.studies import make_plan

PROMISE = CapacityLoad(percentile="p99", limit_s=0.02, failures=0.001)


def outcome_of(
    latencies_us: list[float], *, seconds: float = 1.0, failed: int = 0, waiting: int = 0, busy: int = 0
) -> Outcome:
    """Returns a run whose committed transactions had these latencies."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for latency in latencies_us:
        histogram.record_value(round(1000 * latency))
    text = histogram.encode().decode()
    failures = {"40001": failed} if failed else {}
    counted = {"transactions": len(latencies_us), "failures": failures, "histogram": text}
    outcome = Outcome()
    outcome.add({"event": "tick", "phase": "measure", "second": 0, "queue": {"waiting": 9, "busy": 1}, **counted})
    outcome.add(
        {"event": "tick", "phase": "measure", "second": 1, "queue": {"waiting": waiting, "busy": busy}, **counted}
    )
    outcome.add({"event": "tick", "phase": "drain", "second": 0, "queue": {"waiting": 99, "busy": 9}, **counted})
    measure = {**counted, "duration_s": seconds, "tps": len(latencies_us) / seconds, "lag_us": {"p99": 7.0}}
    outcome.add({"event": "done", "status": 0, "clients_aborted": 0, "measure": measure})
    return outcome


def test_failed_and_waiting_transactions_count_as_slower():
    probe = probe_of(outcome_of([1000.0] * 990 + [30_000.0] * 10, failed=5, waiting=40, busy=5), 1000, PROMISE)
    late = 45 - 1000 * 0.02
    assert probe.transactions == 1000 + 5 + late
    assert probe.slower == 10 + 5 + late
    assert (probe.failed, probe.waiting, probe.tps, probe.lag_p99_us) == (5, 40, 1000, 7)
    assert not probe.kept


def test_transactions_that_wait_no_longer_than_the_limit_are_not_slower():
    probe = probe_of(outcome_of([1000.0] * 1000, waiting=15, busy=5), 1000, PROMISE)
    assert (probe.slower, probe.transactions, probe.kept) == (0, 1000, True)


def test_few_slower_ones_keep_the_promise_and_many_failures_break_it():
    assert probe_of(outcome_of([1000.0] * 991 + [30_000.0] * 9), 1000, PROMISE).kept
    assert not probe_of(outcome_of([1000.0] * 1000, failed=2), 1000, PROMISE).kept


def test_the_percentile_falls_on_none_where_too_many_have_no_answer():
    assert probe_of(outcome_of([1000.0] * 1000, waiting=500), 1000, PROMISE).at_percentile_us is None
    at = probe_of(outcome_of([1000.0] * 1000), 1000, PROMISE).at_percentile_us
    assert at == pytest.approx(1000, rel=0.001)


def test_a_run_without_answers_breaks_the_promise():
    probe = probe_of(outcome_of([], waiting=500), 1000, PROMISE)
    assert (probe.transactions, probe.slower, probe.at_percentile_us) == (480, 480, None)


def test_a_search_keeps_the_outcome_of_the_probe_nearest_to_its_capacity():
    search = Search(PROMISE, 600)
    while (rate := search.next_rate) is not None:
        share = min(1.0, 0.01 * (rate / 1000) ** 20)
        slower = round(10_000 * share)
        search.add(outcome_of([1000.0] * (10_000 - slower) + [30_000.0] * slower), rate)
    assert search.capacity == pytest.approx(1000, rel=0.01)
    kept = [probe for probe in search.probes if probe.kept]
    nearest = min(kept, key=lambda probe: abs(math.log(probe.rate / 1000)))
    measured = search.outcome.measured
    assert measured is not None
    assert measured.transactions == nearest.transactions == 10_000
    assert Latencies.read(search.outcome.histogram or "").above(20_000) == nearest.slower


def test_all_searches_of_a_block_begin_at_the_median_of_the_blocks_before():
    plan = make_plan(blocks=3, points=[POINT])
    trials = trials_of(plan, lambda planned: 1000.0 * (1 + planned.block) * (1 if planned.arm == "on" else 1.2))
    assert start_rate(trials, POINT, 0) is None
    assert start_rate(trials, POINT, 1) == 1100
    assert start_rate(trials, POINT, 2) == 1600
    assert start_rate(trials, POINT.model_copy(update={"clients": 1}), 2) is None
    assert first_rate(2000) == 1400


@pytest.fixture
def few_probes(monkeypatch):
    require_engine()
    # few probes: a wide bracket is enough
    monkeypatch.setattr(capacity, "CLOSE", 1)
    monkeypatch.setattr(capacity, "FIRST_STEP", 0.8)
    monkeypatch.setattr(capacity, "NARROW", 1.0)


LOAD = {
    "workload": "select-only",
    "warmup": "1s",
    "duration": "2s",
    "interleave": "auto",
    "capacity": {"p50": "50ms", "failures": "1%"},
}


@pytest.mark.server
def test_a_study_of_capacity_runs_on_real_servers(tmp_path, few_probes):
    study = small_study(tmp_path / "s", 1, load=LOAD)
    events = []
    run_study(study, events.append)
    trials = study.trials()
    assert [trial.status for trial in trials] == ["completed", "completed"]
    for trial in trials:
        assert trial.capacity is not None
        assert {probe.kept for probe in trial.probes} == {False, True}
        rates = [probe.rate for probe in trial.probes]
        assert 0.999 * min(rates) <= trial.capacity <= 1.001 * max(rates)
        assert trial.measured is not None
        assert trial.measured.latency_us is not None
        committed = trial.server_deltas["database"]["xact_commit"]
        # more: what was unreported before; fewer: what was committed before a busy lab heard of the beginning
        assert 0.1 < committed / trial.measured.transactions < 3, "of the probe that is stored"
        assert (study.trial_path(trial) / "engine.jsonl").read_text().count('"event":"hello"') == 1 + len(rates)
    seconds = [event for event in events if isinstance(event, Second)]
    assert {event.probe for event in seconds} >= {None, 1, 2}
    build_report(study)
    report = (study.path / "report.md").read_text()
    assert "## Capacity" in report
    assert "p50 within 50ms" in report


@pytest.mark.server
def test_one_arm_alone_has_a_report_and_a_bundle_that_is_verified(tmp_path, few_probes):
    study = small_study(tmp_path / "s", 1, load=LOAD, arms={"alone": {}})
    run_study(study, lambda event: None)
    (trial,) = study.trials()
    assert trial.capacity is not None
    build_report(study)
    report = (study.path / "report.md").read_text()
    assert "alone" in report
    assert "transactions per second with p50 within 50ms" in report
    assert "<html" in (study.path / "report.html").read_text()
    assert read_data(study).result.primary == []
    write_bundle(study, tmp_path / "s.tar.xz", everything=False)
    with open_study(tmp_path / "s.tar.xz") as bundled:
        assert differences(bundled) == []


@pytest.mark.server
def test_no_load_of_a_search_is_faster_than_the_rate_allowed(tmp_path, few_probes):
    promise = {"p50": "500ms", "at_most": 40}
    # half of a probe is longer than a busy machine stands still
    load = {**LOAD, "capacity": promise, "duration": "8s"}
    study = small_study(tmp_path / "s", 1, load=load, arms={"alone": {}})
    events = []
    run_study(study, events.append)
    (trial,) = study.trials()
    rates = {event.rate for event in events if isinstance(event, Second)}
    assert max(rate or math.inf for rate in rates) == 40.0, "the load that warms the server up has that rate too"
    assert trial.probes[-1].rate == trial.capacity == 40.0
    assert trial.probes[-1].kept
    build_report(study)
    ended = "the search ended at the highest rate that was allowed, and the capacity may be higher"
    assert ended in " ".join((study.path / "report.md").read_text().split())
