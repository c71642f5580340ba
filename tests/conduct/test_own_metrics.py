"""Metrics that the study file defines by SQL or a program: read on real servers, in the rehearsal and in trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.conduct.trial.own_metrics import value_of
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.store.study_file import build_study, read_study
from tests.conduct.small import FAST
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)


STUDY = """
[load]
workload = "simple-update"
scale    = 1
clients  = 2
warmup   = "1s"
duration = "{duration}"

[arms.vacuumed]
settings = {{ autovacuum = "on" }}

[arms.not]
settings = {{ autovacuum = "off" }}

[verdict]
blocks = 1
{verdict}

{metrics}
"""


def run(metrics, duration="1s", verdict=""):
    Path("study.toml").write_text(STUDY.format(metrics=metrics, duration=duration, verdict=verdict))
    spec = read_study("study.toml")
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda _: None, spec=spec)
    return study


DEAD = """
[metrics."dead rows"]
sql    = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = 'pgbench_accounts'"
better = "less"

[metrics.index]
sql    = "SELECT pg_relation_size('pgbench_accounts_pkey') / 1e6"
unit   = "MB"
better = "less"

[metrics.printed]
command = "psql -Atc 'SELECT count(*) FROM pgbench_history'"
better  = "more"
"""


def test_sql_and_programs_are_read_after_each_trial():
    study = run(DEAD)
    assert study.plan.metrics == ["tps", "dead rows", "index", "printed"]
    for trial in study.trials():
        assert trial.reason is None
        assert trial.own_metrics["dead rows"] > 0
        assert trial.own_metrics["index"] == pytest.approx(2.25, abs=0.5)
        assert trial.own_metrics["printed"] > trial.measured.transactions, "those of the warm-up too"
    assert not study.plan.shares_server


def test_arms_that_could_be_sessions_of_one_server_have_servers_of_their_own():
    Path("study.toml").write_text(STUDY.format(metrics=DEAD, duration="1s", verdict="").replace("autovacuum", "jit"))
    study, _ = find_or_create(read_study("study.toml"), None, anew=True)
    assert not study.plan.shares_server


EACH_SECOND = """
[metrics.{how}]
sql         = "SELECT count(*) FROM pgbench_history"
better      = "more"
each_second = "{how}"
"""


def test_a_metric_is_read_in_each_second_of_the_measured_part():
    study = run("".join(EACH_SECOND.format(how=how) for how in ("min", "mean", "max")), "3s")
    for trial in study.trials():
        assert trial.reason is None
        values = trial.own_metrics
        assert 0 < values["min"] < values["mean"] < values["max"], "the table grows"


@pytest.mark.parametrize(("how", "expected"), [("mean", 3), ("max", 5), ("min", 1)])
def test_what_is_read_when_the_load_is_over_does_not_count(how, expected):
    readings = [(0.001, 1.0), (1.0, 5.0), (2.002, 3.0), (3.0, 100.0), (4.0, 0.0)]
    assert value_of(readings, how, 3.0) == expected
    assert value_of(readings, how, 0.0) is None


def test_trials_whose_metric_is_read_in_each_second_do_not_alternate():
    Path("study.toml").write_text(STUDY.format(metrics=EACH_SECOND.format(how="max"), duration="1s", verdict=""))
    study, _ = find_or_create(read_study("study.toml"), None, anew=True)
    assert study.plan.interleaving is None


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "sql = 'SELECT dead FROM pg_class'",
            r'\[metrics\.mine\]: PostgreSQL says: column "dead" does not exist.*all arms',
        ),
        ("sql = 'SELECT 1, 2'", "its SQL returned 2 columns, but it must return exactly one, on all arms"),
        ("sql = 'SELECT 1 FROM pg_class'", r"its SQL returned \d+ rows, but it must return exactly one"),
        ("sql = \"SELECT 'many'\"", "its SQL returned 'many', which is not a number"),
        ("sql = 'SELECT true'", "its SQL returned 'True', which is not a number"),
        ("sql = 'SELECT -1'", "must not be negative"),
        ("sql = \"SELECT 'NaN'::float8\"", "arms cannot be compared by this value"),
        ("sql = 'CREATE TABLE made ()'", "cannot execute CREATE TABLE in a read-only transaction"),
        ("sql = 'SELECT pg_sleep(600)'\nlimit = '500ms'", "canceling statement due to statement timeout"),
        ("command = 'no-such-program'", "there is no program no-such-program; install it"),
        ("command = 'echo many'", "echo printed 'many' for mine, which is not a number"),
        ("command = \"sh -c 'echo no server >&2; exit 2'\"", "sh ended with status 2: no server"),
        (
            "command = 'sleep 600'\nlimit = '500ms'",
            "sleep was still running after its time limit of 500ms, and pgtrial killed it",
        ),
    ],
)
def test_a_metric_that_cannot_be_read_is_found_before_the_first_trial(key, said):
    with pytest.raises(StudyError, match=said):
        run(f"[metrics.mine]\n{key}\nbetter = 'more'")


def test_a_number_that_no_trial_has_ends_the_study_after_its_first_block():
    says = "no trial of the first block has a number for mine: mine is not known of this trial: its SQL returned no row"
    with pytest.raises(ArmError, match=says):
        run("[metrics.mine]\nsql = 'SELECT NULL::int'\nbetter = 'more'")


def test_a_number_that_one_arm_lacks_is_unknown_there_and_the_trial_is_valid():
    sql = "SELECT 1 WHERE current_setting('autovacuum') = 'on'"
    for trial in run(f'[metrics.mine]\nsql = "{sql}"\nbetter = "more"').trials():
        assert trial.reason is None
        assert trial.own_metrics == ({"mine": 1} if trial.arm == "vacuumed" else {})
        unknown = [note for note in trial.notes if note.startswith("mine is not known of this trial: its SQL returned")]
        assert len(unknown) == (trial.arm == "not")


def test_several_statements_may_set_what_the_last_one_needs():
    sql = "SET LOCAL enable_indexscan = off; SELECT count(*) FROM pgbench_accounts WHERE aid = 7"
    for trial in run(f'[metrics.mine]\nsql = "{sql}"\nbetter = "more"').trials():
        assert trial.own_metrics == {"mine": 1}


def test_arms_that_run_other_sql_on_a_given_server_have_their_metric_after_each_trial(start_cluster):
    cluster = start_cluster(settings=FAST)
    with cluster.target.connect_as_user() as session:
        session.execute("CREATE TABLE orders AS SELECT i, i % 9 AS k FROM generate_series(1, 2000) i")
    host, port, user = cluster.socket_directory, cluster.port, cluster.target.user
    dsn = f"host={host} port={port} user={user} dbname={cluster.target.dbname}"
    data = {
        "load": {"warmup": 1, "duration": 1, "clients": 1},
        "server": {"dsn": dsn},
        "arms": {"one": {"query": "SELECT count(*) FROM orders"}, "two": {"query": "SELECT count(i) FROM orders"}},
        "metrics": {"rows": {"sql": "SELECT count(*) FROM orders", "better": "more"}},
        "verdict": {"blocks": 1},
    }
    spec = build_study(data, "test")
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda _: None, spec=spec)
    assert [trial.own_metrics for trial in study.trials()] == [{"rows": 2000}] * 2
