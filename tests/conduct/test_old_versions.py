"""Studies of servers of old versions: those that pgtrial makes from 10 on, given ones from 9.6 on."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import ServerBinaries
from tests import old_servers
from tests.conduct.small import FAST, PGTRIAL, small_study
from tests.conftest import require, require_engine, require_server

pytestmark = [pytest.mark.server, pytest.mark.machine]


MAJORS = (10, 11, 13, 14, 18)
SINCE = {"pg_stat_wal": 14, "pg_stat_slru": 13, "pg_stat_io": 16}


def test_a_study_of_10_11_13_14_and_18_ends_with_a_verdict(tmp_path, state_root):
    require_engine()
    arms = "".join(f'[arms.{major}]\npostgres = "{require_server(major).bin}"\n' for major in MAJORS)
    settings = "".join(f'{name} = "{value}"\n' for name, value in FAST.items())
    file = tmp_path / "versions.toml"
    file.write_text(
        f'[load]\nworkload = "tpcb-like"\nscale = 1\nclients = 2\nwarmup = "400ms"\nduration = "1s"\n'
        f"[server.settings]\n{settings}{arms}[verdict]\nblocks = 1\n"
    )
    done = subprocess.run(
        [PGTRIAL, "run", file, "--results", tmp_path / "results"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env=os.environ | {"PGTRIAL_STATE": str(state_root)},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "results" / "verdict.json").read_text())
    trials = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("trials/*/trial.json")]
    assert {trial["arm"]: trial["status"] for trial in trials} == {str(major): "completed" for major in MAJORS}
    for trial in trials:
        major = int(trial["arm"])
        lacking = [f"not observed: {name}, which PostgreSQL has from {since} on" for name, since in SINCE.items()]
        expected = [note for note, since in zip(lacking, SINCE.values(), strict=True) if major < since]
        assert [note for note in trial["notes"] if note.startswith("not observed")] == expected
        assert ("wal" in trial["server_deltas"]) == (major >= 14)
        assert trial["server_deltas"]["database"]["xact_commit"] > 0
        assert "not_permitted" not in trial
    undeclared = [finding for finding in told["findings"] if finding["rule"] == "undeclared_difference"]
    assert undeclared == []
    for path in (tmp_path / "results").glob("trials/*/server.log"):
        assert " ERROR: " not in path.read_text(), "nothing is asked of a server that its version does not have"
    assert (tmp_path / "results" / "report.html").exists()
    assert done.stdout.lower().count("undecided") >= len(MAJORS) - 1


@pytest.fixture
def server_96(workspace):
    """Yields a running server of 9.6, which pgtrial itself does not start."""
    directory = old_servers.bin_directory("9.6")
    require(directory, "PostgreSQL 9.6 (make old-servers)")
    server = workspace.reachable(ServerBinaries("9.6.24", 9, directory, "old"))
    data = workspace.directory("test-96")
    create_cluster(workspace, server, data)
    cluster = Cluster(workspace, server, data, workspace.socket_directory(), FAST)
    with cluster.running(data.with_suffix(".log"), immediate=True):
        yield cluster


def test_a_given_server_of_9_6_is_compared(server_96, start_cluster, tmp_path):
    require_engine()
    new = start_cluster(18, settings=FAST)
    arms = {
        name: {"dsn": f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user=postgres"}
        for name, cluster in {"old": server_96, "new": new}.items()
    }
    load = {"duration": "4s"}  # so that a sample of its sessions is taken on a busy machine, too
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    run_study(study, lambda event: None)
    assert {trial.arm: trial.reason for trial in study.trials()} == {"old": None, "new": None}
    assert study.facts()["old"].facts["server"]["version"] == "9.6.24"
    old = next(trial for trial in study.trials() if trial.arm == "old")
    assert old.relations_before["pgbench_accounts"]["live_tuples"] == 100_000
    assert not study.waits(old).is_empty()
    log = server_96.data_directory.with_suffix(".log").read_text()
    assert " ERROR: " not in log
