"""Control groups of both versions, and other small facts of Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.evidence.collect.files import MachineFiles
from pgtrial.evidence.collect.hardware import governor, huge_page_pools, linux_hardware
from pgtrial.evidence.collect.limits import limits_of
from pgtrial.evidence.collect.operating_system import container_of
from pgtrial.machines.machine import LOCAL

FILES = MachineFiles(LOCAL)


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_version_2_takes_the_tightest_limit_on_the_way_up(tmp_path):
    root = _tree(
        tmp_path,
        {
            "a/memory.max": "4294967296",
            "a/cpu.max": "max 100000",
            "a/io.max": "254:0 rbps=max wbps=10485760 riops=max wiops=max",
            "a/b/memory.max": "max",
            "a/b/memory.swap.max": "0",
            "a/b/cpu.max": "150000 100000",
            "a/b/cpuset.cpus.effective": "0-1",
            "a/b/io.max": "",
        },
    )
    assert limits_of(FILES, "0::/a/b", root) == {
        "memory_mb": 4096,
        "swap_mb": 0,
        "cpus": 1.5,
        "cpuset": "0-1",
        "io": ["254:0 rbps=max wbps=10485760 riops=max wiops=max"],
    }


def test_version_1_has_a_tree_for_each_controller(tmp_path):
    root = _tree(
        tmp_path,
        {
            "memory/docker/x/memory.limit_in_bytes": "1073741824",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu/docker/x/cpu.cfs_quota_us": "-1",
            "cpu/docker/x/cpu.cfs_period_us": "100000",
            "cpuset/docker/x/cpuset.cpus": "2,3",
            "blkio/docker/x/blkio.throttle.write_bps_device": "8:0 1048576",
        },
    )
    groups = "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n3:cpuset:/docker/x\n2:blkio:/docker/x\n0::/"
    assert limits_of(FILES, groups, root) == {
        "memory_mb": 1024,
        "swap_mb": None,
        "cpus": "unlimited",
        "cpuset": "2,3",
        "io": ["write_bps_device 8:0 1048576"],
    }


def test_no_limit_is_known_and_not_unknown(tmp_path):
    root = _tree(tmp_path, {"a/memory.max": "max", "a/cpu.max": "max 100000", "a/io.max": ""})
    found = limits_of(FILES, "0::/a", root)
    assert (found["memory_mb"], found["cpus"], found["io"]) == ("unlimited", "unlimited", "unlimited")
    assert found["cpuset"] is None


def test_a_container_that_sees_a_foreign_path_reads_its_own_root(tmp_path):
    root = _tree(tmp_path, {"memory.max": "2147483648"})
    assert limits_of(FILES, "0::/kubepods/pod1/abc", root)["memory_mb"] == 2048


def test_dmi_is_told_but_for_fields_that_nobody_filled(tmp_path):
    sys = _tree(
        tmp_path, {"class/dmi/id/sys_vendor": "Supermicro", "class/dmi/id/board_name": "To be filled by O.E.M."}
    )
    found = linux_hardware(FILES, sys)
    assert (found["vendor"], found["board"], found["product"], found["firmware"]) == ("Supermicro", None, None, "BIOS")
    (sys / "firmware/efi").mkdir(parents=True)
    assert linux_hardware(FILES, sys)["firmware"] == "UEFI"


def test_without_dmi_the_hardware_is_unknown(tmp_path):
    assert set(linux_hardware(FILES, tmp_path).values()) == {None}


def test_a_board_with_a_device_tree_tells_its_model(tmp_path):
    sys = _tree(tmp_path, {"firmware/devicetree/base/model": "Raspberry Pi 5 Model B\0"})
    assert linux_hardware(FILES, sys)["product"] == "Raspberry Pi 5 Model B"


def test_all_governors_in_use_are_told(tmp_path):
    files = {f"cpu{n}/cpufreq/scaling_governor": name for n, name in enumerate(["performance", "powersave"])}
    assert governor(FILES, _tree(tmp_path, files)) == "performance, powersave"
    assert governor(FILES, tmp_path / "none") is None


def test_huge_pages_are_counted_by_size(tmp_path):
    files = {"hugepages-1048576kB/nr_hugepages": "3", "hugepages-2048kB/nr_hugepages": "512"}
    assert huge_page_pools(FILES, _tree(tmp_path, files)) == {"2048kB": 512, "1048576kB": 3}
    assert huge_page_pools(FILES, tmp_path / "none") is None


@pytest.mark.parametrize(
    ("groups", "container"),
    [
        ("0::/docker/0123", "docker"),
        ("5:memory:/kubepods/burstable/pod1", "kubernetes"),
        ("0::/machine.slice/libpod-0123.scope", "podman"),
        ("0::/lxc/one", "lxc"),
        ("0::/init.scope", "none"),
        (None, None),
    ],
)
def test_a_container_is_known_by_the_first_process_group(groups, container):
    assert container_of(groups) == container
