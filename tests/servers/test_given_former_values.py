"""Tests that postgresql.auto.conf of a given server is byte for byte the same after a study, or that nothing is
changed.
"""

from __future__ import annotations

import psycopg
import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.session_values import differences
from tests.processes import until
from tests.servers.given import HEAD, automatic, checked, dsn_of, execute, served, show, spec_of

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "former",
    [
        ["work_mem = '3MB'"],
        ["work_mem = 3072"],
        ["work_mem = '3MB'", "maintenance_work_mem = '32MB'", "jit = off"],
        ["jit = off", "work_mem = '3MB'"],
        ["\"WORK_MEM\" = '3MB'", "DateStyle = 'ISO, DMY'"],
        ["cluster_name = 'it''s \\ here'", "work_mem = '1.5GB'", "log_line_prefix = '%m \"%p\" # '"],
        [
            "work_mem = '3MB'",
            "shared_preload_libraries = 'auto_explain', '$libdir/pg_stat_statements'",
            "unix_socket_directories = '/tmp', '/var/run'",
            "search_path = '$user', 'public', 'Tricky, \"name\"'",
            "synchronous_standby_names = ''",
            "auto_explain.log_min_duration = '3s'",
        ],
        ["statement_timeout = '30s'", "work_mem = '3MB'", "lock_timeout = 0"],
    ],
)
def test_the_file_is_byte_for_byte_what_it_was(given, workspace, tmp_path, former):
    execute(given, "LOAD 'auto_explain'", *(f"ALTER SYSTEM SET {setting}" for setting in former))
    execute(given, "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    settings = {"work_mem": "21MB", "statement_timeout": "90s", "datestyle": "German, YMD"}
    arm = checked(spec_of(dsn_of(given), settings), workspace)
    for _ in range(2):
        assert served(arm, tmp_path, show("work_mem", "DateStyle")) == ["21MB", "German, YMD"]
        assert automatic(given).read_bytes() == before
    assert list(workspace.root.glob("given-settings-*")) == []


def test_a_value_that_was_never_loaded_comes_back(given, workspace, tmp_path):
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'", "ALTER SYSTEM SET max_connections = 150")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert served(arm, tmp_path, show("work_mem")) == ["8MB"]
    assert automatic(given).read_bytes() == before


def test_what_will_be_done_is_said_before(given, workspace):
    execute(
        given,
        "ALTER SYSTEM SET maintenance_work_mem = '20MB'",
        "ALTER SYSTEM SET jit = off",
        "ALTER SYSTEM SET DateStyle = 'ISO'",
        "SELECT pg_reload_conf()",
    )
    label = given.target.label
    done = (
        f"A: for each trial pgtrial sets work_mem of {label} by ALTER SYSTEM, and restores the former values afterwards"
    )
    names = "maintenance_work_mem, work_mem"
    tables = (
        f"{label}: pgtrial will make pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers (scale 1, "
        "about 15 MB) in the database postgres"
    )
    assert checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace).notes == [done, tables]
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'", "ALTER SYSTEM SET max_connections = 150")
    execute(given, "ALTER SYSTEM RESET maintenance_work_mem")
    assert checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace).notes == [
        done,
        f"A: pgtrial reloads the configuration of {label}, by which changes of these settings in its files that are "
        f"not loaded yet take effect: {names}",
        tables,
    ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER ROLE postgres SET work_mem = '5MB'", "ALTER ROLE postgres sets it with precedence .*RESET work_mem"),
        ("ALTER DATABASE postgres SET work_mem = '5MB'", "ALTER DATABASE postgres sets it with precedence"),
        (
            "ALTER ROLE postgres IN DATABASE postgres SET work_mem = '5MB'",
            "ALTER ROLE postgres IN DATABASE postgres sets it with precedence",
        ),
        ("ALTER ROLE ALL SET work_mem = '5MB'", "ALTER ROLE ALL sets it with precedence"),
    ],
)
def test_what_goes_before_alter_system_is_named_before_anything_is_changed(given, workspace, statement, words):
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'", "SELECT pg_reload_conf()", statement)
    before = automatic(given).read_bytes()
    with pytest.raises(StudyError, match=f"a value of work_mem by ALTER SYSTEM cannot take effect, .*{words}"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == before


def test_options_of_the_connection_go_before_alter_system(given, workspace):
    dsn = f"{dsn_of(given)} options='-c work_mem=5MB'"
    with pytest.raises(StudyError, match=r"an option of the connection .* sets it with precedence"):
        checked(spec_of(dsn, {"work_mem": "8MB"}), workspace)


LOGIN = (
    "CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql AS "
    "'BEGIN PERFORM set_config(''work_mem'', ''7MB'', false); END'",
    "CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login()",
)
"""Statements that make each session have another value than the one it asked for, as a pooler that drops
options does.
"""


def test_a_value_that_each_login_sets_goes_before_alter_system(given, workspace):
    execute(given, *LOGIN)
    before = automatic(given).read_bytes()
    with pytest.raises(StudyError, match=r"since a login event trigger or the pooler sets it with precedence"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == before


def sessions_of_one_server(given, workspace):
    server = {"dsn": dsn_of(given)}
    arms = {"a": {"settings": {"work_mem": "8MB"}}, "b": {"settings": {"work_mem": "16MB"}}}
    spec = StudySpec.model_validate({"load": {"scale": 1, "clients": 2}, "server": server, "arms": arms})
    design = interleaved(Design(spec))
    return Needs.of(design), make_arms(design, workspace)["b"]


def test_sessions_of_one_server_without_their_settings_are_found_before_the_first_trial(given, workspace):
    execute(given, *LOGIN)
    needs, arm = sessions_of_one_server(given, workspace)
    with pytest.raises(StudyError, match=r"arms.a: work_mem is '7MB' instead of '8MB' in sessions that ask for it"):
        arm.check(needs)


def test_a_trial_whose_sessions_lack_their_settings_fails(given, workspace, tmp_path):
    needs, arm = sessions_of_one_server(given, workspace)
    arm.check(needs)
    assert served(arm, tmp_path, show("work_mem")) == ["16MB"]
    execute(given, *LOGIN)
    with pytest.raises(TrialError, match=r"work_mem is '7MB' instead of '16MB' in new sessions of postgres@"):
        served(arm, tmp_path)


def test_white_space_in_a_value_is_part_of_it(given):
    target = given.target.with_settings({"search_path": "pg_catalog,\tpublic", "my.text": "a\n\\ b"})
    with target.connect_as_user() as session:
        assert differences(session, {"search_path": "pg_catalog, public", "my.text": "a\n\\ b"}) == {}
        assert differences(session, {"my.text": "a", "my.other": "b"}) == {
            "my.text": r"'a\n\ b'",
            "my.other": "unknown",
        }
        assert session.execute("SHOW my.text").fetchone() == ("a\n\\ b",)


def test_a_value_that_counts_for_another_setting_hides_nothing(given, workspace, tmp_path):
    execute(
        given,
        "ALTER SYSTEM SET work_mem = '3MB'",
        "ALTER SYSTEM SET maintenance_work_mem = '65536'",
        "ALTER ROLE postgres SET work_mem = '5MB'",
        "SELECT pg_reload_conf()",
    )
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"maintenance_work_mem": "64MB"}), workspace)
    assert served(arm, tmp_path, show("maintenance_work_mem", "work_mem")) == ["64MB", "5MB"]
    assert automatic(given).read_bytes() == before


