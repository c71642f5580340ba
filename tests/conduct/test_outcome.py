"""Tests of the outcomes of the engine for which a trial fails, and of the measurements that a failed trial keeps."""

import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.model.errors import StudyError

LATENCY = {
    "mean": 2.0,
    "stddev": 1.0,
    "min": 1.0,
    "p50": 2.0,
    "p90": 3.0,
    "p95": 3.0,
    "p99": 4.0,
    "p99.9": 5.0,
    "max": 6.0,
}
MEASURED = {"duration_s": 2.0, "transactions": 20, "failures": {"40001": 1}, "tps": 10.0, "latency_us": LATENCY}
DONE = {
    "event": "done",
    "status": 0,
    "interrupted": False,
    "clients_aborted": 0,
    "warmup": None,
    "measure": MEASURED,
    "client": {
        "cpu_user_s": 1.0,
        "cpu_system_s": 0.5,
        "busiest_thread_share": 0.4,
        "cpu_per_transaction_us": 75.0,
        "warnings": [],
    },
}


def outcome(*events):
    gathered = Outcome()
    gathered.add({"event": "connected", "clients": 8})
    for event in events:
        gathered.add(event)
    return gathered


def test_a_run_that_reports_is_completed():
    done = outcome({"event": "something new"}, DONE)
    assert done.failure(0, "") is None
    assert done.measured is not None
    assert done.measured.latency_us is not None
    assert done.measured.latency_us.p999 == 5.0
    assert done.measured.failures == {"40001": 1}
    assert done.client is not None
    assert done.warmup is None


def test_what_the_engine_says_against_itself_is_kept():
    warning = {"kind": "client-busy", "message": "the busiest thread was busy for 93% of the time", "new key": 1}
    use = outcome({**DONE, "client": {**DONE["client"], "warnings": [warning]}}).client
    assert use is not None
    assert use.cpu_per_transaction_us == 75.0
    assert [(each.kind, each.message) for each in use.warnings] == [("client-busy", warning["message"])]


def test_an_engine_that_does_not_check_itself_is_not_taken_for_one_that_found_nothing():
    silent = {"cpu_user_s": 1.0, "cpu_system_s": 0.5, "busiest_thread_share": 0.4}
    with pytest.raises(StudyError, match=r"has no field 'cpu_per_transaction_us'; install the engine and the lab from"):
        outcome({**DONE, "client": silent}).client  # noqa: B018


EXTENT = {"mean": 4e5, "min": 1e5, "max": 9e5}
PERCENTILES = {"p50": 3e5, "p90": 6e5, "p95": 7e5, "p99": 8e5, "p99.9": 9e5}
TOLD = {
    "planned": 22,
    "completed": 20,
    "failed": 2,
    "failures": {"pool-timeout": 1, "57014": 1},
    "unfinished": 0,
    "response_us": {**EXTENT, "median": 350_000.5},
    "queue_us": EXTENT,
    "service_us": EXTENT,
    "timeout_waited_us": {"mean": 15e6, "min": 15e6, "max": 15e6},
    "under_5_s": 20,
    "classes": {"up_to_0.1_s": 1, "up_to_1_s": 19, "up_to_10_s": 0, "longer": 0},
}
WITH_TASKS = {**DONE, "measure": {**MEASURED, "queue_us": PERCENTILES, "service_us": PERCENTILES}, "tasks": TOLD}


def test_tasks_are_summed_up_with_the_failed_ones_and_the_time_until_they_failed():
    waited = {"event": "task", "failure": "pool-timeout", "waited_s": 15.0, "served_s": 0.0}
    cancelled = {"event": "task", "failure": "57014", "waited_s": 1.0, "served_s": 2.0}
    tasks = outcome(waited, cancelled, WITH_TASKS).tasks
    assert tasks is not None
    assert tasks.failed_after_us == 9e6
    assert tasks.mean_us == pytest.approx((20 * 4e5 + 2 * 9e6) / 22)
    assert tasks.response_us is not None
    assert tasks.queue_us is not None
    assert (tasks.response_us.median, tasks.queue_us.median, tasks.queue_us.p95) == (350_000.5, 3e5, 7e5)
    assert [tasks.within(limit) for limit in ("0.1_s", "1_s", "10_s")] == [1, 20, 20]


