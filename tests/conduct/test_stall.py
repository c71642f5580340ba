"""A server that stands still for moments: at a rate the percentile shows it, and the median does not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pgtrial.conduct.progress import ProgressEvent, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.report.data import read_data
from pgtrial.report.words import headline
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

STALL_S, EACH_S = 0.2, 2.0
"""A tenth of the transactions meet a stall, which is longer than those that a busy machine makes by itself."""


@pytest.mark.server
def test_a_stall_of_a_tenth_of_the_time_moves_p99_and_not_p50(tmp_path, postmasters):
    require_engine()
    for attempt in range(ATTEMPTS):
        plan, result = stalled_study(tmp_path / f"s{attempt}", postmasters)
        if not result.withheld:
            break
    (claim,) = result.primary
    assert (claim.verdict, claim.within_margin, result.withheld) == ("worse", False, [])
    assert headline(claim, plan).startswith("p99 of stalled is ")
    assert " higher than that of smooth" in headline(claim, plan)
    p50 = next(row for row in result.metrics if row.metric == "p50")
    assert p50.withheld is None
    assert claim.difference is not None
    assert p50.difference is not None
    assert p50.difference.value < claim.difference.value
    # half of the transactions are served at once on both arms: nothing shows that theirs got worse by the margin
    assert p50.difference.low is None or p50.difference.low < plan.margin


ATTEMPTS = 3
"""A machine that is held up for long leaves trials with too few transactions, or behind the rate: without a verdict."""


def stalled_study(path: Path, postmasters: Callable[[], list[psutil.Process]]) -> tuple[Plan, StudyResult]:
    """Two arms that are alike, of which the servers of one are made to stall."""
    study = small_study(
        path,
        # eight decide if all agree; a busy machine takes more
        blocks=40,
        # 13,000 transactions, of which p99 takes 10,000
        load={"workload": "select-only", "clients": 8, "rate": 2600, "duration": "5s"},
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
    return study.plan, read_data(study).result


@contextmanager
def stalling(postmasters: Callable[[], list[psutil.Process]]) -> Iterator[threading.Event]:
    """While the event is set, the processes of all servers stand still for a moment again and again."""
    wanted, ended = threading.Event(), threading.Event()

    def run() -> None:
        while not ended.wait(EACH_S - STALL_S):
            processes = server_processes(postmasters) if wanted.is_set() else []
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


def server_processes(postmasters: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    """The processes of all servers but the first of each; none of a server that has just ended."""
    with suppress(psutil.NoSuchProcess, OSError, IndexError):
        return [child for server in postmasters() for child in server.children()]
    return []


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
