"""A server that stands still for a moment each second: percentiles at a rate show it, and the median does not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from pgtrial.conduct.progress import ProgressEvent, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.report.data import read_data
from pgtrial.report.words import headline
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

STALL_S = 0.05
EACH_S = 1.0


@pytest.mark.server
def test_a_stall_of_50_ms_each_second_moves_p99_and_not_p50(tmp_path, postmasters):
    require_engine()
    study = small_study(
        tmp_path / "s",
        blocks=8,
        # 10,400 transactions, of which p99 takes 10,000
        load={"workload": "select-only", "clients": 8, "rate": 2600, "duration": "4s"},
        server={"settings": FAST, "reset": "none"},
        arms={"smooth": {}, "stalled": {}},
        verdict={"metrics": ["p99", "p50"], "margin": 0.5, "allow_busy_client": True},
    )
    with stalling(postmasters) as stalls:

        def listen(event: ProgressEvent) -> None:
            match event:
                case TrialBegins(trial=planned) if planned.arm == "stalled":
                    stalls.set()
                case TrialEnds():
                    stalls.clear()

        run_study(study, listen)
    result = read_data(study).result
    assert [trial.status for trial in study.trials()] == ["completed"] * 16
    (claim,) = result.primary
    assert (claim.verdict, claim.within_margin, result.withheld) == ("worse", False, [])
    assert headline(claim, study.plan).startswith("p99 of stalled is ")
    assert " higher than that of smooth" in headline(claim, study.plan)
    p50 = next(row for row in result.metrics if row.metric == "p50")
    assert p50.withheld is None
    # half of the transactions are served at once on both arms, however busy this machine is
    assert p50.verdict != "worse" or p50.within_margin


@contextmanager
def stalling(postmasters: Callable[[], list[psutil.Process]]) -> Iterator[threading.Event]:
    """While the event is set, the processes of all servers stand still for a moment each second."""
    wanted, ended = threading.Event(), threading.Event()

    def run() -> None:
        while not ended.wait(EACH_S - STALL_S):
            processes = [child for server in postmasters() for child in children(server)] if wanted.is_set() else []
            send(processes, signal.SIGSTOP)
            ended.wait(STALL_S if processes else 0)
            send(processes, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield wanted
    finally:
        ended.set()
        thread.join()


def children(server: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return server.children()
    return []


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
