"""Studies that replay a capture on real servers: a shop's sessions, with an index and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.plan import make_plan
from pgtrial.conduct.run_trials import run_trials
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.servers.arm import Arm
from pgtrial.servers.arms import make_arms
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST
from tests.conftest import require_engine
from tests.recorded_shop import DATA, HISTORY, LOGGING, recorded, serve_customers

ARMS = {"as it is": {}, "no index": {"setup_sql": "DROP INDEX orders_customer"}}
TABLES = {"customer": "id, spent", "item": "id, price", "orders": "customer, item, amount"}
"""Columns that do not depend on the order of sessions, as numbers from a sequence would."""


@pytest.fixture
def shop(start_cluster, tmp_path) -> Path:
    """A folder with the capture of two sessions, one after the other."""
    require_engine()
    cluster = start_cluster(18, settings=LOGGING)
    with recorded(cluster, cluster.data_directory.with_suffix(".log"), tmp_path / "capture") as target:
        serve_customers(target, sessions=2, rounds=60)
    return tmp_path


def study_of(folder: Path, blocks: int, arms: object = None, **replay: object) -> StudyDirectory:
    """A study that replays the capture of a folder, one session after the other as fast as possible."""
    asked = {"data": str(DATA), "speed": "as-fast-as-possible", "max_connections": 1, **replay}
    data = {
        "load": {"workload": "replay:capture", "replay": asked, "observe": False},
        "server": {"settings": FAST | {"commit_delay": "0"}},
        "arms": arms or ARMS,
        "verdict": {"blocks": blocks, "canary": False, "margin": "25%", "allow_busy_client": True},
    }
    spec = build_study(data, "test", folder)
    return StudyDirectory.create(folder / "results", spec, make_plan(spec, 11, "2026-11-23T14:12:00+00:00"))


def test_both_arms_have_the_same_rows_after_a_replay(shop, workspace):
    study = study_of(shop, blocks=1)
    contents: dict[str, list[list[tuple[object, ...]]]] = {}

    def look(arm: Arm, target: Target, place: int | None) -> None:
        with target.connect() as session:
            contents[arm.name] = [
                session.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}".encode()).fetchall()
                for table, columns in TABLES.items()
            ]

    arms = make_arms(study.spec, workspace)
    for planned in study.plan.trials:
        run_trials(study, [planned], arms, lambda event: None, while_served=look)
    trials = StudyDirectory.open(study.path).trials()
    assert [(trial.status, trial.reason) for trial in trials] == [("completed", None)] * 2
    assert contents["as it is"] == contents["no index"]
    assert len(contents["no index"][2]) > 100_000
    for trial in trials:
        assert trial.replay is not None
        assert trial.measured is not None
        assert trial.measured.transactions == trial.replay.statements == study.plan.load_points[0].replay.statements
        assert trial.replay.sessions["finished"] == 2
        assert (trial.replay.unexpected_failures, trial.warmup) == ({}, None)
        (history,) = [each for each in trial.replay.templates if each.text == HISTORY]
        assert history.statements <= history.rows <= 10 * history.statements
        assert history.time_us is not None
        assert 0 < history.time_us.mean <= history.time_us.max
    rows = [{each.template: each.rows for each in trial.replay.templates} for trial in trials]
    assert rows[0] == rows[1]


def test_what_the_engine_has_against_a_capture_ends_the_study_at_once(shop, workspace):
    study = study_of(shop, blocks=1, max_connections=40, copies=40, arms={"a": {}, "b": {"settings": {"jit": "off"}}})
    spec = study.spec.model_copy(update={"server": study.spec.server.model_copy(update={"settings": FEW})})
    arms = make_arms(spec, workspace)
    told = r"the engine refuses the replay: --max-connections=40 is more than the server allows: .* at most 20 "
    with pytest.raises(StudyError, match=told):
        run_trials(study, study.plan.trials[:1], arms, lambda event: None)
    assert study.trials() == []


FEW = FAST | {"max_connections": "20"}
