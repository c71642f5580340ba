"""Facts of an arm whose host is gone when they are to be collected."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from pgtrial.conduct import run_study
from pgtrial.conduct.progress import Preparing
from pgtrial.machines.machine import HostLost

TARGET = SimpleNamespace()


@pytest.fixture
def gone(monkeypatch):
    def collect(*_, **__):
        raise HostLost("me@db1 is gone")

    monkeypatch.setattr(run_study, "collect", collect)


@pytest.mark.usefixtures("gone")
def test_a_host_that_is_only_looked_at_is_waited_for_and_the_trial_is_kept():
    heard = []
    arm = SimpleNamespace(name="a", data_directory=None, machine=None)
    assert run_study.facts_of(arm, TARGET, heard.append) is None
    assert heard == [Preparing("a: its facts are collected after another trial, for its host is gone: me@db1 is gone")]


def test_a_server_that_is_gone_when_its_trial_has_ended_loses_no_trial(monkeypatch):
    def collect(*_, **__):
        raise psycopg.OperationalError("connection failed:\nFATAL:  too many connections for role")

    monkeypatch.setattr(run_study, "collect", collect)
    heard = []
    arm = SimpleNamespace(name="a", data_directory=Path("/data"), machine=None)
    assert run_study.facts_of(arm, TARGET, heard.append) is None
    assert "its server did not answer: connection failed: FATAL: too many connections for role" in heard[0].text


@pytest.mark.usefixtures("gone")
def test_without_the_host_of_a_server_of_our_own_nothing_goes_on():
    arm = SimpleNamespace(name="a", data_directory=Path("/data"), machine=None)
    with pytest.raises(HostLost):
        run_study.facts_of(arm, TARGET, lambda event: None)
