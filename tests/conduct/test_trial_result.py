"""The result of a trial is put together from the results of its steps."""

from __future__ import annotations

import psycopg
import pytest

from pgtrial.conduct.trial.own_metrics import OwnValue
from pgtrial.conduct.trial.results import Collected, Loaded, Ready, Started, StepResult, Stopped, TrialResult
from pgtrial.model.errors import StudyError, TrialError


def result(started=None, ready=None, load=None, collected=None, stopped=None) -> TrialResult:
    return TrialResult(
        started or Started(), ready or Ready(), load or Loaded(), collected or Collected(), stopped or Stopped()
    )


def test_a_step_that_fails_keeps_what_it_has_found_and_its_first_reason():
    step = Ready()
    with step.failing():
        step.note("seen")
        step.relations_before = {"t": {"bytes": 1.0}}
        raise TrialError("the check failed")
    with step.failing():
        raise psycopg.OperationalError("gone\n")
    assert (step.failed, step.notes, step.relations_before) == ("the check failed", ["seen"], {"t": {"bytes": 1.0}})


def test_a_lost_server_fails_a_step_and_a_fault_of_the_study_is_raised():
    step = StepResult()
    with step.failing():
        raise psycopg.OperationalError("server closed the connection\n")
    assert step.failed == "the server did not answer: server closed the connection"
    with pytest.raises(StudyError), step.failing():
        raise StudyError("wrong SQL")


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({}, None),
        ({"started": Started("no start")}, "no start"),
        ({"ready": Ready("a check failed"), "stopped": Stopped("no log")}, "a check failed"),
        (
            {"load": Loaded("the engine ended."), "stopped": Stopped(host_failed="host lost")},
            "the engine ended; host lost",
        ),
        ({"load": Loaded("t exists"), "stopped": Stopped(host_failed="SQL: t exists")}, "SQL: t exists"),
        ({"load": Loaded("cut off"), "collected": Collected("no answer")}, "cut off"),
        ({"stopped": Stopped("no log", host_failed="host lost")}, "no log; host lost"),
    ],
)
def test_the_first_reason_counts_and_a_failure_of_the_host_explains_it(steps, reason):
    assert result(**steps).reason == reason


def test_phases_are_in_the_order_of_time_and_add_up():
    steps = {
        "started": Started(seconds={"restore": 1.0, "start": 2.0}),
        "ready": Ready(seconds={"warm": 3.0, "check": 4.0}),
        "load": Loaded(seconds={"load": 5.0}),
        "collected": Collected(seconds={"collect": 6.0, "check": 0.5}),
        "stopped": Stopped(seconds={"stop": 7.0}),
    }
    assert list(result(**steps).seconds.items()) == [
        ("restore", 1.0),
        ("start", 2.0),
        ("warm", 3.0),
        ("check", 4.5),
        ("load", 5.0),
        ("collect", 6.0),
        ("stop", 7.0),
    ]


def test_metrics_notes_and_counters_of_the_load_come_before_those_after_it():
    load, collected = Loaded(deltas={"sampler": {"samples": 2.0}}), Collected(deltas={"database": {"xact_commit": 9.0}})
    load.take(OwnValue("bloat", 1.5))
    load.take(OwnValue("lag", None, "lag is not known of this trial: no row"))
    collected.take(OwnValue("size", 3.0))
    collected.note("a checkpoint was late")
    whole = result(load=load, collected=collected)
    assert list(whole.own_metrics.items()) == [("bloat", 1.5), ("size", 3.0)]
    assert whole.notes == ["lag is not known of this trial: no row", "a checkpoint was late"]
    assert list(whole.deltas) == ["sampler", "database"]
