"""Which outcomes of the engine are failed trials, and what is kept of them."""

import pytest

from pgtrial.errors import StudyError
from pgtrial.trial.outcome import Outcome

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
    with pytest.raises(
        StudyError, match=r"says nothing of 'cpu_per_transaction_us'; install the engine and the lab from"
    ):
        outcome({**DONE, "client": silent}).client  # noqa: B018


FAILED = {
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
