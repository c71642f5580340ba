"""Reserving huge pages from a kernel that gives them little by little, or not at all."""

from __future__ import annotations

import pytest

from pgtrial.machines import kernel
from pgtrial.machines.journal import HostJournal, pending
from pgtrial.machines.machine import HostError

pytestmark = pytest.mark.machine


@pytest.fixture
def boot_kernel(tmp_path, monkeypatch):
    """A kernel with four pages reserved, three in use, that gives at most so many more at each request."""
    pool = tmp_path / "hugepages-1048576kB"
    pool.mkdir()
    asked: list[int] = []

    def boot(*gives):
        left = iter(gives)

        def write(machine, path, count):
            asked.append(count)
            now = int(machine.read_text(path))
            total = count if count <= now else min(count, now + next(left, 0))
            machine.write_text(path, str(total))
            machine.write_text(pool / "free_hugepages", str(total - 3))

        monkeypatch.setattr(kernel, "_set_count", write)
        return pool / "nr_hugepages", asked

    (pool / "nr_hugepages").write_text("4\n")
    (pool / "free_hugepages").write_text("1\n")
    (pool / "resv_hugepages").write_text("1\n")
    monkeypatch.setattr(kernel, "_POOLS", tmp_path)
    monkeypatch.setattr(kernel, "PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(kernel, "make_contiguous", lambda _: None)
    monkeypatch.setattr(kernel, "available_bytes", lambda _: 1 << 40)
    return boot


def change(host):
    return kernel.HugePages(size="1GB", pages=3, previous=kernel.reserved_pages(host, "1GB"))


def test_what_one_attempt_got_is_kept_for_the_next(boot_kernel, host, tmp_path):
    pool, asked = boot_kernel(1, 0, 2)
    with HostJournal(tmp_path, host).made(change(host)):
        assert pool.read_text() == "7"
        assert asked == [7, 7, 7], "no more than it takes"
    assert pool.read_text() == "4"


def test_too_few_pages_are_given_back_and_counted_in_the_message(boot_kernel, host, tmp_path):
    pool, asked = boot_kernel(1, 1)
    told = r"of 3 huge pages of 1GB the kernel gave 2 in 4 attempts.*hugepages=3"
    with pytest.raises(HostError, match=told), HostJournal(tmp_path, host).made(change(host)):
        pytest.fail("the pages are not there")
    assert pool.read_text() == "4"
    assert asked == [7, 7, 7, 7, 4]
    assert pending(tmp_path, host) == []


def test_pages_of_the_pool_that_nobody_uses_or_is_promised_make_up_for_those_that_are_not_to_be_had(
    boot_kernel, host, tmp_path
):
    pool, asked = boot_kernel(2)
    (pool.parent / "resv_hugepages").write_text("0\n")
    with HostJournal(tmp_path, host).made(change(host)):
        assert kernel.spare_pages(host, "1GB") == 3
        assert asked == [7]
    assert pool.read_text() == "4"
