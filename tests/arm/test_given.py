"""Given servers: one clear sentence for each way of not reaching them, and nothing of theirs left changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from pgtrial.arm import given_limits
from pgtrial.arm.base import Needs, make_arms
from pgtrial.arm.given import without_password
from pgtrial.arm.workspace import clean, leftovers
from pgtrial.data.table_a import creation_s
from pgtrial.errors import ArmError, StudyError
from pgtrial.observe.counters import deltas, read_counters, wait_for_clients_to_leave
from pgtrial.study.spec import StudySpec
from pgtrial.trial.settle import NO_PREWARM, warm_relations
from tests.conftest import require_engine

_PASSWORD = "correct horse"
PATIENCE_S = 120.0


def _spec(dsn, settings=None, reset=None, **load):
    server = {"dsn": dsn, "settings": settings or {}} | ({"reset": reset} if reset else {})
    return StudySpec.model_validate(
        {"load": {"scale": 1, "clients": 2, **load}, "server": server, "arms": {"A": {}, "B": {}}}
    )


def _silent(line):
    del line


def _dsn(cluster, dbname="postgres", user="postgres"):
    return f"host={cluster.socket_directory} port={cluster.port} dbname={dbname} user={user}"


@pytest.fixture
def given(start_cluster):
    """A server of somebody else's."""
    return start_cluster()


@pytest.fixture
def guarded(start_cluster, free_port):
    """A server on TCP that asks for passwords, with the role ann."""
    cluster = start_cluster(
        settings={"listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
    )
    with cluster.target.connect() as connection:
        connection.execute(f"CREATE ROLE ann LOGIN PASSWORD '{_PASSWORD}'")
        connection.execute("GRANT CREATE ON SCHEMA public TO ann")
    return f"postgresql://ann@127.0.0.1:{free_port}/postgres"


def _arm(spec, workspace):
    return make_arms(spec, workspace)["A"]


def _checked(spec, workspace):
    arm = _arm(spec, workspace)
    arm.check(Needs.of(spec))
    return arm


def test_tables_are_loaded_once_served_and_reset(given, workspace, tmp_path):
    require_engine()
    with given.target.connect() as connection:
        # a limit for those who use the server, not for loading, vacuum, or a session that waits through a load
        connection.execute("ALTER ROLE postgres SET statement_timeout = '1ms'")
    arm = _checked(_spec(_dsn(given)), workspace)
    arm.prepare(1, _silent)
    lines: list[str] = []
    arm.prepare(1, lines.append)
    assert lines == []
    for _ in range(2):
        with arm.serve(1, tmp_path / "log", {}) as target, target.connect() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)
            assert connection.execute("SHOW idle_session_timeout").fetchone() == ("0",)
            connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
    arm.prepare(2, _silent)
    with given.target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() == (2,)


def test_tables_of_somebody_else_are_used_but_never_replaced(given, workspace, tmp_path):
    require_engine()
    arm = _checked(_spec(_dsn(given)), workspace)
    arm.prepare(1, _silent)
    with given.target.connect() as connection:
        connection.execute("COMMENT ON TABLE pgbench_accounts IS NULL")
        connection.execute("UPDATE pgbench_accounts SET filler = 'precious' WHERE aid = 1")
    _checked(_spec(_dsn(given)), workspace).prepare(1, _silent)
    arms = {name: {"dsn": _dsn(given), "storage_limit": "60MB"} for name in "AB"}
    with pytest.raises(StudyError, match=r"scale 1 is there, and the WAL of its load does not fit: .* = 60 MB"):
        _checked(StudySpec.model_validate({"load": {"scale": 1, "clients": 2}, "arms": arms}), workspace)
    spec = _spec(_dsn(given), scale=2)
    arm = _arm(spec, workspace)
    with pytest.raises(StudyError, match=r"already holds pgbench tables of scale 1.*ask for scale = 1"):
        arm.check(Needs.of(spec))
    with pytest.raises(StudyError, match="will not replace"):
        arm.prepare(2, _silent)
    with given.target.connect() as connection:
        row = connection.execute("SELECT filler FROM pgbench_accounts WHERE aid = 1").fetchone()
        assert row is not None
        assert row[0].strip() == "precious"


