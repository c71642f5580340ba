"""Given servers: settings of theirs are changed for a trial and put back, and nothing else of theirs is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pgtrial.evidence.observe.views import deltas, read_counters
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.settings_record import reload
from pgtrial.store.study_file import build_study
from tests.servers.given import checked, dsn_of, served, show, spec_of

pytestmark = pytest.mark.server


def test_settings_hold_during_a_trial_and_are_put_back(given, workspace, tmp_path):
    with given.target.connect_as_user() as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '3MB'")
        connection.execute("SELECT pg_reload_conf()")
    settings = {"work_mem": "21MB", "maintenance_work_mem": "33MB"}
    arm = checked(spec_of(dsn_of(given), settings), workspace)
    with arm.serve(NO_TABLES, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("21MB",)
        assert connection.execute("SHOW maintenance_work_mem").fetchone() == ("33MB",)
    automatic = (given.data_directory / "postgresql.auto.conf").read_text()
    assert "work_mem = '3MB'" in automatic
    assert "maintenance_work_mem" not in automatic
    assert list(workspace.root.glob("given-settings-*")) == []


def test_a_service_is_served_with_settings_that_need_no_restart(given, workspace, tmp_path, monkeypatch):
    services = tmp_path / "pg_service.conf"
    services.write_text(f"[centos]\nhost={given.socket_directory}\nport={given.port}\ndbname=postgres\nuser=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    settings = {"autovacuum": "off", "work_mem": "640MB", "checkpoint_completion_target": "0.8"}
    arm = checked(spec_of("service=centos", settings), workspace)
    with arm.serve(NO_TABLES, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        shown = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in settings}
    assert shown == settings
    with given.target.connect_as_user() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("4MB",)


def test_settings_are_put_back_when_the_trial_fails(given, workspace, tmp_path):
    arm = checked(spec_of(dsn_of(given), {"work_mem": "21MB"}), workspace)
    with pytest.raises(RuntimeError), arm.serve(NO_TABLES, tmp_path / "log", {}):
        raise RuntimeError
    assert "work_mem" not in (given.data_directory / "postgresql.auto.conf").read_text()


def test_settings_of_a_killed_lab_are_put_back_by_the_next_cleaning(given, fresh_state):
    script = """
import json, os, signal, sys
from pathlib import Path
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
workspace = Workspace(Path(sys.argv[1]))
arm = make_arms(Design(StudySpec.model_validate(json.loads(sys.argv[2]))), workspace)["A"]
with arm.serve(NO_TABLES, workspace.root / "log", {}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    spec = spec_of(dsn_of(given), {"work_mem": "21MB"}).model_dump(exclude_none=True)
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
        ({"work_memory": "1GB"}, "the server does not know the setting work_memory; did you mean work_mem"),
        ({"pre_auth_delay": "60s"}, "pre_auth_delay can prevent all sessions from starting"),
        ({"role": "ann"}, "role exists only in a session"),
        ({"block_size": "4096"}, "takes effect at a restart only"),
        (
            {"checkpoint_timeout": "1s"},
            r"checkpoint_timeout cannot be '1s': the server accepts from 30 to 86400 \(in s\)",
        ),
        ({"checkpoint_timeout": "seldom"}, "checkpoint_timeout cannot be 'seldom'"),
        ({"max_wal_size": "1 parsec"}, "max_wal_size cannot be '1 parsec'"),
        ({"log_error_verbosity": "loud"}, "cannot be 'loud': the server accepts terse, default, verbose; correct it"),
        ({"autovacuum": "maybe"}, "cannot be 'maybe': the server accepts on, off; correct it"),
        ({"log_line_prefix": "%m\n"}, r"log_line_prefix = '%m\\n' has a line break, which ALTER SYSTEM refuses"),
    ],
)
def test_settings_that_cannot_be_made_are_refused_before_the_first_trial(given, workspace, settings, words):
    with pytest.raises(StudyError, match=words):
        checked(spec_of(dsn_of(given), settings), workspace)


