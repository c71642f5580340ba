"""The servers' account exchanges a file or a directory of its own between root's look at it and root's act."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from contextlib import contextmanager

import pytest

from pgtrial.evidence.collect import flush
from pgtrial.evidence.collect.collect import collect
from pgtrial.evidence.collect.storage import wal_elsewhere
from pgtrial.evidence.collect.subject import Subject
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arms import make_arms
from pgtrial.servers.run_directory import copy_directory, servers_account
from tests.conftest import require_root
from tests.machines.shell import ShellMachine
from tests.servers.intruder import as_account, victim

pytestmark = [pytest.mark.server, pytest.mark.machine]


@pytest.fixture
def target(fresh_state):
    require_root()
    with victim(fresh_state / "victim") as found:
        yield found


@pytest.fixture
def before(fresh_state, monkeypatch):
    """Returns a function that makes a program run a line of shell first: `before("cp", "mv a b")`."""
    programs = fresh_state / "programs"
    programs.mkdir(mode=0o755)

    def hooked(program, words):
        real = shutil.which(program)
        (programs / program).write_text(f'#!/bin/sh\n{words}\nexec {real} "$@"\n')
        (programs / program).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    return hooked


@contextmanager
def at_the_opening(account, file, act):
    """Calls `act` as the account at the moment when another process opens the account's file. A lease makes that
    process wait (fcntl(2)).
    """

    def hold():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
        descriptor = os.open(file, os.O_WRONLY)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(begun, b"x")
        assert signal.sigtimedwait([signal.SIGIO], 60) is not None, f"nobody has opened {file}"
        act()

    waiting, begun = os.pipe()
    enemy = threading.Thread(target=lambda: as_account(account, hold))
    enemy.start()
    os.read(waiting, 1)
    yield
    enemy.join()
    os.close(waiting)
    os.close(begun)


def test_a_directory_that_is_exchanged_while_it_is_copied_shows_nothing_of_roots(
    workspace, fresh_state, target, before
):
    data = workspace.private_directory(fresh_state / "data")
    wal, tree = data / "pg_wal", data / "tree"
    inner = tree / "inner"

    def lay():
        inner.mkdir(parents=True)
        for name in ("first", "secret"):  # cp takes them in the order in which they were made
            (inner / name).write_text("the account's own")
        wal.symlink_to(target.directory)

    def exchange():
        (wal / "inner").rename(wal / "was")
        (wal / "inner").symlink_to(target.directory)

    as_account(workspace.account, lay)
    # what is not the account's when root looks is the account's when it is copied
    before("cp", f"case $* in *--help*) ;; *) rm {wal} && mv {tree} {wal} ;; esac")
    with (
        at_the_opening(workspace.account, inner / "first", exchange),
        pytest.raises(ArmError, match=r"inner/secret.*Permission denied"),
    ):
        copy_directory(workspace, wal, fresh_state / "copied")
    assert not (fresh_state / "copied").exists()


def test_a_file_that_is_exchanged_between_two_flushes_has_root_write_nowhere(workspace, fresh_state, target, before):
    data = workspace.private_directory(fresh_state / "data")
    seen = target.state()
    secret = target.directory / "secret"
    before("dd", f'for each in {data}/*; do [ ! -s "$each" ] || {{ rm "$each"; ln -s {secret} "$each"; }}; done')
    found = flush.flush_rate(LOCAL, data, account=workspace.account)
    assert set(found.values()) == {None}
    assert target.state() == seen
    assert list(data.iterdir()) == []


def test_a_program_that_the_server_names_is_not_run_by_root(workspace, fresh_state, before):
    require_root()
    data = workspace.private_directory(fresh_state / "data")
    before("dd", "exit 1")
    program = data / "pg_test_fsync"

    def lay():
        program.write_text(f"#!/bin/sh\nid -un > {data}/ran\n")
        program.chmod(0o755)

    as_account(workspace.account, lay)
    flush.flush_rate(LOCAL, data, program, workspace.account)
    assert (data / "ran").read_text().strip() == workspace.account


def test_the_arms_of_the_lab_are_measured_as_their_servers_account(workspace, tmp_path, monkeypatch):
    require_root()
    accounts = []
    monkeypatch.setattr(flush, "flush_rate", lambda *words: accounts.append(words[-1]) or {})
    spec = StudySpec.model_validate({"load": {"scale": 1, "clients": 1}, "arms": {"a": {}, "b": {}}})
    arm = make_arms(Design(spec), workspace)["a"]
    with arm.serve(NO_TABLES, tmp_path / "log", {}) as server:
        collect("a", server, arm.data_directory, machine=arm.machine, account=arm.account, measure=True)
    assert accounts == [workspace.account]


@pytest.mark.parametrize("kind", ["a pipe", "a link to a file of root's"])
def test_what_is_in_the_place_of_the_wals_directory_is_not_read(workspace, fresh_state, target, kind):
    data = workspace.private_directory(fresh_state / "data")
    if kind == "a pipe":
        os.mkfifo(data / "pg_wal")
    else:
        (data / "pg_wal").symlink_to(target.directory / "secret")
    files = Subject(None, data, LOCAL, ours=True, account=workspace.account).host
    wal_elsewhere(files, data)
    assert files.read(data / "pg_wal") is None


def test_on_a_host_root_removes_no_directory_in_which_another_account_could_exchange_something(fresh_state, before):
    require_root()
    account = servers_account(LOCAL)
    run, log = fresh_state / "run", fresh_state / "log"
    for name in ("001-data", "changes"):
        (run / name).mkdir(parents=True)
    data = run / "001-data"
    shutil.chown(data, account)

    def lay():
        (data / ".hidden").mkdir()
        (data / "locked" / "below").mkdir(parents=True)
        (data / "locked").chmod(0)

    as_account(account, lay)
    before("rm", f'[ "$(id -u)" != 0 ] || find "$@" -user {account} >> {log} 2>/dev/null')
    machine = ShellMachine()
    machine.remove_tree(run)
    assert not run.exists()
    assert log.read_text() == ""
    # what the account goes on filling stays, with the run directory, and whoever removes that looks whether it is gone
    run.mkdir()
    data.mkdir()
    shutil.chown(data, account)
    before("rmdir", f"touch {data}/again; chown {account} {data}/again")
    machine.remove_tree(run)
    assert (data / "again").exists()
    assert log.read_text() == ""
