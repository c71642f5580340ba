"""A machine does the same whether the lab is on it or reaches it by a shell."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pgtrial.machines.cpus import usable_cpus
from pgtrial.machines.machine import LOCAL, Done, HostError, HostLost
from pgtrial.machines.volumes import Mount, Pool, mountinfo
from pgtrial.servers.run_directory import servers_account
from tests.conftest import require_root
from tests.machines.kernel_files import with_kernel_files
from tests.machines.shell import ShellMachine

pytestmark = pytest.mark.machine


ODD = 'it\'s "odd" $HOME `x` *?[a] \\n #;&'
TEXTS = ["", "one", "one\n", "no end\nof line", f"{ODD}\n", "ä€😀\n\n", "x" * 300_000, "line\n" * 40_000]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("durable", [False, True])
def test_what_is_written_is_read_again_to_the_last_character(host, tmp_path, text, durable):
    path = tmp_path / ODD
    for _ in range(2):
        host.write_text(path, text, durable=durable)
        assert path.read_text() == host.read_text(path) == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_mode_that_was_asked_for_whatever_it_had(host, tmp_path):
    path = tmp_path / "x"
    for durable, mode in ((False, 0o600), (False, 0o644), (True, 0o640), (True, 0o600)):
        host.write_text(path, "x", mode=mode, durable=durable)
        assert path.stat().st_mode & 0o777 == mode
        assert path.read_text() == "x"


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (lambda host, folder: host.read_text(folder / "absent"), FileNotFoundError),
        (lambda host, folder: host.read_text(folder), IsADirectoryError),
        (lambda host, folder: host.write_text(folder / "absent" / "x", "x"), FileNotFoundError),
        (lambda host, folder: host.write_text(folder / "absent" / "x", "x", mode=0o600), FileNotFoundError),
        (lambda host, folder: host.write_text(folder / "absent" / "x", "x", durable=True), FileNotFoundError),
        (lambda host, folder: host.mkdir(folder), FileExistsError),
        (lambda host, folder: host.mkdir(folder / "absent" / "x"), FileNotFoundError),
        (lambda host, folder: host.rmdir(folder / "absent"), FileNotFoundError),
        (lambda host, folder: host.unlink(folder), IsADirectoryError),
        (lambda host, folder: host.allocate(folder / "full", 1), FileExistsError),
        (lambda host, folder: host.free_bytes(folder / "absent"), FileNotFoundError),
    ],
)
def test_a_file_that_refuses_is_the_same_error_as_of_path(host, tmp_path, attempt, error):
    (tmp_path / "full").touch()
    with pytest.raises(error):
        attempt(host, tmp_path)


def test_a_directory_that_is_not_empty_is_not_removed(host, tmp_path):
    with pytest.raises(OSError, match="Directory not empty"):
        host.rmdir(tmp_path.parent)


def test_many_files_are_read_at_once_and_those_that_are_absent_left_out(host, tmp_path):
    texts = {tmp_path / str(number): text for number, text in enumerate(TEXTS[:6])}
    for path, text in texts.items():
        path.write_text(text)
    before = getattr(host, "round_trips", 0)
    assert host.read_many([tmp_path / "absent", *texts, tmp_path, Path("/proc/absent")]) == texts
    assert getattr(host, "round_trips", 1) == before + 1


def test_directories_are_made_with_their_mode_and_removed_with_what_is_in_them(host, tmp_path):
    former = os.umask(0o077)
    try:
        host.mkdir(tmp_path / ODD, 0o751)
        host.mkdir(tmp_path / ODD / "a" / "b", 0o711, parents=True)
        host.mkdir(tmp_path / ODD / "a" / "b", 0o700, parents=True)
    finally:
        os.umask(former)
    modes = [(tmp_path / ODD / name).stat().st_mode & 0o777 for name in ("", "a/b")]
    assert modes == [0o751, 0o711]
    host.write_text(tmp_path / ODD / "a" / "b" / "x", "x")
    assert host.exists(tmp_path / ODD / "a" / "b" / "x")
    for _ in range(2):
        host.remove_tree(tmp_path / ODD)
        host.unlink(tmp_path / "x")
    assert not host.exists(tmp_path / ODD)


def test_commands_run_at_the_same_time_and_each_says_how_it_ended(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    wait, wake = ["cat", tmp_path / "pipe"], ["sh", "-c", 'echo x > "$1"; exit 3', "sh", tmp_path / "pipe"]
    wanted = [(0, "x\n", ""), (3, "", ""), (137, "", "no\n")]
    ended = LOCAL.run_at_once([wait, wake, ["sh", "-c", "echo no >&2; kill -9 $$"]])
    assert [(done.status, done.stdout, done.stderr) for done in ended] == wanted


def test_where_one_of_several_commands_cannot_start_none_goes_on(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HostError, match="no-such-program is not installed on this machine"):
        LOCAL.run_at_once([["cat", tmp_path / "pipe"], ["no-such-program"]])
    with pytest.raises(OSError, match="No such device"):  # nobody reads from it
        os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)


def test_a_pattern_finds_what_a_shell_finds(host, tmp_path):
    home = tmp_path / "it's here"
    home.mkdir()
    for name in ("cpu0", "cpu1", "cpu10", "cpux", ".cpu2", "a b"):
        (home / name).touch()
    found = {pattern: [path.name for path in host.glob(f"{home}/{pattern}")] for pattern in ("*", "cpu[0-9]*", "no*")}
    assert found == {"*": ["a b", "cpu0", "cpu1", "cpu10", "cpux"], "cpu[0-9]*": ["cpu0", "cpu1", "cpu10"], "no*": []}


def test_links_are_followed_to_directories_files_and_what_is_not_there(host, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "to-file").symlink_to("link/file")
    for name, end in (("link", "real"), ("to-file", "real/file"), ("link/new", "real/new")):
        assert host.resolve(tmp_path / name) == tmp_path.resolve() / end


def test_files_are_made_with_their_blocks_or_without(host, tmp_path):
    host.allocate(tmp_path / "full", 1_000_001)
    host.allocate(tmp_path / "sparse", 1_000_001, sparse=True)
    full, sparse = ((tmp_path / name).stat() for name in ("full", "sparse"))
    assert full.st_size == sparse.st_size == 1_000_001
    assert full.st_blocks > sparse.st_blocks


def test_free_space_is_that_of_the_file_system_in_bytes(host):
    # of a file system that nobody writes to
    assert host.free_bytes(Path("/proc")) == 0
    told = os.statvfs("/dev")
    assert host.free_bytes(Path("/dev")) == pytest.approx(told.f_bavail * told.f_frsize, rel=0.1)


def test_a_command_tells_its_status_and_both_outputs_and_reads_what_it_is_given(host):
    done = host.run(["sh", "-c", 'cat; printf "%s" "$1" >&2; exit 7', "x", ODD], text_in="first\nlast")
    assert (done.status, done.stdout, done.stderr) == (7, "first\nlast", ODD)
    assert host.run(["cat"]).stdout == ""
    assert host.run(["sh", "-c", "kill -9 $$"]).status == 137
    assert host.run(["pwd"]).stdout == "/\n"
    assert host.run(["cat", "/absent"]).stderr == "cat: /absent: No such file or directory\n", "in English"


def test_a_tool_that_fails_or_is_not_there_is_an_error_in_one_sentence(host):
    assert host.tool(["printf", "%s", ODD]) == ODD
    with pytest.raises(HostError, match=r"^`ls /absent` failed.*: ls: cannot access '/absent': No such file"):
        host.tool(["ls", "/absent"])
    local, remote = (
        "the program {} is not installed on this machine; install",
        "{} is not installed on somebody@somewhere",
    )
    for word in ("pgtrial-absent", "/absent/tool"):
        with pytest.raises(HostError, match=f"^{(local if host is LOCAL else remote).format(word)}"):
            host.run([word, "x"])


class Gone(ShellMachine):
    """A machine that is lost."""

    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        del script, timeout_s
        raise HostLost("it is gone")


@pytest.mark.parametrize(
    "attempt",
    [
        mountinfo,
        lambda machine: Mount(filesystem="ext4", source="/dev/a", target=Path("/a")).make(machine),
        lambda machine: Pool(name="a", device=Path("/dev/a"), target=Path("/a")).undo(machine),
    ],
)
def test_a_machine_that_is_lost_is_never_taken_for_one_that_refuses(attempt):
    with pytest.raises(HostLost, match=r"^it is gone$"):
        attempt(Gone())


def test_a_command_that_does_not_end_in_time_is_an_error(host):
    with pytest.raises(HostError, match=r"did not end within 0\.1 s"):
        host.run(["sleep", "1000"], timeout_s=0.1)


def test_root_runs_commands_as_another_user(host, tmp_path):
    require_root()
    assert host.root
    assert host.run(["id", "-un"], user="nobody").stdout == "nobody\n"
    assert host.run(["sh", "-c", "cat; exit 3"], text_in=ODD, user="nobody").stdout == ODD
    assert host.run(["sh", "-c", "exit 3"], user="nobody").status == 3
    with pytest.raises(HostError, match=r"there is no user pgtrial-absent on (this machine|somebody@somewhere)"):
        host.run(["true"], user="pgtrial-absent")
    host.chown(tmp_path, "nobody")
    entry = pwd.getpwnam("nobody")
    assert (tmp_path.stat().st_uid, tmp_path.stat().st_gid) == (entry.pw_uid, entry.pw_gid)


def test_the_usable_cpus_are_those_of_the_process(host):
    assert usable_cpus(host) == os.sched_getaffinity(0)


def test_a_cpu_that_is_off_is_not_usable(host, tmp_path):
    first = min(os.sched_getaffinity(0))
    (tmp_path / "online").write_text(f"{first},1000-1001\n")
    machine = with_kernel_files(host, {"/sys/devices/system/cpu": tmp_path})
    assert usable_cpus(machine) == {first}


def test_a_script_that_is_cut_off_does_nothing(tmp_path):
    scripts: list[str] = []

    class Cut(ShellMachine):
        def sh(self, script, *, timeout_s=None):
            scripts.append(script)
            return super().sh(script[: len(script) - 2], timeout_s=timeout_s)

    (tmp_path / "kept").touch()
    Cut().remove_tree(tmp_path)
    assert scripts
    assert (tmp_path / "kept").exists()


@pytest.fixture
def sudo(tmp_path, monkeypatch):
    """Returns a function that sets the script of a command in place of sudo, since a test cannot give itself the right
    to use the real one.
    """
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def behaves(script):
        path = tmp_path / "sudo"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return behaves


def test_with_sudo_root_changes_and_reads_only_what_is_not_for_the_account(sudo, tmp_path):
    log = tmp_path / "log"
    sudo(f'echo "$*" >> {log}; while [ "$1" != /bin/sh ]; do shift; done; exec "$@"')
    machine = ShellMachine(sudo=True)
    assert machine.root
    machine.write_text(tmp_path / "x", "x\n")
    assert machine.run(["cat"], text_in="in", user="nobody").stdout == "in"
    assert log.read_text() == "-n /bin/sh -s\n-n -u nobody /bin/sh -s\n"
    assert machine.read_text(tmp_path / "x") == "x\n"
    assert machine.read_many([tmp_path / "x"]) == {tmp_path / "x": "x\n"}
    with pytest.raises(FileNotFoundError):
        machine.read_text(tmp_path / "absent")
    assert log.read_text().count("\n") == 2


def test_a_sudo_that_refuses_is_one_sentence_that_says_what_to_do(sudo, tmp_path):
    sudo('echo "sudo: a password is required" >&2; exit 1')
    machine = ShellMachine(sudo=True)
    for attempt in (
        lambda: machine.tool(["true"]),
        lambda: machine.mkdir(tmp_path / "x"),
        lambda: machine.exists(tmp_path),
        lambda: machine.run(["true"], user="nobody", text_in="x" * 300_000),
    ):
        with pytest.raises(
            HostError,
            match=r"^sudo on somebody@somewhere does not make \w+ root without a password \(sudo: a password is "
            r"required\); allow that in its sudoers \(NOPASSWD: ALL\), or log in as root$",
        ):
            attempt()
    assert not (tmp_path / "x").exists()


def test_without_root_nothing_runs_as_another_user(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "id").write_text('#!/bin/sh\n[ "$*" = -u ] && echo 1000 || echo somebody\n')
    (tmp_path / "id").chmod(0o755)
    machine = ShellMachine()
    assert not machine.root
    with pytest.raises(
        HostError, match=r"only root may run .* user nobody on \S+; log in as root, or write sudo = true"
    ):
        machine.run(["true"], user="nobody")


def test_programs_of_another_account_have_no_token_of_the_callers(monkeypatch):
    require_root()
    for name in ("AWS_SECRET_ACCESS_KEY", "GH_TOKEN", "PGPASSWORD"):
        monkeypatch.setenv(name, "t0ken")
    account = servers_account(LOCAL)
    assert account is not None
    assert "t0ken" not in LOCAL.run(["env"], user=account).stdout
    assert "GH_TOKEN=t0ken" in LOCAL.run(["env"]).stdout
