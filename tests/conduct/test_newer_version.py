"""Studies of a server that is newer than those that are packaged: PostgreSQL 19, or the master branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.verdict.rules import audit
from tests.conduct.small import FAST, small_study
from tests.conftest import NEWER_VERSION, VERSIONS, require_engine, require_newer_server, require_server
from tests.recorded_shop import DATA, LOGGING, recorded, serve_customers

pytestmark = [pytest.mark.server, pytest.mark.machine]

SHORT = {"clients": 2, "warmup": "400ms", "duration": "1s"}
LOADS = {
    "pgbench": {**SHORT, "workload": ["tpcb-like", "select-only"], "scale": 1},
    "sysbench": {"workload": ["oltp_read_only", "oltp_update_index"], "clients": 2, "duration": "2s", "warmup": "1s"},
    "tasks": {
        "workload": "app-tasks",
        "tasks": {"apps": 2, "tasks": 40, "pool": 3, "threads_in_table": 2, "rows": 100},
    },
    "order entry": {**SHORT, "workload": "order-entry", "scale": 1, "max_tries": 0, "check": True},
    "pack": {**SHORT, "workload": "pack:queue", "scale": 1},
    "suite": {"workload": "suite:joins", "scale": 0.1},
}


@pytest.fixture
def servers():
    require_engine()
    newer = require_newer_server()
    return {"known": {"postgres": str(require_server(VERSIONS[-1]).bin)}, "newer": {"postgres": str(newer.bin)}}


def check(study: StudyDirectory) -> None:
    """Runs a study and checks that on the newer server all trials complete, all data are collected, and no statement
    fails.
    """
    run_study(study, lambda event: None)
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert [note for note in trial.notes if note.startswith("not observed")] == []
        assert "wal" in trial.server_deltas
        assert " ERROR: " not in (study.trial_path(trial) / "server.log").read_text()


def study_of(folder: Path, load: dict[str, object], arms: dict[str, dict[str, str]]) -> StudyDirectory:
    """Returns a study of one block of a load."""
    sections = {"load": load, "server": {"settings": FAST}, "arms": arms}
    spec = build_study({**sections, "verdict": {"blocks": 1}}, "test", folder)
    return StudyDirectory.create(folder / "s", spec, make_plan(spec, 1, "2026-11-27T03:00:00+00:00"))


def undeclared(study: StudyDirectory) -> list[str]:
    findings = audit(study.plan, study.facts(), study.design).findings
    return [finding.message for finding in findings if finding.rule == "undeclared_difference"]


@pytest.mark.parametrize("name", LOADS)
def test_loads_of_all_kinds_run_on_it(name, servers, tmp_path):
    check(study_of(tmp_path, LOADS[name], servers))


def test_what_its_log_recorded_is_replayed_on_it(servers, start_cluster, tmp_path):
    cluster = start_cluster(NEWER_VERSION, settings=LOGGING)
    with recorded(cluster, cluster.data_directory.with_suffix(".log"), tmp_path / "capture") as target:
        serve_customers(target, sessions=3, rounds=20)
    load = {"workload": "replay:capture", "replay": {"data": str(DATA), "speed": "as-fast-as-possible"}}
    study = study_of(tmp_path, load, servers)
    check(study)
    for trial in study.trials():
        assert trial.replay is not None
        assert (trial.replay.sessions["finished"], trial.replay.unexpected_failures) == (3, {})


def test_what_follows_from_its_version_is_declared_with_it(servers, tmp_path):
    study = small_study(tmp_path / "s", blocks=1, arms=servers)
    check(study)
    assert {"jit", "default_toast_compression"} <= study.facts()["newer"].facts["defaults"].keys()
    assert undeclared(study) == []


def test_two_servers_of_it_differ_in_nothing_that_is_not_declared(servers, tmp_path):
    arms = {"a": servers["newer"], "b": {**servers["newer"], "settings": {"work_mem": "8MB"}}}
    study = small_study(tmp_path / "s", blocks=1, arms=arms)
    check(study)
    assert undeclared(study) == []


def test_it_is_compared_as_a_given_server_whose_settings_are_put_back(servers, start_cluster, tmp_path):
    clusters = {name: start_cluster(NEWER_VERSION, settings=FAST) for name in ("base", "other")}
    arms = {
        name: {"dsn": f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=postgres"}
        for name, cluster in clusters.items()
    }
    arms["other"]["settings"] = {"jit": "on", "work_mem": "8MB"}
    study = small_study(tmp_path / "s", blocks=1, arms=arms, server={"settings": {}})
    check(study)
    with clusters["other"].target.connect_as_user() as session:
        assert session.execute("SELECT current_setting('work_mem'), current_setting('jit')").fetchone() == (
            "4MB",
            "off",
        )