def test_a_load_without_tasks_has_no_summary_of_them():
    assert outcome(DONE).tasks is None


NO_TASK = {**TOLD, "completed": 0, "failed": 22, "failures": {"pool-timeout": 22}, "response_us": None}

FAILED = {
    "no task completed": (
        [{**WITH_TASKS, "measure": {**MEASURED, "transactions": 0, "latency_us": None}, "tasks": NO_TASK}],
        0,
        "",
        "not one of 22 tasks was completed (pool-timeout: 22)",
    ),
    "killed": ([], -9, "the engine was killed by SIGKILL", "ended before its report: the engine was killed by SIGKILL"),
    "clients cut off": (
        [{"event": "error", "message": "server closed the\nconnection"}, {**DONE, "status": 2, "clients_aborted": 3}],
        2,
        "",
        "3 of 8 clients were cut off: server closed the connection",
    ),
    "status": ([{**DONE, "status": 2}], 2, "out of luck", "ended with status 2: out of luck"),
    "interrupted": ([{**DONE, "interrupted": True}], 0, "", "interrupted by something other than the lab"),
    "nothing committed": ([{**DONE, "measure": {**MEASURED, "transactions": 0}}], 0, "", "not one transaction"),
    "nothing measured": ([{**DONE, "measure": None}], 0, "", "not one transaction"),
}


@pytest.mark.parametrize(("events", "status", "words", "expected"), FAILED.values(), ids=FAILED.keys())
def test_anything_else_is_a_failed_trial_with_its_reason(events, status, words, expected):
    assert expected in (outcome(*events).failure(status, words) or "")


def test_a_failure_names_what_made_the_load():
    of_program = outcome().failure(1, "Error: no such table", "the client program 'node a.js'")
    assert of_program == "the client program 'node a.js' ended before its report: Error: no such table"


def test_the_timeline_has_a_row_for_each_whole_second():
    tick = {"event": "tick", "phase": "measure", "transactions": 10, "failures": {"40001": 1, "40P01": 2}}
    gathered = outcome(
        {**tick, "second": 0, "latency_us": LATENCY},
        {**tick, "second": 1, "transactions": 0, "latency_us": None},
        {**tick, "second": 2, "seconds": 0.02, "latency_us": LATENCY},
    )
    rows = gathered.timeline().to_dicts()
    assert [row["second"] for row in rows] == [0, 1]
    assert rows[0]["failures"] == 3
    assert rows[0]["p99_us"] == 4.0
    assert rows[1]["p99_us"] is None


def test_what_an_engine_measured_that_was_killed_is_summed_up_from_its_seconds():
    latencies = HdrHistogram(1, 3_600_000_000, 3)
    for value in (100, 200, 300):
        latencies.record_value(value)
    tick = {"event": "tick", "phase": "measure", "transactions": 3, "histogram": latencies.encode().decode()}
    gathered = outcome(
        {**tick, "phase": "warmup", "second": 0, "failures": {}, "histogram": None},
        {**tick, "second": 0, "failures": {"40001": 1}},
        {**tick, "second": 1, "failures": {"57P02": 8, "40001": 1}, "seconds": 0.5},
    )
    measured = gathered.measured
    assert measured is not None
    assert (measured.transactions, measured.failures, measured.tps) == (6, {"40001": 2, "57P02": 8}, 4.0)
    assert measured.latency_us is not None
    assert (measured.latency_us.p50, measured.latency_us.max) == (200, 300)
    assert gathered.histogram is not None
    merged = HdrHistogram.decode(gathered.histogram)
    assert merged.get_total_count() == 6
    assert gathered.warmup is not None
    assert gathered.warmup.latency_us is None
    assert [(span.kind, span.first_s, span.last_s, span.failures) for span in gathered.failure_spans] == [
        ("40001", 0, 1, 2),
        ("57P02", 1, 1, 8),
    ]


