"""Jobs on given servers: the user's SQL undoes them after each trial, a failure and the end of a killed lab."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pgtrial.cli.here import cleanup_command
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.loads.named_objects import names_of_job
from pgtrial.machines.journal import Occasion
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers import undo
from pgtrial.servers.job_undo import refuse_taken
from pgtrial.servers.leftovers import forget_record
from pgtrial.servers.workspace import Workspace
from pgtrial.store.comparison import comparison
from tests.conduct.small import FAST, start_lab
from tests.conftest import require_engine
from tests.processes import until

pytestmark = pytest.mark.server

_MADE = "SELECT count(*) FROM pg_class WHERE relname IN ('made', 'made_i')"


@pytest.fixture
def server(start_cluster, tmp_path, monkeypatch):
    """Returns a running cluster with a table of its owner, and makes the test's directory the current one."""
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
    spec = comparison(arms, "test", None, 5, {"load": load, "verdict": {"blocks": 1}})
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


@pytest.fixture(autouse=True)
def _forgotten(state_root):
    """Removes the records that a test leaves: all tests of a process have one state directory."""
    yield
    for record in records(state_root):
        record.unlink()


def records(state_root):
    return [record for path in (state_root / "runs").iterdir() for record in undo.of_run(path).files()]


def undone(record, consent=None):
    """Undoes what the journal of this record has."""
    return undo.of_run(record.parent).undo(Occasion(consent=consent))


def test_what_undoes_a_job_and_fails_stops_the_study_and_stays_to_be_done(server, state_root):
    with pytest.raises(ArmError, match=r"the job on .* could not be undone \(.*no_such.*\); correct") as stopped:
        run(server, "CREATE TABLE made (i int);", "DROP TABLE no_such")
    assert stopped.value.keys == ("load.job.undo",)
    assert made(server) == 1
    (record,) = records(state_root)
    forget_record(state_root, record)
    assert records(state_root) == []


def test_sql_that_does_not_undo_a_job_can_be_corrected_in_its_record(server, state_root):
    with pytest.raises(ArmError) as stopped:
        run(server, "CREATE TABLE made (i int);", "DROP TABLE no_such")
    (record,) = records(state_root)
    assert f"the `statements` in {record}" in str(stopped.value)
    _, [failure] = undone(record, lambda question: True)
    assert "you may correct the `statements` in the record for that" in failure
    assert str(record) in failure
    record.write_text(record.read_text().replace("DROP TABLE no_such", "DROP TABLE made"))
    done, failures = undone(record, lambda question: True)
    assert (done, failures) == ([f"Undid the job on {server.target.label}: DROP TABLE made."], [])
    assert made(server) == 0
    assert records(state_root) == []


def test_a_job_that_leaves_nothing_behind_needs_no_undo(server):
    assert [trial.reason for trial in run(server, "VACUUM orders;", "none")] == [None, None]


def start(tmp_path, cluster, load, undo="DROP TABLE IF EXISTS made"):
    """Start a lab with a job on the server."""
    return start_lab(
        tmp_path,
        f"""
[load]
{load}
undo = "{undo}"
[arms]
a = {{ dsn = "{dsn_of(cluster)}" }}
b = {{ dsn = "{dsn_of(cluster)}" }}
[verdict]
blocks = 1
""",
    )


def kill_when(lab, happened):
    """Kill the lab by -9 once something has happened."""
    try:
        until(lambda: lab.poll() is not None or happened(), "the job is at this step", 120)
        assert lab.poll() is None, lab.communicate()
    finally:
        lab.send_signal(signal.SIGKILL)
        lab.communicate()


def sleeps(cluster):
    """True while a statement of the job sleeps on the server."""
    with cluster.target.connect_as_user() as session:
        query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND wait_event = 'PgSleep'"
        return bool(session.execute(query).fetchone()[0])


FILE = 'workload = "job:job.sql"\n[load.job]'


def test_what_the_job_of_a_killed_lab_was_seen_to_make_is_undone(server, tmp_path, state_root):
    # the lab looks twice a second for the transaction in which the table is made
    Path("job.sql").write_text("CREATE TABLE made AS SELECT pg_sleep(6) IS NULL;\nSELECT pg_sleep(600);\n")
    kill_when(start(tmp_path, server, FILE), lambda: sleeps(server) and made(server))
    (record,) = records(state_root)
    sql = "DROP TABLE IF EXISTS made"
    assert undo.of_run(record.parent).pending() == [f"job on {server.target.label}, to be undone by: {sql}"]
    done, failures = undone(record)
    assert (done, failures) == ([f"Undid the job on {server.target.label}: {sql}."], [])
    assert made(server) == 0
    assert not sleeps(server)


