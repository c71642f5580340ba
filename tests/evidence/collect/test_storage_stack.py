"""Block devices under a data directory, and what file systems say about themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.evidence.collect import storage
from pgtrial.evidence.collect.files import MachineFiles
from pgtrial.machines.machine import LOCAL

from .recordings import recorded

FILES = MachineFiles(LOCAL)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _disk(sys: Path, name: str, number: str, **files: str) -> Path:
    home = sys / "devices" / name
    for file, text in {"queue/rotational": "0", "queue/write_cache": "write back", "size": "2097152", **files}.items():
        _write(home / file.replace("__", "/"), text)
    for link in (sys / "dev/block" / number, sys / "class/block" / name):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(home)
    return home


def _on(upper: Path, *lower: Path) -> None:
    (upper / "slaves").mkdir()
    for disk in lower:
        (upper / "slaves" / disk.name).symlink_to(disk)


def _nowhere(file: Path) -> str | None:
    del file
    return None


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    return tmp_path / "sys"


def test_a_plain_disk_is_a_stack_of_one(sys):
    _disk(
        sys,
        "nvme0n1",
        "259:0",
        device__model="Samsung SSD 980",
        queue__scheduler="[none] mq-deadline",
        queue__nr_requests="1023",
        queue__discard_max_bytes="0",
    )
    disk = storage.disk_of(FILES, sys, "259:0", "/dev/nvme0n1")
    facts = storage.queue_facts(FILES, disk) | storage.stack_facts(FILES, disk, sys, _nowhere)
    assert (facts["device"], facts["device_model"], facts["device_mb"]) == ("nvme0n1", "Samsung SSD 980", 1024)
    assert (facts["rotational"], facts["scheduler"], facts["queue_requests"]) == (False, "none", 1023)
    assert facts["discard"] is False
    assert (facts["stack"], facts["raid"], facts["disk_write_caches"]) == (["disk"], "none", ["write back"])


def test_a_partition_stands_for_its_disk(sys):
    home = _disk(sys, "sda", "8:0")
    _write(home / "sda1/partition", "1")
    (sys / "dev/block/8:1").symlink_to(home / "sda1")
    assert storage.disk_of(FILES, sys, "8:1", "/dev/sda1") == sys / "class/block" / home.name


def test_an_encrypted_volume_on_software_raid_is_walked_down_to_its_disks(sys):
    first = _disk(sys, "sda", "8:0", queue__write_cache="write through")
    second = _disk(sys, "sdb", "8:16")
    raid = _disk(sys, "md127", "9:127", md__level="raid1", md__raid_disks="2")
    crypt = _disk(sys, "dm-0", "253:0", dm__uuid="CRYPT-LUKS2-0123-data")
    volume = _disk(sys, "dm-1", "253:1", dm__uuid="LVM-abcdef")
    _on(raid, first, second)
    _on(crypt, raid)
    _on(volume, crypt)
    facts = storage.stack_facts(FILES, storage.disk_of(FILES, sys, "253:1", "/dev/mapper/vg-pg"), sys, _nowhere)
    assert facts["stack"] == ["LVM", "encrypted", "RAID raid1 of 2", "disk", "disk"]
    assert facts["raid"] == "raid1"
    assert facts["disk_write_caches"] == ["write back", "write through"]


def test_a_loop_device_stands_on_the_disk_of_its_file(sys):
    _disk(sys, "vda", "254:0")
    _disk(sys, "loop3", "7:3", loop__backing_file="/var/lib/pgtrial/volume.img")
    asked = []

    def holder(file: Path) -> str:
        asked.append(str(file))
        return "254:0"

    facts = storage.stack_facts(FILES, storage.disk_of(FILES, sys, "7:3", "/dev/loop3"), sys, holder)
    assert facts["stack"] == ["loop", "disk"]
    assert set(asked) == {"/var/lib/pgtrial/volume.img"}


def test_a_loop_file_on_its_own_file_system_comes_to_an_end(sys):
    _disk(sys, "loop3", "7:3", loop__backing_file="/mnt/volume.img")
    facts = storage.stack_facts(FILES, storage.disk_of(FILES, sys, "7:3", "/dev/loop3"), sys, lambda file: "7:3")
    assert set(facts["stack"]) == {"loop"}


def test_a_file_system_of_many_devices_is_found_by_its_source(sys):
    home = _disk(sys, "vdc", "254:32")
    assert storage.disk_of(FILES, sys, "0:47", "/dev/vdc") == sys / "class/block" / home.name


def test_without_a_device_all_is_unknown(sys):
    disk = storage.disk_of(FILES, sys, "0:25", "tmpfs")
    assert disk is None
    assert set((storage.queue_facts(FILES, disk) | storage.stack_facts(FILES, disk, sys, _nowhere)).values()) == {None}


def test_xfs_tells_geometry_and_features():
    told = storage.parse_xfs_info(recorded("xfs_info.txt"))
    assert (told["meta-data.agcount"], told["meta-data.crc"], told["meta-data.reflink"]) == ("16", "1", "1")
    assert (told["data.bsize"], told["data.sunit"], told["data.swidth"]) == ("4096", "128", "256")
    assert (told["log.blocks"], told["log.lazy-count"]) == ("16384", "1")


def test_ext4_tells_what_mkfs_decided_and_no_counts():
    told = storage.parse_dumpe2fs(recorded("dumpe2fs.txt"))
    assert (told["block_size"], told["inode_size"], told["journal_size"]) == ("4096", "256", "128M")
    assert "has_journal" in told["features"]
    assert "needs_recovery" not in told["features"]
    assert not any("3254321" in value for value in told.values())


def test_btrfs_tells_profiles_and_no_sizes():
    assert storage.parse_btrfs_df(recorded("btrfs_df.txt")) == {
        "data": "single",
        "system": "DUP",
        "metadata": "DUP",
        "globalreserve": "single",
    }


def test_zfs_tells_its_properties_but_those_it_lacks():
    told = storage.parse_zfs_get(recorded("zfs_get.txt"))
    assert told == {
        "recordsize": "8192",
        "compression": "lz4",
        "sync": "disabled",
        "logbias": "throughput",
        "atime": "off",
    }


def test_a_file_system_without_parameters_has_none():
    assert storage.parameters_of(FILES, "tmpfs", "/tmp", "tmpfs") is None
    assert storage.parameters_of(FILES, None, None, None) is None