def test_settings_hold_during_a_trial_and_are_put_back(given, workspace, tmp_path):
    with given.target.connect() as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '3MB'")
        connection.execute("SELECT pg_reload_conf()")
    settings = {"work_mem": "21MB", "maintenance_work_mem": "33MB"}
    arm = _checked(_spec(_dsn(given), settings), workspace)
    with arm.serve(0, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("21MB",)
        assert connection.execute("SHOW maintenance_work_mem").fetchone() == ("33MB",)
    automatic = (given.data_directory / "postgresql.auto.conf").read_text()
    assert "work_mem = '3072'" in automatic
    assert "maintenance_work_mem" not in automatic
    assert list(workspace.run.glob("given-settings-*")) == []


def test_a_service_is_served_with_settings_that_need_no_restart(given, workspace, tmp_path, monkeypatch):
    services = tmp_path / "pg_service.conf"
    services.write_text(f"[centos]\nhost={given.socket_directory}\nport={given.port}\ndbname=postgres\nuser=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    settings = {"autovacuum": "off", "work_mem": "640MB", "checkpoint_completion_target": "0.8"}
    arm = _checked(_spec("service=centos", settings), workspace)
    with arm.serve(0, tmp_path / "log", {}) as target, target.connect() as connection:
        shown = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in settings}
    assert shown == settings
    with given.target.connect() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("4MB",)


def test_settings_are_put_back_when_the_trial_fails(given, workspace, tmp_path):
    arm = _checked(_spec(_dsn(given), {"work_mem": "21MB"}), workspace)
    with pytest.raises(RuntimeError), arm.serve(0, tmp_path / "log", {}):
        raise RuntimeError
    assert "work_mem" not in (given.data_directory / "postgresql.auto.conf").read_text()


def test_settings_of_a_killed_lab_are_put_back_by_the_next_cleaning(given, fresh_state):
    script = """
import json, os, signal, sys
from pathlib import Path
from pgtrial.arm.base import make_arms
from pgtrial.arm.workspace import Workspace
from pgtrial.study.spec import StudySpec
workspace = Workspace(Path(sys.argv[1]))
arm = make_arms(StudySpec.model_validate(json.loads(sys.argv[2])), workspace)["A"]
with arm.serve(0, workspace.run / "log", {}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    spec = _spec(_dsn(given), {"work_mem": "21MB"}).model_dump(exclude_none=True)
    subprocess.run([sys.executable, "-c", script, str(fresh_state), json.dumps(spec)], check=False)
    automatic = given.data_directory / "postgresql.auto.conf"
    assert "work_mem" in automatic.read_text()
    assert any("settings work_mem of " in leftover.what for leftover in leftovers(fresh_state))
    assert any("ended abruptly" in notice for notice in clean(fresh_state))
    assert "work_mem" not in automatic.read_text()
    assert list((fresh_state / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shared_buffers": "1GB"}, "takes effect at a restart only"),
        ({"work_memory": "1GB"}, "the server knows no setting work_memory"),
        ({"block_size": "4096"}, "takes effect at a restart only"),
    ],
)
def test_settings_that_cannot_be_made_are_refused_before_the_first_trial(given, workspace, settings, words):
    with pytest.raises(StudyError, match=words):
        _checked(_spec(_dsn(given), settings), workspace)


def test_a_role_that_may_not_set_is_told_so(given, workspace):
    with given.target.connect() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
    with pytest.raises(StudyError, match="the role bob may not set work_mem"):
        _checked(_spec(_dsn(given, user="bob"), {"work_mem": "8MB"}), workspace)


def test_a_value_that_the_server_refuses_is_told_and_nothing_stays(given, workspace, tmp_path):
    arm = _checked(_spec(_dsn(given), {"maintenance_work_mem": "20MB", "work_mem": "plenty"}), workspace)
    with pytest.raises(ArmError, match="invalid value for parameter"), arm.serve(0, tmp_path / "log", {}):
        pass
    assert "work_mem" not in (given.data_directory / "postgresql.auto.conf").read_text()


def test_a_value_overridden_for_the_role_is_told(given, workspace, tmp_path):
    with given.target.connect() as connection:
        connection.execute("ALTER ROLE postgres SET work_mem = '5MB'")
    arm = _checked(_spec(_dsn(given), {"work_mem": "8MB"}), workspace)
    with pytest.raises(ArmError, match="work_mem did not take effect"), arm.serve(0, tmp_path / "log", {}):
        pass


def test_the_password_comes_from_the_environment_and_stays_out_of_everything_written(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", _PASSWORD)
    arm = _checked(_spec(f"{guarded}?sslpassword=battery"), workspace)
    target = arm.target
    assert target.environment()["PGPASSWORD"] == _PASSWORD
    entry = workspace.journal().write("A", target, {"work_mem": None})
    assert "battery" not in entry.read_text() + repr(target)
    workspace.journal().done(entry)
    written = repr(target) + repr(arm.__dict__) + arm.kind + target.label
    written += "".join(path.read_text() for path in workspace.run.rglob("*.json"))
    assert _PASSWORD not in written


def test_the_password_comes_from_a_password_file(guarded, workspace, tmp_path, monkeypatch):
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:*:*:ann:{_PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    dsn = guarded.replace("127.0.0.1", "db.example") + "?hostaddr=127.0.0.1&passfile=" + str(passwords)
    passwords.write_text(f"*:*:*:ann:{_PASSWORD}\n")
    target = _checked(_spec(dsn), workspace).target
    assert (target.host, target.name, target.password) == ("127.0.0.1", "db.example", _PASSWORD)
    assert _checked(_spec(guarded), workspace).target.password == _PASSWORD


def test_a_wrong_password_is_told_without_repeating_it(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "battery staple")
    with pytest.raises(StudyError) as error:
        _checked(_spec(guarded), workspace)
    assert 'password authentication failed for user "ann"' in str(error.value)
    assert "set PGPASSWORD" in str(error.value)
    assert "battery staple" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_password_that_is_changed_in_mid_study_is_told(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", _PASSWORD)
    arm = _checked(_spec(guarded), workspace)
    with arm.target.connect() as connection:
        connection.execute("ALTER ROLE ann PASSWORD 'another'")
    with pytest.raises(ArmError, match=r"password authentication failed for user .ann.; set PGPASSWORD"):
        arm.prepare(1, _silent)


def test_a_missing_password_is_told(guarded, workspace, monkeypatch, tmp_path):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(StudyError, match="set PGPASSWORD"):
        _checked(_spec(guarded), workspace)


def test_a_refused_connection_is_told(workspace, free_port):
    with pytest.raises(StudyError, match="Connection refused; check that the server runs"):
        _checked(_spec(f"host=127.0.0.1 port={free_port} user=ann dbname=x"), workspace)


def test_a_socket_that_is_not_there_is_told(workspace, tmp_path):
    with pytest.raises(StudyError, match="No such file or directory; check that the server runs"):
        _checked(_spec(f"host={tmp_path} user=ann dbname=x"), workspace)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("service=nowhere", r'definition of service "nowhere" not found; add it to ~/.pg_service.conf'),
        ("host=127.0.0.1 port=abc", r'invalid integer value "abc" for connection option "port"; correct the dsn'),
        ("env", "No such file or directory; check that the server runs, and PGHOST and PGPORT"),
    ],
)
def test_what_names_no_server_is_told_with_what_to_mend(workspace, dsn, words, tmp_path, monkeypatch):
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(StudyError, match=words) as error:
        _checked(_spec(dsn), workspace)
    assert "connection is bad" not in str(error.value)


def test_an_absent_database_is_told(given, workspace):
    with pytest.raises(StudyError, match='database "absent" does not exist; correct the dsn'):
        _checked(_spec(_dsn(given, dbname="absent")), workspace)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("hst=x passwort=geheim", "the dsn is no connection string"),
        ("host=x password=very geheim", "the dsn is no connection string"),
        ("postgresql://ann:with@geheim:x@127.0.0.1/db", "more than one @"),
    ],
)
def test_a_dsn_that_is_none_is_told_without_repeating_it(workspace, dsn, words):
    with pytest.raises(StudyError, match=words) as error:
        _checked(_spec(dsn), workspace)
    assert "geheim" not in str(error.value)


def test_more_clients_than_connections_are_found_before_the_first_trial(given, workspace):
    with pytest.raises(StudyError, match=r"500 clients need 504 connections .* raise max_connections there"):
        _checked(_spec(_dsn(given), clients=500), workspace)
    with given.target.connect() as connection:
        connection.execute("CREATE ROLE bob LOGIN CONNECTION LIMIT 9")
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("GRANT CREATE ON SCHEMA public TO bob, eve")
        connection.execute("CREATE DATABASE small CONNECTION LIMIT 7")
    _checked(_spec(_dsn(given, user="bob")), workspace)
    with pytest.raises(StudyError, match=r"CONNECTION LIMIT of the role bob is 9, with .*ALTER ROLE"):
        _checked(_spec(_dsn(given, user="bob"), clients=6), workspace)
    with pytest.raises(StudyError, match=r"CONNECTION LIMIT of the database small is 7, with .*ALTER DATABASE"):
        _checked(_spec(_dsn(given, "small", "eve"), clients=4), workspace)


def test_sessions_of_others_count_although_the_role_may_not_see_what_they_are(given, workspace, monkeypatch):
    with given.target.connect() as connection:
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("GRANT CREATE ON SCHEMA public TO eve")
        wait_for_clients_to_leave(connection, 0, PATIENCE_S)
    # two connections are kept free for those that are just ending: this one, and the first one of the check
    spec = _spec(_dsn(given, user="eve"), clients=91)
    _checked(spec, workspace)
    monkeypatch.setattr(given_limits, "_LEAVING_S", 0.0)  # those that come now stay
    with ExitStack() as others:
        for _ in range(3):
            others.enter_context(given.target.connect())
        with pytest.raises(StudyError, match=r"max_connections .* is 97"):
            _checked(spec, workspace)


def test_a_fresh_copy_of_a_given_server_is_refused(given, workspace):
    with pytest.raises(StudyError, match='use "vacuum" or "none"'):
        _arm(_spec(_dsn(given), reset="copy"), workspace)


@pytest.mark.parametrize("how", ["PG*", "service file"])
def test_the_server_of_the_environment_is_used(given, workspace, tmp_path, monkeypatch, how):
    address = {"host": str(given.socket_directory), "port": str(given.port), "dbname": "postgres", "user": "postgres"}
    if how == "PG*":
        for name, value in address.items():
            monkeypatch.setenv(f"PG{name.upper().replace('DBNAME', 'DATABASE')}", value)
        dsn = "env"
    else:
        (tmp_path / "services").write_text("[ours]\n" + "".join(f"{key}={value}\n" for key, value in address.items()))
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        dsn = "service=ours"
    target = _checked(_spec(dsn, reset="none"), workspace).target
    assert (target.host, target.port, target.user) == (address["host"], given.port, "postgres")
    assert "PGSERVICE" not in target.environment()


def test_what_a_sysbench_test_prepares_is_made_once_and_replaced_by_what_another_needs(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(size):
        load = {"workload": "oltp_write_only", "sysbench": {"tables": 2, "table_size": size}}
        spec = _spec(_dsn(given), **load)
        arm = _checked(spec, workspace)
        return arm, Needs.of(spec).prepared[0]

    arm, data = arm_and_data(100)
    arm.prepare(data, _silent)
    lines: list[str] = []
    arm.prepare(data, lines.append)
    assert lines == []
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        connection.execute("DELETE FROM sbtest1 WHERE id = 1")
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM sbtest1").fetchone() == (50,)
        connection.execute("COMMENT ON TABLE sbtest2 IS 'mine'")
        connection.execute("COMMENT ON TABLE sbtest1 IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds tables of sysbench \(sbtest1 and 1 more\)"):
        arm_and_data(50)


def test_table_a_is_made_once_read_into_the_buffers_and_replaced_by_one_of_another_size(given, workspace, tmp_path):
    require_engine()

    def arm_and_data(rows):
        tasks = {"pool": 2, "threads_in_table": 2, "rows": rows}
        server = {"dsn": _dsn(given)}
        load = {"workload": "app-tasks", "tasks": tasks}
        spec = StudySpec.model_validate({"load": load, "server": server, "arms": {"A": {}, "B": {}}})
        arm = _checked(spec, workspace)
        return arm, Needs.of(spec).prepared[0]

    def break_off(line):
        if "rows of table_a made" in line:
            raise KeyboardInterrupt

    arm, data = arm_and_data(50_000)
    with pytest.raises(KeyboardInterrupt):
        arm.prepare(data, break_off)
    _wait_for_the_killed_engine(given)
    arm, data = arm_and_data(100)
    arm.prepare(data, _silent)
    lines: list[str] = []
    arm.prepare(data, lines.append)
    assert lines == []
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert creation_s(connection) is not None
        assert warm_relations(connection, arm.setup, brought=True) == NO_PREWARM
        connection.execute("SELECT pg_stat_force_next_flush()")
        scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE relname = 'table_a'"
        assert connection.execute(scans).fetchone() == (1,), "by its index, for want of pg_prewarm"
    arm, data = arm_and_data(50)
    with arm.serve(data, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM table_a").fetchone() == (100,)
        connection.execute("COMMENT ON TABLE table_a IS 'mine'")
    with pytest.raises(StudyError, match=r"arms\.A: .* already holds a table_a that pgtrial did not make"):
        arm_and_data(50)


def _wait_for_the_killed_engine(given):
    """A statement of its that the server has not even read yet would be carried out beside the next load."""
    with given.target.connect() as connection:
        wait_for_clients_to_leave(connection, 0, PATIENCE_S)


@contextmanager
def _key_that_is_still_made(given):
    """As by a session whose engine was killed; it is there once somebody has waited for it."""
    with given.target.connect() as late, given.target.connect() as watching:

        def end():
            query = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'pgbench_tellers'::regclass"
            while watching.execute(query).fetchone() is None and not over.is_set():
                pass
            late.execute("COMMIT")

        over = threading.Event()
        late.execute("BEGIN")
        late.execute("LOCK TABLE pgbench_tellers")
        late.execute("ALTER TABLE pgbench_tellers DROP CONSTRAINT IF EXISTS pgbench_tellers_pkey")
        late.execute("ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)")
        thread = threading.Thread(target=end)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def test_a_load_that_broke_off_goes_on_with_the_phase_it_was_in(given, workspace):
    require_engine()
    arm = _checked(_spec(_dsn(given)), workspace)

    def break_off(line):
        if line.startswith("creating primary keys"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arm.prepare(1, break_off)
    _wait_for_the_killed_engine(given)
    lines: list[str] = []
    arm = _checked(_spec(_dsn(given)), workspace)
    with _key_that_is_still_made(given):
        arm.prepare(1, lines.append)
    assert "going on with loading scale 1" in lines[0]
    assert not any(line.startswith(("creating tables", "generating data")) for line in lines)
    with given.target.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (100_000,)
        keys = connection.execute(
            "SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid::regclass::text ~ '^pgb'"
        )
        assert keys.fetchone() == (3,)


def test_what_a_role_may_not_do_is_one_sentence_before_anything_is_loaded(given, workspace):
    with given.target.connect() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("ALTER ROLE eve SET search_path = nowhere")
        connection.execute("CREATE ROLE kim LOGIN")
        connection.execute("ALTER ROLE kim SET default_transaction_read_only = on")
    for role, words in (
        ("bob", "the role bob may not create tables in the schema public of the database postgres; grant it"),
        ("eve", "no schema of the search path of eve exists"),
        ("kim", "default_transaction_read_only is on for the role kim"),
    ):
        with pytest.raises(StudyError, match=words):
            _checked(_spec(_dsn(given, user=role)), workspace)


def test_a_standby_is_told_before_anything_is_loaded(given, workspace, tmp_path):
    given.stop()
    signal = given.data_directory / "standby.signal"
    signal.touch()
    workspace.account.own(signal)
    given.start(tmp_path / "log")
    with pytest.raises(StudyError, match="the server is a read-only standby"):
        _checked(_spec(_dsn(given)), workspace)


def test_data_that_would_not_fit_the_storage_is_refused_before_it_is_loaded(given, workspace):
    def checked(limit, **load):
        server = {"dsn": _dsn(given), "storage_limit": limit}
        spec = StudySpec.model_validate({"load": load, "server": server, "arms": {"A": {}, "B": {}}})
        return _checked(spec, workspace)

    words = r"scale 1000 does not fit .* 15,000 MB for tables and 1,074 MB for WAL.*free of storage_limit = 10 GB"
    with pytest.raises(StudyError, match=words):
        checked("10GB", scale=[10, 1000])
    with pytest.raises(StudyError, match="250 x 450,000 rows does not fit"):
        checked("30GB", workload="oltp_write_only", sysbench={"tables": 250, "table_size": 450_000})
    checked("20GB", scale=[10, 1000])


def test_how_the_server_writes_moments_and_numbers_does_not_matter(given, workspace, tmp_path):
    with given.target.connect() as connection:
        for setting in (
            "datestyle = 'German, DMY'",
            "intervalstyle = 'sql_standard'",
            "timezone = 'Asia/Kathmandu'",
            "bytea_output = 'escape'",
            "extra_float_digits = -5",
        ):
            connection.execute(f"ALTER DATABASE postgres SET {setting}".encode())
        connection.execute("SELECT pg_stat_reset()")
    arm = _checked(_spec(_dsn(given), {"work_mem": "21MB"}), workspace)
    with arm.serve(0, tmp_path / "log", {}) as target, target.connect() as connection:
        assert connection.execute("SHOW datestyle").fetchone() == ("German, DMY",)
        before = read_counters(connection)
        assert deltas(before, read_counters(connection))["database"]["xact_commit"] >= 0


def test_no_setting_is_touched_when_the_study_gives_none(given, workspace, tmp_path):
    automatic = given.data_directory / "postgresql.auto.conf"
    before = automatic.read_text(), os.stat(automatic).st_mtime_ns
    arm = _checked(_spec(_dsn(given)), workspace)
    with arm.serve(0, tmp_path / "log", {}):
        pass
    assert (automatic.read_text(), os.stat(automatic).st_mtime_ns) == before


def test_connection_strings_are_shown_without_secrets():
    shown = without_password("postgresql://ann:geheim@db.example:5433/shop?sslpassword=auchgeheim")
    assert "geheim" not in shown
    assert "host=db.example" in shown
    assert "geheim" not in without_password("nonsense geheim")
