"""Lists of libraries and names on given servers: sent as lists, and no server is locked by them."""

from __future__ import annotations

import psycopg
import pytest

from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers import undo
from pgtrial.servers.server_record import write_down
from pgtrial.servers.settings_record import SettingsRecord, maker, put_back_anew
from tests.servers.given import GRANTS, HEAD, LOOK, automatic, checked, dsn_of, execute, served, show, spec_of

LIBRARIES = "ALTER SYSTEM SET session_preload_libraries = 'auto_explain', 'pg_stat_statements'"
MISSPELT = "auto_explain,pg_stat_statement"


def sessions_start(cluster):
    cluster.target.connect_as_user().close()
    return True


@pytest.mark.server
def test_a_list_is_sent_as_a_list_and_comes_back_as_one(given, workspace, tmp_path):
    execute(given, LIBRARIES, "ALTER SYSTEM SET search_path = '$user', 'public'", "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    settings = {
        "session_preload_libraries": "pg_stat_statements,\tauto_explain",
        "search_path": 'pg_catalog, "Tricky, name"',
        "temp_tablespaces": "",
        "synchronous_standby_names": "",
        "DateStyle": "ISO, YMD",
    }
    arm = checked(spec_of(dsn_of(given), settings), workspace)

    def inside(target):
        return show(*settings)(target), automatic(given).read_text()

    shown, written = served(arm, tmp_path, inside)
    assert shown == ["pg_stat_statements, auto_explain", 'pg_catalog, "Tricky, name"', '""', "", "ISO, YMD"]
    assert written == (
        f"{HEAD}session_preload_libraries = 'pg_stat_statements, auto_explain'\n"
        "search_path = 'pg_catalog, \"Tricky, name\"'\n"
        "temp_tablespaces = '\"\"'\n"
        "synchronous_standby_names = ''\n"
        "DateStyle = 'ISO, YMD'\n"
    )
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)


@pytest.mark.server
def test_no_library_is_no_line(given, workspace, tmp_path):
    execute(given, LIBRARIES, "ALTER SYSTEM SET jit = off", "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"session_preload_libraries": ""}), workspace)
    assert served(arm, tmp_path, show("session_preload_libraries")) == [""]
    assert automatic(given).read_bytes() == before
    with (given.data_directory / "postgresql.conf").open("a") as configuration:
        configuration.write("session_preload_libraries = 'auto_explain'\n")
    with pytest.raises(StudyError, match=r"ALTER SYSTEM cannot make session_preload_libraries empty while /.* sets it"):
        checked(spec_of(dsn_of(given), {"session_preload_libraries": ""}), workspace)


@pytest.mark.server
def test_a_misspelt_library_is_found_in_a_session_of_its_own(given, workspace):
    before = automatic(given).read_bytes()
    with pytest.raises(StudyError, match=r'could not access file "pg_stat_statement": .*; correct them'):
        checked(spec_of(dsn_of(given), {"session_preload_libraries": MISSPELT}), workspace)
    assert automatic(given).read_bytes() == before


@pytest.mark.server
def test_what_cannot_be_tried_before_is_taken_back_by_the_session_that_made_it(given, workspace, tmp_path):
    execute(given, *GRANTS, *LOOK, LIBRARIES, "SELECT pg_reload_conf()")
    execute(given, "GRANT ALTER SYSTEM ON PARAMETER session_preload_libraries TO bob")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given, user="bob"), {"session_preload_libraries": MISSPELT}), workspace)
    with pytest.raises(ArmError, match=r'no session of .* can start: could not access file "pg_stat_statement"'):
        served(arm, tmp_path)
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)
    assert list(workspace.root.glob("given-settings-*")) == []


@pytest.mark.server
def test_a_text_that_is_no_list_is_refused(given, workspace):
    with pytest.raises(StudyError, match=r"search_path = 'a,,b' is not a list of names separated by commas"):
        checked(spec_of(dsn_of(given), {"search_path": "a,,b"}), workspace)


@pytest.mark.server
def test_settings_are_put_back_where_their_session_is_lost(given, workspace, tmp_path):
    execute(given, LIBRARIES, "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"session_preload_libraries": "auto_explain"}), workspace)
    others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datid IS NOT NULL"
    )

    def lock(target):
        with target.connect_as_user() as session:
            session.execute("ALTER SYSTEM SET session_preload_libraries = 'auto_explain', 'absent'")
            session.execute("SELECT pg_reload_conf()")
            wait_until_locked(given)
            session.execute(f"{others} AND application_name = 'pgtrial lab'".encode())
            session.execute("ALTER SYSTEM SET session_preload_libraries = 'auto_explain'")

    # no plain session can start, though the file is right again: the server has not loaded that
    served(arm, tmp_path, lock)
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)


def ended(cluster):
    """Returns the recorded form of a server session that has ended."""
    with cluster.target.connect_as_user() as session:
        return maker(session)


def locked(cluster, run, user="postgres"):
    """Changes a setting and its record as a lab does that is killed after ALTER SYSTEM, before it checks a new session.
    Returns the content of postgresql.auto.conf before the change.
    """
    execute(cluster, LIBRARIES, "SELECT pg_reload_conf()")
    before = automatic(cluster).read_bytes()
    with cluster.target.connect_as_user() as session:
        target = Target(str(cluster.socket_directory), cluster.port, user, "postgres")
        former, written = "auto_explain, pg_stat_statements", "auto_explain, pg_stat_statement"
        record = SettingsRecord(
            "A",
            target,
            {"session_preload_libraries": former},
            {"session_preload_libraries": written},
            ["session_preload_libraries"],
            ended(cluster),
        )
        write_down(record, run)
        session.execute("ALTER SYSTEM SET session_preload_libraries = 'auto_explain', 'pg_stat_statement'")
        session.execute("SELECT pg_reload_conf()")
    return before


