"""Volumes of arms on real loop devices: made, verified, and gone afterwards, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.kernel import KernelValue, read_value, sysctl_path
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.volumes import (
    LoopDevice,
    Pool,
    PrivateDirectory,
    Signature,
    mount_of,
    mounted_at,
    mountinfo,
    mounts,
    private_name,
)
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.study.servers import server_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.storage import Storage, Volume
from pgtrial.servers.machine_state import MachineState
from pgtrial.servers.volumes import Volumes
from tests.conftest import require, require_root
from tests.machine import machine

pytestmark = pytest.mark.machine


MB = 1_000_000
SIZES = {"ext4": 64 * MB, "xfs": 320 * MB, "btrfs": 128 * MB, "tmpfs": 16 * MB}


def require_filesystem(kind):
    require_root()
    require(kind == "tmpfs" or shutil.which(f"mkfs.{kind}"), f"mkfs.{kind}")
    known = Path("/proc/filesystems").read_text().split()
    require(kind in known or subprocess.run(["modprobe", kind], check=False).returncode == 0, f"a kernel with {kind}")


def mounted_over(path):
    return mount_of(path.resolve(), mountinfo(LOCAL))


@pytest.fixture
def changes(workspace, host):
    """Returns a journal of the run's changes to the machine, for each of the two kinds of machine."""
    return HostJournal(workspace.root, host)


@pytest.fixture
def untouched(workspace):
    before = machine(workspace.state) if os.geteuid() == 0 else None
    yield
    assert before is None or machine(workspace.state) == before


@pytest.mark.server
@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("kind", "options", "shown"),
    [
        ("ext4", ["noatime", "nobarrier"], "nobarrier"),
        ("xfs", ["noatime"], "noatime"),
        ("btrfs", ["noatime", "nodatacow"], "nodatacow"),
        ("tmpfs", ["noatime"], "noatime"),
    ],
)
def test_a_volume_is_what_was_asked_for_and_gone_afterwards(workspace, changes, kind, options, shown):
    require_filesystem(kind)
    volumes = Volumes("A", Storage(fs=kind, size=SIZES[kind], mount=options), changes)
    volumes.check(1)
    for _ in range(2):
        with volumes.made() as place:
            mounted = mounted_over(place.data.parent)
            assert mounted is not None
            assert (mounted.filesystem, shown in mounted.options) == (kind, True)
            assert workspace.run(["test", "-x", place.data.parent]).status == 0
            place.data.mkdir()
            (place.data / "x").write_bytes(b"x" * 4096)
        assert not place.data.exists()


@pytest.mark.server
@pytest.mark.usefixtures("untouched")
def test_the_wal_can_have_a_volume_of_its_own(changes):
    require_filesystem("ext4")
    storage = Storage(fs="ext4", size=SIZES["ext4"], wal={"fs": "tmpfs", "size": "16MB"})
    with Volumes("A", storage, changes).made() as place:
        assert place.wal is not None
        kinds = [found.filesystem for path in (place.data, place.wal) if (found := mounted_over(path.parent))]
    assert kinds == ["ext4", "tmpfs"]


@pytest.mark.server
@pytest.mark.usefixtures("untouched")
def test_an_option_that_the_kernel_refuses_is_an_error_in_its_words(changes):
    require_filesystem("ext4")
    volumes = Volumes("A", Storage(fs="ext4", size=SIZES["ext4"], mount=["nonsense"]), changes)
    with pytest.raises(StudyError, match="ext4 cannot be mounted with the options nonsense"):
        volumes.check(1)


@pytest.mark.server
@pytest.mark.usefixtures("untouched")
def test_an_option_that_is_taken_but_not_in_force_is_an_error(changes):
    require_filesystem("tmpfs")
    storage = Storage(fs="tmpfs", size="16MB", mount=["nofail"])
    with pytest.raises(ArmError, match="nofail is not in force"), Volumes("A", storage, changes).made():
        pass


@pytest.mark.server
def test_data_that_does_not_fit_its_volume_is_refused_before_the_first_trial(changes):
    require_root()
    with pytest.raises(StudyError, match="does not hold the data"):
        Volumes("A", Storage(fs="ext4", size="64MB"), changes).check(10**9)
    with pytest.raises(StudyError, match=r"storage\.wal: size = 8 MB does not hold the WAL, which needs about 64 MB;"):
        Volumes("A", Storage(fs="ext4", size="1GB", wal={"fs": "tmpfs", "size": "8MB"}), changes).check(1, 64 * MB)


@pytest.mark.server
def test_a_size_beyond_the_free_space_is_refused_with_the_figures(changes):
    require_root()
    with pytest.raises(StudyError, match=r"9000000\.0 GB does not fit"):
        Volumes("A", Storage(fs="ext4", size="9000000GB"), changes).check(1)


