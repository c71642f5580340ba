"""A server that stands still for moments: at a rate the percentile shows it, and the median does not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pgtrial.conduct.progress import ProgressEvent, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.verdict.percentiles import percentile
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine
from tests.processes import stalling

STALL_S, EACH_S = 0.2, 2.0
"""A tenth of the transactions meet a stall: by far more than a hundredth, and by far fewer than half."""


@pytest.mark.server
def test_a_stall_of_a_tenth_of_the_time_moves_p99_and_not_p50(tmp_path, postmasters):
    require_engine()
    smooth, stalled = stalled_trials(tmp_path / "s", postmasters)
    # nine tenths of the way through a stall are left to one transaction in a hundred; half of that leaves room
    assert stalled["p99"] > STALL_S / 2 * 1e6
    assert stalled["p99"] > smooth["p99"]
    assert stalled["p50"] < STALL_S / 4 * 1e6
    assert smooth["p50"] < STALL_S / 4 * 1e6


def stalled_trials(path: Path, postmasters: Callable[[], list[psutil.Process]]) -> list[dict[str, float]]:
    """Runs a trial of each of two equal arms while the second arm's servers stall; returns each trial's latency
    percentiles in microseconds.
    """
    study = small_study(
        path,
        blocks=1,
        load={"workload": "select-only", "clients": 8, "rate": 1000, "duration": "6s"},
        server={"settings": FAST, "reset": "none"},
        arms={"smooth": {}, "stalled": {}},
        verdict={"metrics": ["p99", "p50"], "allow_busy_client": True},
    )
    with stalling(lambda: server_processes(postmasters), STALL_S, EACH_S) as stalls:

        def listen(event: ProgressEvent) -> None:
            match event:
                case TrialBegins(trial=planned) if planned.arm == "stalled":
                    stalls.set()
                case TrialEnds():
                    stalls.clear()

        run_study(study, listen)
    trials = {trial.arm: trial for trial in study.trials()}
    return [
        {name: percentile(study.plan, name, trials[arm]) or 0.0 for name in ("p50", "p99")}
        for arm in ("smooth", "stalled")
    ]


def server_processes(postmasters: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    """Returns the child processes of all these postmasters; an empty list if a server has just ended."""
    with suppress(psutil.NoSuchProcess, OSError, IndexError):
        return [child for server in postmasters() for child in server.children()]
    return []
