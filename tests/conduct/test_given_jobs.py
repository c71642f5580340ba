"""Jobs on given servers: the user's SQL undoes them after each trial, a failure and the end of a killed lab."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from pgtrial.conduct.place import find_or_create
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError
from pgtrial.servers import job_undo
from pgtrial.servers.forgotten import forget
from pgtrial.store.comparison import comparison
from tests.conduct.small import FAST, start_lab
from tests.conftest import require_engine

pytestmark = pytest.mark.server

_MADE = "SELECT count(*) FROM pg_class WHERE relname IN ('made', 'made_i')"


@pytest.fixture
def server(start_cluster, tmp_path, monkeypatch):
    """A cluster with data of somebody, and the folder of a job."""
    require_engine()
    monkeypatch.chdir(tmp_path)
    cluster = start_cluster(settings=FAST)
    with cluster.target.connect_as_user() as session:
        session.execute("CREATE TABLE orders AS SELECT i, i % 9 AS k FROM generate_series(1, 20000) i")
    return cluster


def dsn_of(cluster):
    return (
        f"host={cluster.socket_directory} port={cluster.port} user={cluster.target.user} dbname={cluster.target.dbname}"
    )


def made(cluster):
    with cluster.target.connect_as_user() as session:
        return session.execute(_MADE).fetchone()[0]


def run(cluster, text, undo):
    Path("job.sql").write_text(text)
    arms = [f"a={dsn_of(cluster)}", f"b={dsn_of(cluster)}"]
    load = {"workload": "job:job.sql", "job": {"undo": undo}}
    spec = comparison(arms, "test", None, 5, {"load": load, "verdict": {"canary": False, "blocks": 1}})
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda event: None, spec=spec)
    return study.trials()


def test_a_job_is_undone_after_each_trial_and_after_one_that_fails(server):
    fails_where_it_is_made_twice = "CREATE TABLE made AS SELECT * FROM orders;\nCREATE INDEX made_i ON made (k);\n"
    undo = "DROP TABLE IF EXISTS made; -- and its index"
    trials = run(server, fails_where_it_is_made_twice, undo)
    assert [trial.reason for trial in trials] == [None, None]
    assert all(trial.job.wal_bytes > 1e5 for trial in trials)
    assert made(server) == 0
    with pytest.raises(ArmError, match="division by zero"):
        run(server, f"{fails_where_it_is_made_twice}SELECT 1 / 0;", undo)
    assert made(server) == 0


def records(state_root):
    return [record for path in (state_root / "runs").iterdir() for record in job_undo.paths(path)]


def test_what_undoes_a_job_and_fails_stops_the_study_and_stays_to_be_done(server, state_root):
    with pytest.raises(ArmError, match=r"the job on .* could not be undone \(.*no_such.*\); correct \[load.job\] undo"):
        run(server, "CREATE TABLE made (i int);", "DROP TABLE no_such")
    assert made(server) == 1
    (record,) = records(state_root)
    forget(state_root, record)
    assert records(state_root) == []


def test_a_job_that_leaves_nothing_behind_needs_no_undo(server):
    assert [trial.reason for trial in run(server, "VACUUM orders;", "none")] == [None, None]


def test_the_job_of_a_killed_lab_is_ended_and_undone(server, tmp_path, state_root):
    Path("job.sql").write_text("CREATE TABLE made (i int);\nSELECT pg_sleep(600);\nCREATE INDEX made_i ON made (i);\n")
    lab = start_lab(
        tmp_path,
        f"""
[load]
workload = "job:job.sql"
[load.job]
undo = "DROP TABLE IF EXISTS made"
[arms]
a = {{ dsn = "{dsn_of(server)}" }}
b = {{ dsn = "{dsn_of(server)}" }}
[verdict]
blocks = 1
canary = false
""",
    )
    deadline = time.monotonic() + 120
    with server.target.connect_as_user() as session:
        sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
        while session.execute(sleeps).fetchone()[0] == 0:
            assert lab.poll() is None, lab.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
    lab.send_signal(signal.SIGKILL)
    lab.communicate()
    assert made(server) == 1
    (record,) = records(state_root)
    assert job_undo.pending(record.parent) == [f"job on {server.target.label}"]
    done, failures = job_undo.undo(record.parent)
    assert (done, failures) == ([f"Undid the job on {server.target.label}."], [])
    assert made(server) == 0
    with server.target.connect_as_user() as session:
        assert session.execute(sleeps).fetchone()[0] == 0
