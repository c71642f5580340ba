"""A server that stands still for moments: at a rate the percentile shows it, and the median does not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pgtrial.verdict.percentiles import percentile
from tests.conduct.small import FAST, one_arm, run_one, small_study
from tests.conftest import require_engine
from tests.processes import stalling

STALL_S, EACH_S = 0.8, 8.0
"""A tenth of the transactions meet a stall: by far more than a hundredth, and by far fewer than half, even where the
machine stands still for three seconds more.
"""


@pytest.mark.server
def test_a_stall_of_a_tenth_of_the_time_moves_p99_and_not_p50(tmp_path, postmasters):
    require_engine()
    stalled = percentiles_of_a_stalled_trial(tmp_path / "s", postmasters)
    # nine tenths of the way through a stall are left to one transaction in a hundred; half of that leaves room
    assert stalled["p99"] > STALL_S / 2 * 1e6
    assert stalled["p50"] < STALL_S / 4 * 1e6


def percentiles_of_a_stalled_trial(path: Path, postmasters: Callable[[], list[psutil.Process]]) -> dict[str, float]:
    """Runs a trial while its server stalls again and again; returns its latency percentiles in microseconds.

    Each stall holds up four transactions that have begun, which are far fewer than a hundredth: p99 shows the stalls
    because the transactions count that were to begin meanwhile.
    """
    study = small_study(
        path,
        blocks=1,
        load={"workload": "select-only", "clients": 4, "rate": 100, "duration": "16s"},
        server={"settings": FAST, "reset": "none"},
        verdict={"metrics": ["p99", "p50"]},
    )
    with one_arm(study) as arm, stalling(lambda: server_processes(postmasters), STALL_S, EACH_S) as stalls:
        stalls.set()
        trial = run_one(study, study.plan.trials[0], arm, lambda event: None)
    return {name: percentile(study.plan, name, trial) or 0.0 for name in ("p50", "p99")}


def server_processes(postmasters: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    """Returns the child processes of all these postmasters; an empty list if a server has just ended."""
    with suppress(psutil.NoSuchProcess, OSError, IndexError):
        return [child for server in postmasters() for child in server.children()]
    return []