@pytest.fixture
def record(server, tmp_path, state_root):
    """Returns pgtrial's record of a job that was killed before it made its table. Afterwards somebody else has made a
    table of the same name.
    """
    Path("job.sql").write_text("SELECT pg_sleep(600);\nCREATE TABLE made (i int);\n")
    kill_when(start(tmp_path, server, FILE), lambda: sleeps(server))
    with server.target.connect_as_user() as session:
        session.execute("CREATE TABLE made AS SELECT generate_series(1, 777) AS i")
    (record,) = records(state_root)
    return record


def test_what_somebody_makes_after_the_lab_was_killed_stays_when_another_study_starts(server, record, state_root):
    with Workspace(study="/another") as workspace:
        assert any("may have left changes there; pgtrial cleanup shows" in said for said in workspace.notices)
    assert made(server) == 1
    assert records(state_root) == [record]


def test_what_somebody_makes_after_the_lab_was_killed_stays_where_nobody_can_be_asked(
    server, record, state_root, capsys
):
    assert cleanup_command(dry_run=True) == 0
    assert "to be undone by: DROP TABLE IF EXISTS made" in capsys.readouterr().out
    assert cleanup_command() == 3
    told = capsys.readouterr().out
    assert "somebody else may have made made in the meantime" in told
    assert "DROP TABLE IF EXISTS made" in told
    assert made(server) == 1
    assert records(state_root) == [record]
    assert not sleeps(server), "the job itself is ended"


def test_what_somebody_makes_after_the_lab_was_killed_stays_when_a_person_declines_and_goes_when_one_agrees(
    server, record
):
    asked = []
    undone(record, lambda question: bool(asked.append(question)))
    assert made(server) == 1
    assert record.exists()
    assert "DROP TABLE IF EXISTS made" in asked[0]
    assert undone(record, lambda question: True)[1] == []
    assert made(server) == 0


def test_the_undo_of_a_killed_lab_does_not_run_by_a_superusers_rights_where_others_own_anything(server, record):
    with server.target.connect_as_user() as session:
        session.execute("CREATE ROLE app; CREATE TABLE theirs (); ALTER TABLE theirs OWNER TO app")
    _, [failure] = undone(record, lambda question: True)
    assert "its SQL would run as" in failure
    assert "theirs of app" in failure
    assert made(server) == 1
    assert record.exists()


def test_a_session_of_another_role_with_the_name_of_a_jobs_neither_stops_the_undo_nor_is_ended(server, record):
    name = json.loads(record.read_text())["sessions"]
    with server.target.connect_as_user() as session:
        session.execute("CREATE ROLE other LOGIN")
    with replace(server.target, user="other").connect_as_user(application_name=name) as other:
        assert undone(record, lambda question: True)[1] == []
        assert other.execute("SELECT 1").fetchone() == (1,)
    assert made(server) == 0


def test_what_somebody_makes_after_the_lab_was_killed_stays_where_another_server_answers(server, record):
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "place": "1/2"}))
    _, [failure] = undone(record, lambda question: True)
    assert "another server or database than that of the job answers at this address" in failure
    assert made(server) == 1


def test_a_killed_lab_whose_job_had_made_nothing_leaves_nothing_to_undo(server, tmp_path, state_root):
    Path("job.sql").write_text("SELECT pg_sleep(600);\nCREATE TABLE made (i int);\n")
    kill_when(start(tmp_path, server, FILE), lambda: sleeps(server))
    (record,) = records(state_root)
    assert undone(record) == ([f"The job on {server.target.label} had changed nothing."], [])
    assert records(state_root) == []


def test_the_program_of_a_killed_lab_is_ended_with_all_that_it_started(server, tmp_path, state_root):
    nap = f"600.{os.getpid()}"  # of these tests alone
    program = f"sh -c 'env -i sleep {nap} & sleep {nap}; psql -c \"CREATE TABLE made ()\"'"
    command = f"workload = 'job:'\n[load.job]\ncommand = '''{program}'''"

    def programs():
        return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", nap]]

    kill_when(start(tmp_path, server, command), lambda: len(programs()) == 2)
    (record,) = records(state_root)
    undone(record)
    until(lambda: programs() == [], "the program and what it started have ended")
    assert made(server) == 0
    assert records(state_root) == []


def test_names_that_are_there_before_are_refused_before_the_first_trial(server):
    with server.target.connect_as_user() as session:
        session.execute("CREATE INDEX made_i ON orders (k)")
        session.execute("ALTER TABLE orders ADD COLUMN late int")
    job = "CREATE INDEX made_i ON orders (i);\nALTER TABLE orders ADD COLUMN late int;\nCREATE TABLE new ();"
    with pytest.raises(StudyError, match="already has made_i, the column late of orders, which the job would make"):
        run(server, job, "DROP INDEX IF EXISTS made_i")
    assert made(server) == 1