@pytest.fixture
def somebodys_disk(untouched, tmp_path):
    """Yields a loop device with a file system that pgtrial did not make."""
    require_filesystem("ext4")
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(max(SIZES.values()))
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.server
@pytest.mark.usefixtures("untouched")
def test_a_detached_loop_device_that_somebody_still_looks_into_is_not_taken_for_the_next_one(host, tmp_path):
    require_filesystem("ext4")
    file = tmp_path / "disk"
    host.allocate(file, MB)
    loop = LoopDevice(file=file)
    loop.make(host)
    first = loop.device(host)
    assert first is not None
    with first.open("rb"):
        loop.undo(host)
        assert loop.device(host) is None
        loop.make(host)
        try:
            assert loop.device(host) not in (None, first)
        finally:
            loop.undo(host)


def held(device):
    return subprocess.check_output(["wipefs", "--noheadings", "--output", "TYPE", device], text=True).split()


@pytest.mark.server
@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
def test_a_device_that_holds_something_is_not_touched_without_leave(changes, somebodys_disk, fs):
    require_filesystem(fs)
    with pytest.raises(StudyError, match="contains ext4"):
        Volumes("A", Storage(fs=fs, on=somebodys_disk), changes).check(1)
    allowed = Volumes("A", Storage(fs=fs, on=somebodys_disk, overwrite=True), changes)
    allowed.check(1)
    with allowed.made(), pytest.raises(StudyError, match="is in use: mounted at"):
        allowed.check(1)
    assert held(somebodys_disk) == []


@pytest.mark.server
def test_a_disk_that_has_got_the_name_of_the_device_since_keeps_what_it_holds(somebodys_disk):
    signature = Signature(device=Path(somebodys_disk), uuid=str(uuid.uuid4()), make_command=("true",))
    signature.make(LOCAL)
    signature.undo(LOCAL)
    assert held(somebodys_disk) == ["ext4"]


@pytest.mark.server
def test_a_directory_is_used_as_it_is_and_left_as_it_was(changes, disk_path):
    volumes = Volumes("A", Storage(on=str(disk_path)), changes)
    volumes.check(1)
    with volumes.made() as place:
        place.data.mkdir()
        assert place.data.is_relative_to(disk_path)
    assert list(disk_path.iterdir()) == []
    mounted = mounted_over(disk_path)
    assert mounted is not None
    wrong = "xfs" if mounted.filesystem != "xfs" else "ext4"
    with pytest.raises(StudyError, match=f"but the study asks for {wrong}"):
        Volumes("A", Storage(fs=wrong, on=str(disk_path)), changes).check(1)


@pytest.mark.server
def test_root_works_in_no_directory_that_another_account_could_exchange(changes, disk_path):
    require_root()
    theirs = disk_path / "theirs"
    (theirs / "data").mkdir(parents=True)
    (disk_path / "link").symlink_to(theirs / "data")
    shutil.chown(theirs, "nobody")
    for place in (theirs, theirs / "data", disk_path / "link"):
        with pytest.raises(StudyError, match=r"theirs belongs to another account, which could exchange .*; name a dir"):
            Volumes("A", Storage(on=str(place)), changes).check(1)
    with pytest.raises(StudyError, match=r"arms\.A: .*theirs belongs to another account"):
        Volumes("A", Storage(on=str(disk_path), wal=Volume(on=[str(theirs)])), changes).check(1)
    assert sorted(disk_path.rglob("*")) == [disk_path / "link", theirs, theirs / "data"]


@pytest.mark.server
def test_root_removes_nothing_where_a_directory_was_exchanged(changes, disk_path):
    require_root()
    place, elsewhere = disk_path / "place", disk_path / "elsewhere"
    place.mkdir()
    change = PrivateDirectory(path=place / private_name())
    entry = changes.make(change)
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    shutil.chown(elsewhere, "nobody")
    with pytest.raises(HostError, match="elsewhere belongs to another account, which could exchange"):
        changes.undo(entry)
    assert (elsewhere / change.path.name).is_dir()
    shutil.chown(elsewhere, "root")
    changes.undo(entry)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.server
def test_each_place_of_a_list_is_checked_and_the_one_that_was_drawn_is_used(changes, disk_path):
    first, second = disk_path / "first", disk_path / "second"
    first.mkdir()
    volumes = Volumes("A", Storage(on=[str(first), str(second)]), changes)
    with pytest.raises(StudyError, match=f"the directory {second} does not exist"):
        volumes.check(1)
    second.mkdir()
    volumes.check(1)
    for number, directory in enumerate((first, second)):
        with volumes.made(number) as place:
            assert place.data.is_relative_to(directory)


@pytest.mark.server
def test_making_a_filesystem_without_root_is_refused_in_one_sentence(changes, monkeypatch):
    monkeypatch.setattr(type(changes.machine), "root", False)
    with pytest.raises(StudyError, match=r"makes a filesystem, which only root may do; (run pgtrial|log in) as root"):
        Volumes("A", Storage(fs="ext4"), changes).check(1)