def test_with_a_rate_the_service_time_stands_beside_the_response_time():
    service = {"p50": 1.0, "p90": 2.0, "p95": 2.0, "p99": 3.0, "p99.9": 4.0}
    measured = outcome({**DONE, "measure": {**MEASURED, "service_us": service}}).measured
    assert measured is not None
    assert measured.service_us is not None
    assert measured.service_us.p999 == 4.0
    assert outcome(DONE).measured.service_us is None


def test_at_a_rate_a_slice_without_a_transaction_has_the_speed_of_the_one_before_it():
    def tick(mean):
        counts = {"transactions": int(mean is not None), "seconds": 0.5}
        times = {"latency_us": {"mean": mean}} if mean is not None else {}
        return {"event": "tick", "phase": "measure", "second": 0, "slice": {"client_s": 4.0}, **counts, **times}

    gathered = outcome(*map(tick, (None, 1000.0, None, None, 500.0, None)))
    assert gathered.speeds(paced=True) == [1000.0, 1000.0, 1000.0, 1000.0, 2000.0, 2000.0]
    assert [speed > 0 for speed in gathered.speeds(paced=False)] == [False, True, False, False, True, False]
    assert outcome(tick(None)).speeds(paced=True) == [0.0]


def test_percentiles_of_trials_with_failures_count_the_failed_ones_behind_the_others():
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(1_000_000, 980)
    histogram.record_value(5_000_000, 10)
    measured = {**MEASURED, "transactions": 990, "histogram": histogram.encode().decode()}
    failed = outcome({**DONE, "measure": {**measured, "failures": {"40001": 6, "57014": 4}}}).measured
    assert failed is not None
    assert failed.with_failures_us is not None
    assert failed.with_failures_us.p50 == pytest.approx(1000, rel=1e-3)
    assert failed.with_failures_us.p99 == pytest.approx(5000, rel=1e-3)
    assert failed.with_failures_us.p999 is None
    assert failed.latency_us == outcome({**DONE, "measure": measured}).measured.latency_us
    none = outcome({**DONE, "measure": {**measured, "failures": {}}}).measured
    assert none is not None
    assert none.with_failures_us is None
    assert "with_failures_us" not in none.model_dump()


def test_queries_are_kept_with_their_times_answers_and_errors():
    def query(name, phase="measure", time_us=5.0, **more):
        usual = {"over_limit": False, "rows": 1, "rows_hash": "a", "sqlstate": None, "message": None}
        return {"event": "query", "query": name, "phase": phase, "run": 1, "time_us": time_us, **usual, **more}

    refused = {"time_us": None, "sqlstate": "22012", "message": "ERROR:  division by zero"}
    hello = {"event": "hello", "plan": {"scripts": ["one", "two", "three"], "suite": {"limit_s": 2.0}}}
    gathered = outcome(
        hello,
        query("one", phase="warmup", rows=9),
        query("two", over_limit=True, time_us=2e6, rows=0, rows_hash=None),
        query("one"),
        query("three", **refused, rows=0, rows_hash=None),
        query("one", time_us=7.0, rows_hash="b"),
        query("three", **refused),
        DONE,
    )
    assert gathered.failure(0, "") is None
    assert gathered.suite is not None
    one, two, three = gathered.suite.queries
    assert (one.times_us, [answer.rows_hash for answer in one.answers]) == ([5.0, 7.0], ["a", "b"])
    assert (two.times_us, two.over_limit, two.answers) == ([2e6], 1, [])
    assert (three.times_us, three.failures, three.message) == ([], {"22012": 2}, "ERROR:  division by zero")
    # one that failed has the limit
    assert gathered.suite.mean_us == pytest.approx((35**0.5 * 2e6 * 2e6) ** (1 / 3))
    nothing = {**DONE, "measure": {**MEASURED, "transactions": 0}}
    assert outcome(hello, query("three", **refused), nothing).failure(0, "") == (
        "every query failed: ERROR: division by zero"
    )


def test_a_load_without_queries_is_no_suite():
    assert outcome(DONE).suite is None
