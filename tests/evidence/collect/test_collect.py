"""Facts of real servers and of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pgtrial.evidence.collect.collect import GROUPS, collect, collect_machine
from pgtrial.evidence.collect.files import MachineFiles
from pgtrial.evidence.collect.hardware import cpu
from pgtrial.evidence.collect.operating_system import operating_system
from pgtrial.evidence.collect.storage import describe
from pgtrial.evidence.collect.subject import Subject
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.volumes import mount_of
from pgtrial.model.records.facts import Facts
from tests.conftest import require

pytestmark = pytest.mark.machine


_TABLE = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 254:16 / /var/lib/pg\\040data rw,noatime shared:5 - xfs /dev/vdb rw,nobarrier
41 27 0:30 / /var/lib/pg rw - tmpfs tmpfs rw
42 40 254:32 / /var/lib/pg\\040data rw,noatime - btrfs /dev/vdc rw
damaged line
"""


@pytest.mark.server
def test_every_version_tells_its_facts(cluster):
    facts = collect("A", cluster.target, cluster.data_directory)
    assert tuple(facts.facts) == GROUPS
    server = facts.facts["server"]
    assert server["version"] == cluster.server.version
    assert server["debug_assertions"] in ("on", "off")
    assert server["data_checksums"] == ("on" if cluster.server.major >= 18 else "off")
    assert server["block_size"] == "8192"
    assert server["locale_provider"] == "libc"
    assert server["collate"] == "C"
    assert server["encoding"] == "UTF8"
    assert server["build_flags"]
    assert "plpgsql 1.0" in server["extensions"]
    assert server["pending_restart"] == []
    assert facts.facts["settings"]["log_checkpoints"] == "on"
    assert facts.facts["defaults"]["work_mem"] == "4MB"
    assert facts.facts["settings"].keys().isdisjoint(facts.facts["defaults"])
    assert Facts.model_validate_json(facts.model_dump_json()) == facts


@pytest.mark.server
def test_facts_are_the_same_when_collected_twice(clusters):
    one = clusters(18)
    first, second = (collect("A", one.target, one.data_directory) for _ in range(2))
    assert first.facts == second.facts


@pytest.mark.server
def test_two_servers_of_one_kind_have_the_same_facts(clusters, start_cluster):
    """Two servers of the same kind differ only in place and start time, of which facts must say nothing."""
    one = clusters(18)
    other = start_cluster(settings=one.settings)
    assert collect("A", one.target, one.data_directory).facts == collect("A", other.target, other.data_directory).facts


@pytest.mark.server
def test_the_data_directory_of_a_server_on_this_machine_is_found_by_asking_it(clusters):
    one = clusters(18)
    assert collect("A", one.target).facts["storage"] == collect("A", one.target, one.data_directory).facts["storage"]


@pytest.mark.server
def test_a_role_without_privileges_gets_nulls_and_no_error(start_cluster):
    cluster = start_cluster()
    with cluster.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
    facts = collect("A", Target(cluster.target.host, cluster.port, "bob", "postgres")).facts
    assert facts["server"]["build_flags"] is None
    assert facts["server"]["version"] == cluster.server.version
    assert facts["settings"]["max_connections"] == "100"


def test_a_server_elsewhere_says_nothing_about_this_machine():
    elsewhere = Subject(None, None, None)
    assert cpu(elsewhere) == {}
    assert operating_system(elsewhere) == {}


def test_this_machine_is_told_without_a_server():
    require(sys.platform == "linux", "Linux")
    facts = collect_machine(Path("/")).facts
    assert facts["cpu"]["logical"] == os.cpu_count()
    assert facts["memory"]["total_mb"] > 100
    assert facts["os"]["kernel"] == os.uname().release
    assert facts["storage"]["filesystem"]
    assert facts["server"] == {}


def test_only_kernel_parameters_that_bear_on_speed_are_told():
    require(Path("/proc/cmdline").exists(), "/proc/cmdline")
    parameters = operating_system(Subject(None, None, LOCAL))["parameters"]
    assert not any(word.startswith(("root=", "console=", "init=", "BOOT_IMAGE", "--")) for word in parameters)


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/srv/x", "ext4"),
        ("/var/lib/pg data/base", "btrfs"),
        ("/var/lib/pg", "tmpfs"),
        ("/var/lib/pgother", "ext4"),
        ("/", "ext4"),
    ],
)
def test_the_mount_of_a_path_is_the_deepest_and_the_last_mounted_there(path, filesystem):
    mount = mount_of(Path(path), _TABLE)
    assert mount is not None
    assert mount.filesystem == filesystem


def test_storage_of_a_path_has_its_mount_options():
    require(Path("/proc/self/mountinfo").exists(), "Linux")
    found = describe(MachineFiles(LOCAL), Path("/proc"))
    assert found["filesystem"] == "proc"
    assert found["mount_options"].split(",")[-1] == "rw"
    assert found["device"] is None