def test_a_kernel_value_is_set_and_put_back(host):
    require_root()
    path = sysctl_path("vm.swappiness")
    before = read_value(LOCAL, "vm.swappiness", path)
    change = KernelValue.planned(host, "vm.swappiness", path, "17")
    try:
        change.make(host)
        assert read_value(LOCAL, "vm.swappiness", path) == "17"
    finally:
        change.undo(host)
    assert read_value(LOCAL, "vm.swappiness", path) == before


def test_a_value_that_stands_in_place_of_another_is_put_back_by_that_one(host):
    require_root()
    name, other = "vm.dirty_background_bytes", "vm.dirty_background_ratio"
    before = {each: read_value(LOCAL, each, sysctl_path(each)) for each in (name, other)}
    change = KernelValue.planned(host, name, sysctl_path(name), "209715200")
    try:
        change.make(host)
        assert read_value(LOCAL, other, sysctl_path(other)) == "0"
    finally:
        KernelValue.model_validate(change.model_dump(mode="json")).undo(host)
    assert {each: read_value(LOCAL, each, sysctl_path(each)) for each in (name, other)} == before


@pytest.mark.server
def test_a_value_that_has_no_way_back_is_not_changed_and_leaves_nothing_to_undo(changes):
    require_root()
    before = changes.journal.pending()
    state = MachineState("A", server_of(SetUp(), SetUp(sysctl={"kernel.osrelease": "1"})), changes)
    with (
        pytest.raises(TrialError, match=r"kernel\.osrelease could not be restored after a change"),
        state.in_force(Path("/"), 0),
    ):
        pass
    assert changes.journal.pending() == before


@pytest.mark.server
def test_without_files_of_the_kernel_its_parameters_are_set_by_sysctl_and_put_back(changes, monkeypatch):
    require_root()
    require(shutil.which("sysctl"), "sysctl")
    exists = changes.machine.exists
    monkeypatch.setattr(changes.machine, "exists", lambda path: path != Path("/proc/sys") and exists(path))
    path = sysctl_path("vm.swappiness")
    before = read_value(LOCAL, "vm.swappiness", path)
    state = MachineState("A", server_of(SetUp(), SetUp(sysctl={"vm.swappiness": "17"})), changes)
    state.check()
    with state.in_force(Path("/"), 0):
        latest = max((changes.run / "changes").glob("*.json"))
        assert json.loads(latest.read_text())["kind"] == "Parameter"
        assert read_value(LOCAL, "vm.swappiness", path) == "17"
    assert read_value(LOCAL, "vm.swappiness", path) == before
    with pytest.raises(StudyError, match=r"arms\.A: `sysctl -n vm\.nonsense` failed"):
        MachineState("A", server_of(SetUp(), SetUp(sysctl={"vm.nonsense": "1"})), changes).check()


def test_a_value_that_the_kernel_refuses_is_an_error_in_its_words(host):
    require_root()
    path = sysctl_path("vm.swappiness")
    with pytest.raises(HostError, match=r"cannot set vm\.swappiness to 'much' .*: Invalid argument"):
        KernelValue.planned(host, "vm.swappiness", path, "much").make(host)


def test_of_a_list_of_choices_the_one_in_brackets_is_in_force(host, tmp_path):
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    assert read_value(host, "thp", tmp_path / "enabled") == "madvise"
    with pytest.raises(HostError, match=r"this kernel has no vm\.nonsense"):
        read_value(host, "vm.nonsense", sysctl_path("vm.nonsense"))


def test_mounts_are_read_as_the_kernel_writes_them():
    text = (
        "36 35 98:0 / /mnt\\040two rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
        "37 35 0:5 / /mnt\\040two rw - tmpfs none rw,size=5k\n"
    )
    mounted = mounted_at(Path("/mnt two"), text)
    assert mounted is not None
    assert (mounted.filesystem, mounted.options, mounted.device) == ("tmpfs", ("rw", "size=5k"), "0:5")


def test_mounts_are_read_as_other_systems_write_them():
    text = (
        "/dev/ada0p2 on / (ufs, local, noatime, soft-updates)\n"
        "devfs on /dev (devfs)\n"
        "/dev/disk3s1 on /Volumes/my disk (apfs, local, read-only, journaled)\n"
    )
    assert [(str(found.target), found.filesystem, found.options) for found in mounts(text)] == [
        ("/", "ufs", ("local", "noatime", "soft-updates", "rw")),
        ("/dev", "devfs", ("rw",)),
        ("/Volumes/my disk", "apfs", ("local", "ro", "journaled")),
    ]
    held = mount_of(Path("/var/db"), text)
    assert held is not None
    assert held.source == "/dev/ada0p2"


def test_a_pool_is_made_with_its_options_and_properties():
    pool = Pool(
        name="p", device=Path("/dev/x"), target=Path("/t"), pool_options=("ashift=12",), properties=("recordsize=8K",)
    )
    assert " ".join(pool.command()) == "zpool create -f -m /t -o ashift=12 -O recordsize=8K p /dev/x"
