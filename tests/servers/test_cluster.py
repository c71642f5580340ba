"""Clusters of our own: private, unprivileged, with PostgreSQL's own words when they fail."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import socket
import stat
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pgtrial.model.errors import ArmError
from pgtrial.servers.cluster import Cluster, configuration, create_cluster
from pgtrial.servers.postmaster import server_processes
from tests.conftest import require, require_root, require_server

pytestmark = pytest.mark.server


def test_every_version_serves_as_an_unprivileged_user(cluster):
    with cluster.target.connect_as_user() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.info.server_version // 10000 == cluster.server.major
    users = set()
    for process in server_processes(cluster.data_directory):
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that ended meanwhile
            users.add(process.uids().effective)
    assert users == {cluster.data_directory.stat().st_uid}
    assert 0 not in users


@pytest.mark.parametrize(("major", "since"), [(10, False), (18, False), (19, True), (20, True)])
def test_the_log_has_every_work_of_autovacuum(major, since):
    lines = configuration({}, Path("/s"), major).splitlines()
    assert "log_autovacuum_min_duration = '0'" in lines
    assert ("log_autoanalyze_min_duration = '0'" in lines) == since


def test_nobody_else_can_enter_the_socket_directory_and_no_port_is_open(cluster):
    assert stat.S_IMODE(cluster.socket_directory.stat().st_mode) == 0o700
    with cluster.target.connect_as_user() as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_the_users_own_pg_variables_change_neither_server_nor_connection(start_cluster, monkeypatch):
    for name, value in {
        "PGPORT": "1",
        "PGHOST": "elsewhere.invalid",
        "PGDATABASE": "absent",
        "PGDATA": "/absent",
        "PGOPTIONS": "-c work_mem=77MB",
        "PGSERVICE": "absent",
        "PGSSLMODE": "verify-full",
    }.items():
        monkeypatch.setenv(name, value)
    with start_cluster().target.connect_as_user() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("4MB",)
    assert os.environ["PGOPTIONS"] == "-c work_mem=77MB"


def test_a_server_has_none_of_the_callers_secrets_in_its_environment(start_cluster, monkeypatch):
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PGPASSWORD", "PGTRIAL_NOTE", "HOME"):
        monkeypatch.setenv(name, f"/of-the-caller/{name}")
    with start_cluster().target.connect_as_user() as connection:
        connection.execute("CREATE TEMP TABLE seen (line text)")
        connection.execute("COPY seen FROM PROGRAM 'env'")
        lines = [str(line) for (line,) in connection.execute("SELECT line FROM seen").fetchall()]
    assert any(line.startswith("PATH=") for line in lines)
    assert not [line for line in lines if "of-the-caller" in line]


def test_settings_reach_the_server_whatever_characters_they_have(start_cluster):
    strange = r"it's a \backslash and # a hash"
    cluster = start_cluster(settings={"Work_Mem": "7MB", "pgtrial_test.text": strange})
    with cluster.target.connect_as_user() as connection:
        assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)
        assert connection.execute("SHOW pgtrial_test.text").fetchone() == (strange,)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shared_bufers": "1GB"}, 'unrecognized configuration parameter "shared_bufers"'),
        ({"work_mem": "plenty"}, 'invalid value for parameter "work_mem": "plenty"'),
        ({"shared_buffers": "900TB"}, "900TB"),
    ],
)
def test_a_refused_setting_is_told_in_postgresqls_words(start_cluster, settings, words):
    with pytest.raises(ArmError) as error:
        start_cluster(settings=settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_port_in_use_is_told(start_cluster, free_port):
    with socket.create_server(("127.0.0.1", free_port)), pytest.raises(ArmError, match="Address already in use"):
        start_cluster(settings={"listen_addresses": "127.0.0.1", "port": str(free_port)})


def test_a_socket_in_use_is_told(start_cluster, workspace):
    first = start_cluster()
    second = start_cluster()
    second.stop()
    taken = replace(second, socket_directory=first.socket_directory)
    with pytest.raises(ArmError, match="Is another postmaster"):
        taken.start(workspace.directory("taken").with_suffix(".log"))


def test_root_is_refused_in_one_sentence(workspace):
    require_root()
    server = workspace.reachable(require_server(18))
    as_root = copy.copy(workspace)
    as_root.account = None
    with pytest.raises(ArmError, match="cannot be run as root"):
        create_cluster(as_root, server, workspace.directory("as-root"))


def test_a_wrong_initdb_option_is_told_in_initdbs_words(workspace):
    server = workspace.reachable(require_server(18))
    with pytest.raises(ArmError, match="unrecognized option '--no-such-option'"):
        create_cluster(workspace, server, workspace.directory("bad"), ["--no-such-option"])


def test_stopping_does_not_hang_and_leaves_no_process_when_the_postmaster_was_killed(start_cluster):
    cluster = start_cluster()
    with cluster.target.connect_as_user():
        postmaster = int((cluster.data_directory / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)
        cluster.stop()
    assert server_processes(cluster.data_directory) == []


def test_the_shared_memory_of_a_killed_postmaster_is_freed(start_cluster):
    require(sys.platform == "linux", "Linux")
    cluster = start_cluster()
    words = (cluster.data_directory / "postmaster.pid").read_text().split("\n")
    postmaster, (key, identifier) = int(words[0]), words[6].split()
    maps = Path(f"/proc/{postmaster}/maps").read_text()
    segments = {Path(name) for name in re.findall(r"/dev/shm/PostgreSQL\.\d+", maps)}
    assert segments
    os.kill(postmaster, signal.SIGKILL)
    cluster.stop(immediate=True)
    assert not [segment for segment in segments if segment.exists()]
    assert not re.search(rf"^\s*{key}\s+{identifier}\s", Path("/proc/sysvipc/shm").read_text(), re.MULTILINE)


def test_a_server_that_dies_while_it_starts_leaves_no_process(start_cluster, workspace):
    cluster: Cluster = start_cluster()
    cluster.stop()
    (cluster.data_directory / "global" / "pg_control").unlink()
    with pytest.raises(ArmError, match="pg_control"):
        cluster.start(workspace.directory("dying").with_suffix(".log"))
    assert server_processes(cluster.data_directory) == []


def test_ctrl_c_of_the_lab_does_not_reach_the_server(cluster):
    postmaster = psutil.Process(int((cluster.data_directory / "postmaster.pid").read_text().split()[0]))
    assert postmaster.ppid() == os.getpid()
    assert os.getsid(postmaster.pid) != os.getsid(0)
    assert postmaster.status() != psutil.STATUS_ZOMBIE
