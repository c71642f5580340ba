"""A signal to the lab at the very moment in which what it has to end begins."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pgtrial.conduct.trial.settle import Checkpoint
from pgtrial.evidence.observe.sampler import Sampler
from pgtrial.loads.engine import EngineRun
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder
from pgtrial.loads.target import value
from pgtrial.machines.interrupt import Interrupted, held_off, interruptible

pytestmark = pytest.mark.server


@pytest.fixture
def signalled(monkeypatch):
    """A signal arrives while a thread is being started."""
    start = threading.Thread.start

    def started(thread):
        signal.raise_signal(signal.SIGTERM)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)


def test_a_signal_waits_for_what_is_being_made_and_no_longer():
    made = []

    def make():
        with held_off():
            with held_off():
                signal.raise_signal(signal.SIGINT)
                made.append("inner")
            made.append("outer")
        made.append("later")

    with pytest.raises(Interrupted, match="SIGINT") as interrupted, interruptible():
        make()
    assert made == ["inner", "outer"]
    assert interrupted.value.exit_status == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_so(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(number)
            with pytest.raises(Interrupted, match="SIGTERM"):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.fixture
def idle_engine(tmp_path, monkeypatch):
    """An engine that says nothing and goes on."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\nexec sleep 60\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PGTRIAL_ENGINE", str(engine))


@pytest.mark.usefixtures("idle_engine")
def test_an_engine_that_is_just_beginning_to_make_data_is_ended(monkeypatch):
    processes = []

    class Signalled(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            processes.append(psutil.Process(self.pid))
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    with pytest.raises(Interrupted), interruptible():
        ENGINE_HERE.make(DataOrder("making data", [], {}))
    assert [process.is_running() for process in processes] == [False]


@pytest.mark.usefixtures("signalled", "idle_engine")
def test_an_engine_that_is_just_beginning_is_ended():
    run = EngineRun([], {})
    with pytest.raises(Interrupted, match="SIGTERM"), interruptible(), run:
        pytest.fail("it goes on")
    assert run.finish() < 0


@pytest.mark.usefixtures("signalled")
def test_a_checkpoint_that_is_just_being_scheduled_is_forgotten():
    closed = []
    target: Any = SimpleNamespace(connect=lambda: SimpleNamespace(close=lambda: closed.append(True)))
    checkpoint = Checkpoint(target)
    with pytest.raises(Interrupted), interruptible(), checkpoint:
        checkpoint.issue_after(600)
    assert closed


def test_a_checkpoint_that_takes_long_is_not_waited_for_by_what_a_signal_ends(start_cluster):
    target = start_cluster(18).target
    with target.connect() as session:
        # The checkpointer may show itself only after the first session.
        while (
            checkpointer := value(session, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        ) is None:
            time.sleep(0.01)

        def interrupted():
            with suppress(Interrupted), Checkpoint(target) as checkpoint:
                checkpoint.issue_after(0)
                while value(session, "SELECT wait_event FROM pg_stat_activity WHERE query = 'CHECKPOINT'") is None:
                    time.sleep(0.01)
                raise Interrupted(signal.SIGINT)

        ends = threading.Thread(target=interrupted)
        os.kill(checkpointer, signal.SIGSTOP)
        try:
            ends.start()
            ends.join(60)
            assert not ends.is_alive()
        finally:
            os.kill(checkpointer, signal.SIGCONT)
            ends.join()


@pytest.mark.usefixtures("signalled")
def test_a_sampler_that_is_just_beginning_is_ended():
    sampler = Sampler(nullcontext, None, None)
    with pytest.raises(Interrupted), interruptible(), sampler:
        sampler.load_begins(None)
    assert sampler._thread is not None
    assert not sampler._thread.is_alive()