@pytest.mark.parametrize(
    ("theirs", "job", "undo", "catalog"),
    [
        (
            "CREATE TABLE made AS SELECT 1 AS mine",
            "DO $$ BEGIN CREATE TABLE made (); END $$",
            "DROP TABLE IF EXISTS made",
            "pg_class WHERE relname = 'made'",
        ),
        (
            "CREATE STATISTICS made ON i, k FROM orders",
            "CREATE STATISTICS IF NOT EXISTS made ON i, k FROM orders;",
            "DROP STATISTICS IF EXISTS made",
            "pg_statistic_ext",
        ),
    ],
    ids=["a table", "statistics"],
)
def test_what_undo_would_drop_and_is_there_before_is_refused_too(server, theirs, job, undo, catalog):
    with server.target.connect_as_user() as session:
        session.execute(theirs)
        with pytest.raises(StudyError, match="already has made, which the job would make or its undo would drop"):
            run(server, job, undo)
        assert session.execute(f"SELECT count(*) FROM {catalog}").fetchone() == (1,)


_THEIRS = {
    "several functions of one name": (
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';"
        "CREATE FUNCTION f(text) RETURNS int LANGUAGE sql AS 'SELECT 2'",
        "DROP FUNCTION IF EXISTS f(int)",
    ),
    "an aggregate": ("CREATE AGGREGATE most(int) (SFUNC = int4larger, STYPE = int)", "DROP AGGREGATE most(int)"),
    "statistics": ("CREATE STATISTICS st ON i, k FROM orders", "DROP STATISTICS IF EXISTS st"),
    "a trigger": (
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER stamped BEFORE UPDATE ON orders EXECUTE FUNCTION stamp()",
        "DROP TRIGGER IF EXISTS stamped ON orders",
    ),
    "a rule": ("CREATE RULE r AS ON DELETE TO orders DO ALSO NOTHING", "DROP RULE IF EXISTS r ON orders"),
    "a policy": ("CREATE POLICY p ON orders", "DROP POLICY IF EXISTS p ON public.orders"),
    "a collation": ("CREATE COLLATION mine (LOCALE = 'C')", "DROP COLLATION IF EXISTS mine"),
    "a configuration": (
        "CREATE TEXT SEARCH CONFIGURATION public.words (COPY = english)",
        "DROP TEXT SEARCH CONFIGURATION IF EXISTS public.words",
    ),
    "a dictionary": ("CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = simple)", "DROP TEXT SEARCH DICTIONARY d"),
    "an event trigger": (
        "CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';"
        "CREATE EVENT TRIGGER ev ON sql_drop EXECUTE FUNCTION e()",
        "DROP EVENT TRIGGER IF EXISTS ev",
    ),
    "a publication": ("CREATE PUBLICATION pub", "DROP PUBLICATION IF EXISTS pub"),
    "a subscription": (
        "CREATE SUBSCRIPTION sub CONNECTION 'dbname=x' PUBLICATION pub WITH (connect = false)",
        "DROP SUBSCRIPTION IF EXISTS sub",
    ),
    "a wrapper": ("CREATE FOREIGN DATA WRAPPER w", "DROP FOREIGN DATA WRAPPER IF EXISTS w"),
    "a foreign server": ("CREATE SERVER elsewhere FOREIGN DATA WRAPPER w", "DROP SERVER IF EXISTS elsewhere"),
    "a role": ('CREATE ROLE "The App"', 'DROP ROLE IF EXISTS "The App"'),
    "a database": ("CREATE DATABASE shop", "DROP DATABASE IF EXISTS shop WITH (FORCE)"),
    "a language": ("CREATE LANGUAGE own HANDLER plpgsql_call_handler", "DROP LANGUAGE IF EXISTS own"),
}


def test_objects_of_all_kinds_that_are_there_before_are_refused(server):
    for what, (theirs, sql) in _THEIRS.items():
        names = names_of_job([], [sql])
        refuse_taken(server.target, "arms.a", names)
        with server.target.connect_as_user() as session:
            session.execute(theirs)
        with pytest.raises(StudyError, match="which the job would make or its undo would drop"):
            refuse_taken(server.target, what, names)


def test_what_somebody_makes_while_the_job_runs_is_not_dropped(server):
    job = "SELECT pg_advisory_lock(4711);\nCREATE TABLE made (i int);\n"
    failed = []

    def study():
        try:
            run(server, job, "DROP TABLE IF EXISTS made")
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    with server.target.connect_as_user() as session:
        session.execute("SELECT pg_advisory_lock(4711)")
        runs = threading.Thread(target=study)
        runs.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted"
        until(lambda: session.execute(waits).fetchone()[0] == 1, "the job waits", 120)
        session.execute("CREATE TABLE made AS SELECT generate_series(1, 777) AS i")
        session.execute("SELECT pg_advisory_unlock(4711)")
        runs.join()
    (error,) = failed
    assert "already has made, which the job would make or its undo would drop" in str(error)
    assert made(server) == 1
