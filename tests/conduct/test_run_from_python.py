"""`pgtrial.compare` runs a study on a real server as the command line does."""

from __future__ import annotations

import pytest

import pgtrial
from pgtrial.conduct.progress import StudyEnds
from pgtrial.model.errors import StudyError
from tests.conduct.small import FAST
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server


def test_a_comparison_ends_with_an_opened_study(tmp_path, workspace):
    require_engine()
    require_server(18)
    events = []
    study = pgtrial.compare(
        "base=jit=on",
        "jit=off",
        workload="simple-update",
        scale=1,
        clients=2,
        warmup="400ms",
        duration="2s",
        server={"settings": FAST},
        verdict={"blocks": 1},
        results=tmp_path / "study",
        seed=3,
        on_progress=events.append,
    )
    assert study.arms == ["base", "jit=off"]
    assert study.trials["status"].to_list() == ["completed", "completed"]
    assert study.latency("base").count == study.trials.filter(study.trials["arm"] == "base")["transactions"][0]
    assert isinstance(events[-1], StudyEnds)
    assert (tmp_path / "study" / "report.html").exists()


def test_a_wrong_key_is_one_sentence():
    with pytest.raises(StudyError, match="workloads"):
        pgtrial.compare("jit=on", "jit=off", workloads="select-only")
