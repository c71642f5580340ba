"""Numbers of processes that were given again: a stranger's process is left alone, here and behind ssh."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pgtrial.machines.machine import LOCAL, HostError, read_of_others
from pgtrial.machines.server import RunningServer
from pgtrial.model.resources import resource
from pgtrial.servers.postmaster import stop_servers_below
from tests.conftest import require_root
from tests.machines.strangers import SHELL, is_untouched

pytestmark = pytest.mark.machine


def server_of(data: Path) -> RunningServer:
    return RunningServer(bin=data, data=data, log=data / "log")


def postmaster_pid(data: Path, *lines: object) -> Path:
    data.mkdir(exist_ok=True)
    (data / "postmaster.pid").write_text("".join(f"{line}\n" for line in lines))
    return data


def test_a_stale_file_of_a_postmaster_ends_no_other_process(tmp_path, stranger):
    data = postmaster_pid(tmp_path / "data", stranger.pid, tmp_path / "data")
    server_of(data).undo(LOCAL)
    assert is_untouched(stranger)


@pytest.mark.server
def test_a_stale_file_of_a_postmaster_ends_no_other_server(tmp_path, start_cluster):
    cluster = start_cluster()
    number = (cluster.data_directory / "postmaster.pid").read_text().split()[0]
    server_of(postmaster_pid(tmp_path / "data", number, cluster.data_directory)).undo(LOCAL)
    with cluster.target.connect_as_user() as session:
        assert session.execute("SELECT 1").fetchone() == (1,)
    own = server_of(cluster.data_directory)
    own.undo(LOCAL)
    assert not psutil.pid_exists(int(number)) or psutil.Process(int(number)).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("content", ["", "x", "-1", "0", "1; touch {made}", "99999999", "-7\n/x"])
def test_a_file_of_a_postmaster_with_anything_else_ends_nothing_and_is_no_command(tmp_path, stranger, content):
    made = tmp_path / "made"
    server_of(postmaster_pid(tmp_path / "data", content.format(made=made))).undo(LOCAL)
    assert is_untouched(stranger)
    assert not made.exists()


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "device"])
def test_anything_but_a_file_in_the_place_of_a_postmasters_is_not_read(tmp_path, stranger, kind):
    """A FIFO would be waited for; a link to a file with the number of a process that works there would be believed."""
    require_root()
    data = tmp_path / "data"
    data.mkdir()
    place = data / "postmaster.pid"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "link":
            (tmp_path / "number").write_text(f"{stranger.pid}\n")
            place.symlink_to(tmp_path / "number")
        case "directory":
            place.mkdir()
        case "device":
            os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    with pytest.raises((OSError, ValueError)):
        read_of_others(place)
    server_of(data).undo(LOCAL)
    assert is_untouched(stranger)


def test_a_shell_of_root_in_a_data_directory_is_none_of_its_servers_processes(tmp_path, stranger):
    require_root()
    data = Path(psutil.Process(stranger.pid).cwd())
    (data / "postmaster.pid").write_text(f"{stranger.pid}\n")
    shutil.chown(data, "nobody")
    running = server_of(data).model_copy(update={"user": "nobody"})
    for directory in (tmp_path, *tmp_path.parents[:3]):
        directory.chmod(directory.stat().st_mode | 0o011)
    running.undo(LOCAL)
    assert stop_servers_below(data) == 0
    assert stranger.poll() is None


def test_where_nobody_can_tell_where_a_process_works_it_is_left_alone(tmp_path, stranger):
    data = postmaster_pid(tmp_path / "data", stranger.pid)
    script = f"{SHELL}works_in() {{ :; }}\n{resource('machines/end_server.sh', 'pgtrial')}"
    done = subprocess.run(["sh", "-c", script, "sh", data / "postmaster.pid", data], check=False)
    assert done.returncode == 3
    assert is_untouched(stranger)

    class Mute:
        label = "host"

        def run(self, _command, **_options):
            return SimpleNamespace(status=3)

    with pytest.raises(
        HostError,
        match=r"cannot tell whether the process in .*postmaster\.pid is the server; end the server there yourself",
    ):
        server_of(data).undo(Mute())
