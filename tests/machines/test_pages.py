"""Reserving huge pages from a kernel that gives them little by little, or not at all."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pgtrial.machines import kernel
from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.machine import LOCAL, ChangedMeanwhile, HostError
from tests.conftest import require_root
from tests.machines.kernel_files import with_kernel_files

pytestmark = pytest.mark.machine


@pytest.fixture
def boot_kernel(host, tmp_path, monkeypatch):
    """Returns a function that makes a machine whose kernel has four reserved huge pages, three of them in use. `boot(2,
    0)` gives at most two more pages at the first request and none at the next one.
    """
    pool = tmp_path / "hugepages-1048576kB"
    pool.mkdir()
    asked: list[int] = []

    def boot(*gives):
        left = iter(gives)

        def obey(path, text):
            assert path.name == "nr_hugepages"
            count = int(text)
            asked.append(count)
            now = int((pool / path.name).read_text())
            total = max(count, 3) if count <= now else min(count, now + next(left, 0))
            (pool / "surplus_hugepages").write_text(str(max(0, total - count)))
            (pool / "free_hugepages").write_text(str(total - 3))
            return str(total)

        booted = with_kernel_files(host, {"/sys/kernel/mm/hugepages": tmp_path}, obey, available_kb=1 << 30)
        return booted, pool / "nr_hugepages", asked

    (pool / "nr_hugepages").write_text("4\n")
    (pool / "surplus_hugepages").write_text("0\n")
    (pool / "free_hugepages").write_text("1\n")
    (pool / "resv_hugepages").write_text("1\n")
    monkeypatch.setattr(kernel, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(kernel, "make_contiguous", lambda _: None)
    return boot


def change(host):
    return kernel.HugePages.planned(host, "1GB", 3)


def test_what_one_attempt_got_is_kept_for_the_next(boot_kernel, tmp_path):
    machine, pool, asked = boot_kernel(1, 0, 2)
    with HostJournal(tmp_path, machine).made(change(machine)):
        assert pool.read_text() == "7"
        assert asked == [7, 7, 7], "no more than it takes"
    assert pool.read_text() == "4"


def test_too_few_pages_are_given_back_and_counted_in_the_message(boot_kernel, tmp_path):
    machine, pool, asked = boot_kernel(1, 1)
    told = r"of 3 huge pages of 1GB the kernel gave 2 in 4 attempts.*hugepages=3"
    with pytest.raises(HostError, match=told), HostJournal(tmp_path, machine).made(change(machine)):
        pytest.fail("the pages are not there")
    assert pool.read_text() == "4"
    assert asked == [7, 7, 7, 7, 4]
    assert HostJournal(tmp_path, machine).journal.pending() == []


def test_pages_of_the_pool_that_nobody_uses_or_is_promised_make_up_for_those_that_are_not_to_be_had(
    boot_kernel, tmp_path
):
    machine, pool, asked = boot_kernel(2)
    (pool.parent / "resv_hugepages").write_text("0\n")
    with HostJournal(tmp_path, machine).made(change(machine)):
        assert kernel.spare_pages(machine, "1GB") == 3
        assert asked == [7]
    assert pool.read_text() == "4"


def test_pages_that_somebody_uses_for_a_while_are_no_former_value(boot_kernel, tmp_path):
    machine, pool, asked = boot_kernel(3)
    pool.write_text("3\n")
    (pool.parent / "surplus_hugepages").write_text("3\n")
    with HostJournal(tmp_path, machine).made(change(machine)):
        assert asked == [6], "three that are in use, and three of its own"
    assert asked == [6, 0]
    assert kernel.reserved_pages(machine, "1GB") == 0
    assert pool.read_text() == "3", "the kernel frees them when their user ends"


def test_a_number_that_somebody_else_has_set_meanwhile_stays_and_is_told_once(boot_kernel, tmp_path):
    machine, pool, asked = boot_kernel(3)
    told = "4 huge pages of 1GB were reserved, pgtrial has reserved 3 more, and now there are 40"
    with pytest.raises(ChangedMeanwhile, match=told), HostJournal(tmp_path, machine).made(change(machine)):
        pool.write_text("40")
    assert (pool.read_text(), asked) == ("40", [7])
    assert HostJournal(tmp_path, machine).journal.pending() == []


def test_after_a_crash_too_what_somebody_else_has_set_stays(boot_kernel, tmp_path):
    machine, pool, _ = boot_kernel(3)
    HostJournal(tmp_path, machine).make(change(machine))
    pool.write_text("40")
    [said], _ = HostJournal(tmp_path, machine).journal.undo()
    assert "somebody else has changed their number in the meantime, so it stays as it is." in said
    assert pool.read_text() == "40"
    assert HostJournal(tmp_path, machine).journal.undo() == ([], [])


def test_a_kernel_value_that_somebody_else_has_set_meanwhile_stays(host, tmp_path):
    path = tmp_path / "swappiness"
    path.write_text("60\n")
    machine = with_kernel_files(host, {"/proc/sys/vm": tmp_path})
    setting = kernel.KernelValue.planned(machine, "vm.swappiness", kernel.sysctl_path("vm.swappiness"), "10")
    told = "vm.swappiness was 60, pgtrial has set it to 10, and now it is 1: somebody else"
    with pytest.raises(ChangedMeanwhile, match=told), HostJournal(tmp_path, machine).made(setting):
        path.write_text("1")
    assert path.read_text() == "1"
    assert HostJournal(tmp_path, machine).journal.pending() == []


_TAKER = """
import mmap, sys
pages = mmap.mmap(-1, 8 * 2**21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
for page in range(8):
    pages[page * 2**21] = 1
print("taken", flush=True)
sys.stdin.read()
"""
"""A program that takes eight huge pages of 2 MB until its standard input ends (MAP_HUGETLB), as huge_pages = try."""


def test_pages_that_another_program_takes_meanwhile_are_gone_with_that_program(tmp_path):
    """The undo cannot free them, the next trial does not take them for the former value, and none stays."""
    require_root()
    before = kernel.reserved_pages(LOCAL, "2MB")
    if kernel.reserved_pages(LOCAL, "2MB") + kernel.spare_pages(LOCAL, "2MB"):
        pytest.skip("this machine has huge pages of 2 MB already")
    journal = HostJournal(tmp_path, LOCAL)
    with ExitStack() as taking:
        with journal.made(kernel.HugePages.planned(LOCAL, "2MB", 9)):
            taker = subprocess.Popen([sys.executable, "-c", _TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            taking.enter_context(taker)
            assert taker.stdout.read(5) == b"taken"
        assert kernel.reserved_pages(LOCAL, "2MB") == before
        pool = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
        assert int(pool.read_text()) == before + 8, "the program still has them"
        for _ in range(2):
            with journal.made(kernel.HugePages.planned(LOCAL, "2MB", 9)):
                assert kernel.spare_pages(LOCAL, "2MB") == 9
            assert int(pool.read_text()) == before + 8
        taker.stdin.close()
    assert int(pool.read_text()) == before