def test_values_of_all_spellings_are_taken(given, workspace, tmp_path):
    settings = {
        "checkpoint_timeout": "0.5h",
        "autovacuum_naptime": "90",
        "max_wal_size": "0.5GB",
        "checkpoint_completion_target": ".8",
        "log_min_messages": "debug",
        "autovacuum": "of",
        "bgwriter_delay": "0x14",
        "wal_writer_flush_after": "010MB",
    }
    names = ["checkpoint_timeout", "autovacuum_naptime", "max_wal_size", "checkpoint_completion_target"]
    arm = checked(spec_of(dsn_of(given), settings), workspace)
    assert served(arm, tmp_path, show(*names)) == ["30min", "90s", "512MB", "0.8"]


def test_a_setting_of_no_library_is_named(given, workspace):
    with (given.data_directory / "postgresql.conf").open("a") as file:
        file.write("shop.tenant = 'old'\n")
    with given.target.connect_as_user() as session:
        reload(session)
    with pytest.raises(StudyError, match=r"no library that the server has loaded defines shop\.tenant, so the server"):
        checked(spec_of(dsn_of(given), {"shop.tenant": "new"}), workspace)


def test_a_role_that_may_not_set_is_told_so(given, workspace):
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
    with pytest.raises(
        StudyError, match=r"the role bob may not set work_mem by ALTER SYSTEM; grant it \(GRANT ALTER SYSTEM ON"
    ):
        checked(spec_of(dsn_of(given, user="bob"), {"work_mem": "8MB"}), workspace)


def test_before_15_settings_take_a_superuser(start_cluster, workspace):
    old = start_cluster(13)
    with old.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
    with pytest.raises(StudyError, match=r"the role bob may not set work_mem .*; name a superuser in the dsn"):
        checked(spec_of(dsn_of(old, user="bob"), {"work_mem": "8MB"}), workspace)


def test_a_value_that_the_server_refuses_is_told_and_nothing_stays(given, workspace, tmp_path):
    automatic = given.data_directory / "postgresql.auto.conf"
    before = automatic.read_bytes()
    settings = {"maintenance_work_mem": "20MB", "TimeZone": "Europe/Atlantis"}
    with pytest.raises(StudyError, match=r'no session can have these settings: invalid value for parameter "TimeZone"'):
        checked(spec_of(dsn_of(given), settings), workspace)
    # of a value that no session can have for itself ALTER SYSTEM says so
    arm = checked(spec_of(dsn_of(given), {"work_mem": "20MB", "log_timezone": "Europe/Atlantis"}), workspace)
    with pytest.raises(ArmError, match="the server refuses the settings: invalid value for parameter"):
        served(arm, tmp_path)
    assert automatic.read_bytes() == before


def test_a_fresh_copy_of_a_given_server_is_refused(given):
    with pytest.raises(StudyError, match='write "vacuum" or "none"'):
        build_study({"arms": {"A": {"dsn": dsn_of(given), "reset": "copy"}, "B": {}}}, "test")


def test_how_the_server_writes_moments_and_numbers_does_not_matter(given, workspace, tmp_path):
    with given.target.connect_as_user() as connection:
        for setting in (
            "datestyle = 'German, DMY'",
            "intervalstyle = 'sql_standard'",
            "timezone = 'Asia/Kathmandu'",
            "bytea_output = 'escape'",
            "extra_float_digits = -5",
        ):
            connection.execute(f"ALTER DATABASE postgres SET {setting}".encode())
        connection.execute("SELECT pg_stat_reset()")
    arm = checked(spec_of(dsn_of(given), {"work_mem": "21MB"}), workspace)
    with arm.serve(NO_TABLES, tmp_path / "log", {}) as target, target.connect_as_user() as connection:
        assert connection.execute("SHOW datestyle").fetchone() == ("German, DMY",)
        before = read_counters(connection)
        assert deltas(before, read_counters(connection))["database"]["xact_commit"] >= 0


def test_no_setting_is_touched_when_the_study_gives_none(given, workspace, tmp_path):
    automatic = given.data_directory / "postgresql.auto.conf"
    before = automatic.read_text(), os.stat(automatic).st_mtime_ns
    arm = checked(spec_of(dsn_of(given)), workspace)
    with arm.serve(NO_TABLES, tmp_path / "log", {}):
        pass
    assert (automatic.read_text(), os.stat(automatic).st_mtime_ns) == before
