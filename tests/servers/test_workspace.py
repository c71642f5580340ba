"""The lab's private directories, and what a crashed lab leaves."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections import namedtuple

import psutil
import pytest

from pgtrial.model.errors import ArmError
from pgtrial.servers.leftovers import clean, leftovers
from pgtrial.servers.postmaster import server_processes
from pgtrial.servers.templates import TemplateKey, TemplateOrder
from pgtrial.servers.workspace import Workspace
from tests.conftest import require, require_root, require_server
from tests.servers.intruder import as_account

pytestmark = pytest.mark.server


_LAB = """
import sys, time
from pathlib import Path
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import resolve
from pgtrial.servers.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
server = workspace.reachable(resolve("18"))
data = workspace.directory("data")
create_cluster(workspace, server, data)
cluster = Cluster(workspace, server, data, workspace.socket_directory())
cluster.start(workspace.root / "log")
print(cluster.socket_directory, flush=True)
time.sleep(600)
"""


def _start_lab(state):
    require_server(18)
    lab = subprocess.Popen([sys.executable, "-c", _LAB, str(state)], stdout=subprocess.PIPE, text=True)
    assert lab.stdout is not None
    sockets = lab.stdout.readline().strip()
    assert sockets, "the lab did not start its server"
    return lab, sockets


def _lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_servers_and_directories_of_a_killed_lab_are_gone_after_the_next_start(fresh_state):
    lab, sockets = _start_lab(fresh_state)
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    abandoned = server_processes(fresh_state)
    assert abandoned, "the server outlives its lab"
    assert [leftover.path.parent.name for leftover in leftovers(fresh_state)] == ["runs"]

    with Workspace(fresh_state) as workspace:
        assert [path.name for path in (fresh_state / "runs").iterdir()] == [workspace.root.name]
        assert any("ended abruptly" in notice for notice in workspace.notices)
    assert not any(map(_lives, abandoned))
    assert not os.path.exists(sockets)
    assert leftovers(fresh_state) == []


def test_a_lab_that_runs_is_left_alone(fresh_state):
    lab, sockets = _start_lab(fresh_state)
    try:
        with Workspace(fresh_state) as workspace:
            assert workspace.notices == []
        assert clean(fresh_state) == []
        assert server_processes(fresh_state)
        assert os.path.exists(sockets)
    finally:
        lab.kill()
        lab.wait()
        clean(fresh_state)


def test_a_process_of_another_directory_is_never_signalled(clusters, fresh_state):
    other = clusters(18)
    abandoned = fresh_state / "runs" / "1-dead"
    data = abandoned / "data"
    data.mkdir(parents=True)
    # a stale pid file, whose number belongs to someone else by now
    (data / "postmaster.pid").write_text((other.data_directory / "postmaster.pid").read_text())
    with Workspace(fresh_state):
        assert not abandoned.exists()
    with other.target.connect_as_user() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_everything_of_a_run_is_removed_on_exit(fresh_state):
    with Workspace(fresh_state) as workspace:
        sockets = workspace.socket_directory()
        workspace.directory("x").mkdir()
    assert list((fresh_state / "runs").iterdir()) == []
    assert not sockets.exists()


def test_a_lab_that_ends_is_never_seen_without_its_lock(fresh_state, monkeypatch):
    seen = []

    def looked_at(path, **options):
        with (fresh_state / "lock").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # nobody can look for leftovers now
                seen.append(path.name)
        rmtree(path, **options)
        assert seen or (workspace.root / "lock").exists()

    with Workspace(fresh_state) as workspace:
        workspace.directory("data").mkdir()
        rmtree = shutil.rmtree
        monkeypatch.setattr(shutil, "rmtree", looked_at)
    assert seen == [workspace.root.name]
    assert not workspace.root.exists()


def test_sockets_of_a_deep_state_directory_are_in_a_short_private_one(fresh_state):
    deep = fresh_state / ("d" * 60) / ("e" * 60)
    with Workspace(deep) as workspace:
        sockets = workspace.socket_directory()
        assert len(f"{sockets}/.s.PGSQL.65535") <= 107
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert sockets.owner() == workspace.account or sockets.stat().st_uid == os.geteuid() != 0
        assert sockets.parent.stat().st_uid == os.geteuid(), "the account cannot exchange its directory"
        assert stat.S_IMODE(sockets.parent.stat().st_mode) == 0o711
    assert not sockets.parent.exists()


def test_a_state_directory_that_cannot_be_written_is_refused(fresh_state):
    (fresh_state / "file").write_text("")
    with pytest.raises(ArmError, match="set PGTRIAL_STATE"):
        Workspace(fresh_state / "file" / "state")


def test_a_state_directory_that_the_servers_user_cannot_reach_is_refused(fresh_state):
    require_root()
    closed = fresh_state / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ArmError, match="cannot reach the state directory"):
        Workspace(closed / "state")


def test_templates_are_kept_and_unfinished_ones_removed(fresh_state):
    with Workspace(fresh_state) as workspace:
        finished = workspace.templates.root / "pg18.6-s1-00000000"
        finished.mkdir()
        (finished / "template.json").write_text("{}")
        unfinished = workspace.templates.root / "pg18.6-s2-00000000"
        unfinished.mkdir()
    assert clean(fresh_state) == [f"Removed the unfinished template {unfinished}."]
    assert finished.exists()
    assert not unfinished.exists()


def test_a_disk_that_is_too_small_names_the_templates_that_could_go(fresh_state):
    with Workspace(fresh_state) as workspace:
        assert workspace.larger == "set PGTRIAL_STATE to a directory on a larger disk"
        _keep_one_megabyte(workspace)
        assert workspace.larger == "set PGTRIAL_STATE to a directory on a larger disk", "it is in use"
        workspace.templates.close()
        assert "remove templates that no study uses now (1 MB, see `pgtrial list`), or set" in workspace.larger


def test_a_nearly_full_disk_is_told_with_what_idle_templates_take(fresh_state, monkeypatch):
    def say_free(gigabytes):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(100 * 10**9, 0, gigabytes * 10**9))

    with Workspace(fresh_state) as workspace:
        say_free(5)
        assert workspace.shortage() is None
        _keep_one_megabyte(workspace)
        assert workspace.shortage() is None, "what could be removed is in use"
        workspace.templates.close()
        told = f"5.0 GB of 100 GB are free in {fresh_state}; templates that no study uses now take 1 MB: `pgtrial list`"
        assert (workspace.shortage() or "").startswith(told)
        say_free(20)
        assert workspace.shortage() is None
        monkeypatch.undo()


Usage = namedtuple("Usage", "total used free")


def _keep_one_megabyte(workspace):
    order = TemplateOrder(TemplateKey("kind", "18.6", 1), "scale 1", {}, _one_megabyte)
    workspace.templates.ensure(order, workspace.directory("staging"), print, [])


def _one_megabyte(data):
    data.mkdir()
    (data / "1").write_bytes(bytes(range(250)) * 4000)


def test_the_private_directories_admit_the_account_alone(workspace):
    require(os.name == "posix", "POSIX permissions")
    assert workspace.account not in (None, "root")
    assert workspace.run(["test", "-x", workspace.root]).status == 0
    assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o711


class TestStateOfOthers:
    """pgtrial neither follows nor removes files that another account could have put into the state directory."""

    @pytest.fixture
    def open_state(self, fresh_state):
        """Returns a state directory with modes that allow everything, as early versions of pgtrial made it under umask
        000.
        """
        require_root()
        for path in (fresh_state / "state", fresh_state / "state/runs", fresh_state / "state/templates"):
            path.mkdir()
            path.chmod(0o777)
        return fresh_state / "state"

    @staticmethod
    def strangers(path):
        path.mkdir()
        (path / "kept.txt").write_text("a stranger's")
        for each in (path, path / "kept.txt"):
            shutil.chown(each, "nobody")
        return path

    def test_modes_are_explicit_whatever_the_umask(self, fresh_state):
        before = os.umask(0)
        try:
            with Workspace(fresh_state / "a/state") as workspace:
                _keep_one_megabyte(workspace)
                made = [path for path in (fresh_state / "a").rglob("*") if not path.is_relative_to(workspace.root)]
                loose = {str(path) for path in (fresh_state / "a", *made) if path.stat().st_mode & 0o022}
                listed = [path for path in (fresh_state / "a", fresh_state / "a/state") if path.stat().st_mode & 0o044]
        finally:
            os.umask(before)
        assert not listed, "no other account lists what is in the state directory"
        assert not {path for path in loose if "/data" not in path}, "PostgreSQL sets the modes of data"

    def test_modes_of_directories_of_ones_own_are_mended(self, open_state):
        clean(open_state)
        assert {stat.S_IMODE(path.stat().st_mode) for path in (open_state, *open_state.glob("[rt]*"))} == {0o755}

    def test_a_strangers_run_is_left_alone_and_told(self, open_state):
        theirs = self.strangers(open_state / "runs/1-theirs")
        (told,) = clean(open_state)
        assert str(theirs) in told
        assert (theirs / "kept.txt").read_text() == "a stranger's"
        assert leftovers(open_state) == []

    def test_a_run_that_is_a_link_is_left_alone(self, open_state):
        theirs = open_state.parent / "elsewhere"
        theirs.mkdir()
        (theirs / "kept.txt").write_text("")
        (open_state / "runs/1-link").symlink_to(theirs)
        (told,) = clean(open_state)
        assert "1-link" in told
        assert (theirs / "kept.txt").exists()

    def test_a_strangers_template_is_refused(self, open_state):
        theirs = self.strangers(open_state / "templates/pg18-s1-00000000")
        with pytest.raises(ArmError, match="pg18-s1-00000000 belongs to another account"):
            clean(open_state)
        assert (theirs / "kept.txt").exists()

    @pytest.mark.parametrize("name", ["", "runs", "templates"])
    def test_a_directory_that_another_account_owns_is_refused(self, open_state, name):
        shutil.chown(open_state / name, "nobody")
        with pytest.raises(ArmError, match="belongs to another account"):
            Workspace(open_state)
        with pytest.raises(ArmError, match="belongs to another account"):
            clean(open_state)

    def test_a_lock_that_leads_elsewhere_is_not_followed(self, open_state):
        target = open_state.parent / "passwd"
        target.write_text("root:x:0:0")
        (open_state / "lock").symlink_to(target)
        os.chown(open_state / "lock", 65534, 65534, follow_symlinks=False)
        with pytest.raises(ArmError, match="lock belongs to another account"):
            clean(open_state)
        with pytest.raises(OSError, match="symbolic links"):
            leftovers(open_state)
        assert target.read_text() == "root:x:0:0"

    def test_no_lock_can_be_held_by_another_account(self, fresh_state):
        require_root()
        state = fresh_state / "state"
        with Workspace(state):
            pass
        (state / "lock").chmod(0o644)  # as it was once made
        with Workspace(state) as workspace:
            _keep_one_megabyte(workspace)
            locks = sorted(path for path in state.rglob("*lock") if path.is_file())
            assert len(locks) == 4  # of the state directory, the run, the template and its name

            def try_to_hold():
                for path in locks:
                    for flags in (os.O_RDONLY, os.O_WRONLY):
                        with pytest.raises(PermissionError):
                            os.close(os.open(path, flags))

            as_account("nobody", try_to_hold)

    def test_a_directory_above_that_another_account_owns_is_refused(self, open_state):
        shutil.chown(open_state.parent, "nobody")
        with pytest.raises(ArmError, match="which could exchange what root keeps below it"):
            Workspace(open_state)

    def test_no_mode_is_changed_of_a_directory_that_is_not_the_labs(self, fresh_state):
        (fresh_state / "file").write_text("")
        for mode in (0o777, 0o1777):
            fresh_state.chmod(mode)
            with pytest.raises(ArmError, match=r"can be written by other accounts.*chmod go-w"):
                Workspace(fresh_state)
            assert stat.S_IMODE(fresh_state.stat().st_mode) == mode


def test_dumps_that_no_lab_loads_are_removed(fresh_state):
    dumps = fresh_state / "dumps"
    dumps.mkdir(mode=0o700)
    for name in ("a.dump", "a.size", "b.part"):
        (dumps / name).touch()
    with Workspace(fresh_state):
        assert [path.name for path in dumps.iterdir()] == ["a.size"]
        (dumps / "c.dump").touch()
        assert clean(fresh_state) == [], "a lab runs, which may be loading it"
        assert (dumps / "c.dump").exists()
    assert clean(fresh_state) == [f"Removed the dump {dumps / 'c.dump'}, whose study has not loaded it."]