def test_an_included_file_whose_name_ends_alike_is_another_file(given, workspace, tmp_path):
    included = given.data_directory / "x" / "postgresql.auto.conf"
    included.parent.mkdir()
    included.write_text("work_mem = 7MB\n")
    workspace.own(included.parent)
    with (given.data_directory / "postgresql.conf").open("a") as configuration:
        configuration.write("include 'x/postgresql.auto.conf'\n")
    execute(given, "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert served(arm, tmp_path, show("work_mem")) == ["8MB"]
    assert automatic(given).read_bytes() == before == HEAD.encode()
    assert included.read_text() == "work_mem = 7MB\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{HEAD}# ours\nwork_mem = '3MB'\n", "has a comment in line 3"),
        (f"{HEAD}work_mem = '3MB' # ours\n", "has a comment in line 3"),
        (f"{HEAD}jit = 'off'\nwork_mem = 3MB\n", "has a line 4 that ALTER SYSTEM would not write"),
        (f"{HEAD}work_mem = '3MB'\njit = 'off'\nwork_mem = '5MB'\n", "has work_mem twice"),
        ("work_mem = '3MB'\n", "lacks the comment with which ALTER SYSTEM begins it"),
        (f"{HEAD}include_if_exists 'more.conf'\n", "has a line 3 that ALTER SYSTEM would not write"),
        (f"{HEAD}work_mem = '3MB'", "has a line 3 that ALTER SYSTEM would not write"),
        (f"{HEAD}include_if_exists = 'more.conf'\n", "has the directive include_if_exists"),
        (f"{HEAD}work_mem = '3MB'\ninclude_dir = 'more'\n", "has the directive include_dir"),
    ],
)
def test_a_file_that_alter_system_cannot_write_is_not_touched(given, workspace, content, words):
    automatic(given).write_text(content)
    with pytest.raises(StudyError, match=f"postgresql.auto.conf of the server {words}, and ALTER SYSTEM"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_text() == content


@pytest.mark.parametrize("database", ["UTF8", "SQL_ASCII"])
def test_bytes_that_are_no_text_are_not_touched(given, workspace, database):
    execute(given, f"CREATE DATABASE odd ENCODING '{database}' LOCALE 'C' TEMPLATE template0")
    content = HEAD.encode() + b"log_line_prefix = '\xe9'\n"
    automatic(given).write_bytes(content)
    execute(given, "SELECT pg_reload_conf()")
    with pytest.raises(StudyError, match="has bytes that are not valid text in this database's encoding"):
        checked(spec_of(dsn_of(given, "odd"), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == content


def test_a_list_that_alter_system_cannot_write_is_not_touched(given, workspace):
    content = f"{HEAD}work_mem = '3MB'\nlocal_preload_libraries = ''\n"
    automatic(given).write_text(content)
    with pytest.raises(
        StudyError, match=r"ALTER SYSTEM could not restore the line of local_preload_libraries .* as it is written"
    ):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_text() == content


@pytest.mark.parametrize("name", ["work_mem", "maintenance_work_mem"])
def test_a_value_that_alter_system_would_refuse_is_not_touched(given, workspace, name):
    content = f"{HEAD}work_mem = '3MB'\n{name} = '3 parsecs'\n".replace("work_mem = '3MB'\nwork", "work")
    automatic(given).write_text(content)
    with pytest.raises(StudyError, match=f"ALTER SYSTEM could not restore the line of {name} .* as it is written"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_text() == content


def test_a_setting_that_nobody_knows_keeps_the_files_from_being_loaded(given, workspace):
    content = f"{HEAD}work_memory = '3MB'\n"
    automatic(given).write_text(content)
    with pytest.raises(StudyError, match=r"unrecognized configuration parameter in .*postgresql.auto.conf, line 3"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_text() == content


def test_files_that_cannot_be_loaded_are_named(given, workspace):
    with (given.data_directory / "postgresql.conf").open("a") as configuration:
        configuration.write("work_memory = 7MB\n")
    with pytest.raises(StudyError, match="cannot load its settings: unrecognized configuration parameter in /"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)


def test_alter_system_may_be_forbidden(start_cluster, workspace):
    cluster = start_cluster(settings={"allow_alter_system": "off"})
    with pytest.raises(StudyError, match="allow_alter_system is off"):
        checked(spec_of(dsn_of(cluster), {"work_mem": "8MB"}), workspace)


def test_what_somebody_else_sets_meanwhile_stays(given, workspace, tmp_path):
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'", "ALTER SYSTEM SET maintenance_work_mem = '20MB'")
    arm = checked(spec_of(dsn_of(given), {"work_mem": "8MB", "maintenance_work_mem": "30MB"}), workspace)
    served(arm, tmp_path, lambda target: execute(given, "ALTER SYSTEM SET work_mem = '99MB'"))
    assert automatic(given).read_text() == f"{HEAD}work_mem = '99MB'\nmaintenance_work_mem = '20MB'\n"
    assert [note.partition(" on ")[0] for note in arm.notes] == ["somebody else has changed work_mem"]


def test_a_session_with_another_value_than_the_arms_fails_its_trial(given, workspace, tmp_path, monkeypatch):
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'", "SELECT pg_reload_conf()")
    before = automatic(given).read_bytes()
    arm = checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    # between the look at it and the change somebody gives the role a value
    monkeypatch.setattr(
        "pgtrial.servers.given_settings.write",
        lambda session, name, text: execute(given, f"ALTER SYSTEM SET {name} = '9MB'"),
    )
    with pytest.raises(TrialError, match=r"work_mem is '9MB' instead of '8MB' in new sessions of postgres@"):
        served(arm, tmp_path)
    monkeypatch.undo()
    execute(given, "ALTER SYSTEM SET work_mem = '3MB'")
    assert automatic(given).read_bytes() == before


def test_time_limits_of_the_server_are_those_of_its_files(given, workspace, tmp_path):
    execute(
        given,
        "ALTER SYSTEM SET statement_timeout = '30s'",
        "ALTER SYSTEM SET idle_session_timeout = '10min'",
        "SELECT pg_reload_conf()",
    )
    before = automatic(given).read_bytes()
    settings = {"statement_timeout": "60s", "idle_session_timeout": "1s", "transaction_timeout": "90s"}
    arm = checked(spec_of(dsn_of(given), settings), workspace)

    def limits(target):
        with target.connect_as_user() as connection:
            connection.execute("RESET ALL")
            return [connection.execute(f"SHOW {name}".encode()).fetchone()[0] for name in settings]

    assert served(arm, tmp_path, limits) == ["1min", "1s", "90s"]
    assert automatic(given).read_bytes() == before


def test_a_limit_of_the_arm_does_not_end_the_session_that_changes_the_settings(given, workspace, tmp_path):
    arm = checked(spec_of(dsn_of(given), {"idle_session_timeout": "2s"}), workspace)
    before = automatic(given).read_bytes()
    labs = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgtrial lab' AND pid <> pg_backend_pid()"

    def idle(target):
        with target.connect_as_user(application_name="watch") as watching:
            # sessions of the check have hung up, and may still be there
            until(lambda: len(watching.execute(labs).fetchall()) == 1, "the session that changes is alone")
            [changing] = watching.execute(labs).fetchall()
            idling = psycopg.connect(host=target.host, port=target.port, user=target.user, dbname=target.dbname)
            pid = idling.info.backend_pid
            there = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}".encode()
            until(lambda: watching.execute(there).fetchone() == (0,), "the limit ends an idle session")
            idling.close()
            assert watching.execute(labs).fetchall() == [changing]

    served(arm, tmp_path, idle)
    assert automatic(given).read_bytes() == before


def test_one_setting_in_two_spellings_is_one(given, workspace):
    with pytest.raises(StudyError, match="WORK_MEM is set twice"):
        checked(spec_of(dsn_of(given), {"WORK_MEM": "8MB", "work_mem": "16MB"}), workspace)


def test_the_settings_of_an_old_server_come_back(start_cluster, workspace, tmp_path):
    old = start_cluster(13)
    execute(old, "ALTER SYSTEM SET work_mem = '3MB'", "ALTER SYSTEM SET unix_socket_directories = '/tmp, /var'")
    before = automatic(old).read_bytes()
    arm = checked(spec_of(dsn_of(old), {"work_mem": "8MB"}), workspace)
    assert served(arm, tmp_path, show("work_mem")) == ["8MB"]
    assert automatic(old).read_bytes() == before


def test_the_command_line_goes_before_alter_system(given, workspace, tmp_path):
    given.stop()
    given.launcher = ("sh", "-c", 'exec "$@" -c work_mem=5MB', "sh")
    given.start(tmp_path / "log")
    before = automatic(given).read_bytes()
    with pytest.raises(StudyError, match=r"the server's command line sets it with precedence .*remove it there"):
        checked(spec_of(dsn_of(given), {"work_mem": "8MB"}), workspace)
    assert automatic(given).read_bytes() == before