def wait_until_locked(cluster):
    while True:
        try:
            cluster.target.connect_as_user().close()
        except psycopg.OperationalError:
            return


@pytest.mark.server
def test_cleaning_gets_into_a_locked_server(given, tmp_path):
    before = locked(given, tmp_path)
    wait_until_locked(given)
    assert undo.of_run(tmp_path).undo() == ([], [])
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)
    assert undo.of_run(tmp_path).pending() == []


@pytest.mark.server
def test_a_path_on_which_no_library_is_locks_no_server(given, workspace, tmp_path):
    execute(given, LIBRARIES, "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    with pytest.raises(StudyError, match='no session can have these settings: could not access file "auto_explain"'):
        checked(spec_of(dsn_of(given), {"dynamic_library_path": "/nowhere"}), workspace)
    assert automatic(given).read_bytes() == before
    name = "dynamic_library_path"
    record = SettingsRecord("A", given.target, {name: None}, {name: "/nowhere"}, [], ended(given))
    write_down(record, tmp_path)
    execute(given, "ALTER SYSTEM SET dynamic_library_path = '/nowhere'", "SELECT pg_reload_conf()")
    wait_until_locked(given)
    assert undo.of_run(tmp_path).undo() == ([], [])
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)


@pytest.mark.server
@pytest.mark.parametrize("name", ["transaction_timeout", "idle_session_timeout"])
def test_cleaning_gets_past_limits_that_end_each_session(given, tmp_path, name):
    before = automatic(given).read_bytes()
    write_down(SettingsRecord("A", given.target, {name: None}, {name: "1ms"}, [], ended(given)), tmp_path)
    execute(given, f"ALTER SYSTEM SET {name} = '1ms'", "SELECT pg_reload_conf()")
    assert undo.of_run(tmp_path).undo() == ([], [])
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)


@pytest.mark.server
def test_a_session_that_is_ended_before_it_has_read_its_options_is_tried_again(given, monkeypatch):
    name, limited = "transaction_timeout", given.target
    record = SettingsRecord("A", limited, {name: None}, {name: "1ms"}, [], ended(given))
    execute(given, f"ALTER SYSTEM SET {name} = '1ms'", "SELECT pg_reload_conf()")
    attempts = []
    connect = Target.connect

    def slowly(target, **parameters):
        """Connects as on a busy machine: the limit ends the first sessions, whatever options they bring."""
        attempts.append(target)
        if len(attempts) <= 3:
            raise psycopg.OperationalError(
                "connection failed: FATAL:  terminating connection due to transaction timeout"
            )
        return connect(target, **parameters)

    monkeypatch.setattr(Target, "connect", slowly)
    assert put_back_anew(record, limited.connect) == []
    assert len(attempts) >= 4


@pytest.mark.server
def test_cleaning_gets_in_as_the_superuser_that_is_named(given, tmp_path, monkeypatch):
    execute(given, *GRANTS, *LOOK, "GRANT ALTER SYSTEM ON PARAMETER session_preload_libraries TO bob")
    before = locked(given, tmp_path, "bob")
    wait_until_locked(given)
    _, [sentence] = undo.of_run(tmp_path).undo()
    assert "settings session_preload_libraries of bob@" in sentence
    assert "PGUSER naming a superuser if new sessions cannot start" in sentence
    assert undo.of_run(tmp_path).pending() != []
    monkeypatch.setenv("PGUSER", "postgres")
    assert undo.of_run(tmp_path).undo() == ([], [])
    assert automatic(given).read_bytes() == before
    assert sessions_start(given)


@pytest.mark.server
def test_cleaning_leaves_what_somebody_else_has_set(given, tmp_path):
    execute(given, "ALTER SYSTEM SET work_mem = '99MB'", "ALTER SYSTEM SET jit = on")
    changes = {"work_mem": "21MB", "jit": "on"}
    record = SettingsRecord("A", given.target, {"work_mem": None, "jit": "off"}, changes, ["jit"], ended(given))
    write_down(record, tmp_path)
    left, failures = undo.of_run(tmp_path).undo()
    assert left == [
        f"somebody else has changed work_mem on {given.target.label} in the meantime, so it stays as it is."
    ]
    assert failures == []
    assert automatic(given).read_text() == f"{HEAD}jit = 'off'\nwork_mem = '99MB'\n"


@pytest.mark.server
def test_cleaning_leaves_another_server_in_the_place_of_the_first_one(given, tmp_path):
    execute(given, "ALTER SYSTEM SET work_mem = '21MB'")
    before = automatic(given).read_bytes()
    of_another = {**ended(given), "system": "7000000000000000000"}
    changes = {"work_mem": "21MB"}
    entry = write_down(SettingsRecord("A", given.target, {"work_mem": None}, changes, [], of_another), tmp_path)
    left, [failure] = undo.of_run(tmp_path).undo()
    assert left == []
    assert "another server than that of the record answers at this address" in failure
    assert "if that server is gone for good, run pgtrial cleanup --forget " in failure
    assert str(entry) in failure
    assert entry.exists()
    assert automatic(given).read_bytes() == before


def test_a_record_that_is_none_is_named(tmp_path):
    record = tmp_path / "given-settings-41.json"
    record.write_text('{"arm": "A"}')
    assert undo.of_run(tmp_path).pending() == [
        f"{record} is no record of settings that this version of pgtrial can read"
    ]
    _, [sentence] = undo.of_run(tmp_path).undo()
    assert sentence.startswith(f"{record} is no record")
    assert record.exists()
