"""Tests of the means and rates by second that are computed from readings."""

from __future__ import annotations

import pytest

from pgtrial.evidence.observe.system import Reading, per_second
from pgtrial.evidence.observe.views import mean_waits, statement_gains


def rates(*readings: Reading) -> list[tuple[int, str, str, float]]:
    return per_second(readings).rows()


def test_a_gain_is_divided_by_the_time_between_the_readings_and_lies_in_its_middle():
    rows = rates(Reading(0.9, {"wal": {"bytes": 100.0}}), Reading(2.9, {"wal": {"bytes": 700.0}}))
    assert rows == [(1, "wal", "bytes", pytest.approx(300.0))]


def test_several_readings_within_a_second_are_averaged():
    counts = [Reading(at, {"wal": {"bytes": value}}) for at, value in ((0.0, 0.0), (0.5, 50.0), (1.0, 200.0))]
    assert rates(*counts) == [(0, "wal", "bytes", pytest.approx(200.0))]


def test_what_lies_before_the_measured_part_has_negative_seconds():
    assert rates(Reading(-2.0, {"a": {"b": 0.0}}), Reading(-1.0, {"a": {"b": 3.0}}))[0][0] == -2


def test_a_counter_that_was_reset_is_left_out_there_and_one_that_never_moved_everywhere():
    rows = rates(
        Reading(0.0, {"a": {"reset": 9.0, "still": 4.0}}),
        Reading(1.0, {"a": {"reset": 1.0, "still": 4.0, "new": 5.0}}),
        Reading(2.0, {"a": {"reset": 3.0, "still": 4.0, "new": 6.0}}),
    )
    assert rows == [(1, "a", "new", 1.0), (1, "a", "reset", 2.0)]


def test_a_gauge_is_kept_as_it_was_and_zero_where_it_was_not_always():
    rows = rates(Reading(0.1, {}, {"locks": {"waiting": 0.0}}), Reading(1.1, {}, {"locks": {"waiting": 3.0}}))
    assert rows == [(0, "locks", "waiting", 0.0), (1, "locks", "waiting", 3.0)]


def test_the_mean_of_a_second_counts_the_samples_that_did_not_find_a_session():
    active = ("client backend", None, None, "active")
    idle = ("client backend", "Client", "ClientRead", "idle")
    frame = mean_waits([(0.1, {active: 4}), (0.6, {active: 2, idle: 2}), (1.2, {idle: 4})])
    assert {(row[0], row[4]): row[5] for row in frame.rows()} == {
        (0, "active"): 3.0,
        (0, "idle"): 1.0,
        (1, "idle"): 4.0,
    }


def test_statements_are_told_by_what_they_gained_the_longest_first_and_only_if_they_ran():
    before = {"old": {"calls": 900.0, "exec_ms": 9000.0}, "own": {"calls": 5.0, "exec_ms": 1.0}}
    after = {
        "old": {"calls": 900.0, "exec_ms": 9000.0},
        "own": {"calls": 8.0, "exec_ms": 4.0},
        "new": {"calls": 1.0, "exec_ms": 7.0},
    }
    gains = statement_gains(before, after)
    assert list(gains) == ["calls: new", "exec_ms: new", "calls: own", "exec_ms: own"]
    assert gains["calls: own"] == 3.0


def test_what_is_not_in_every_reading_is_told_over_the_time_between_those_that_have_it():
    rows = rates(
        Reading(0.0, {"cpu": {"user_s": 1.0}, "wal": {"bytes": 0.0}}),
        Reading(2.0, {"wal": {"bytes": 4.0}}),
        Reading(8.0, {"cpu": {"user_s": 5.0}, "wal": {"bytes": 10.0}}),
    )
    assert rows == [(1, "wal", "bytes", 2.0), (4, "cpu", "user_s", 0.5), (5, "wal", "bytes", 1.0)]
