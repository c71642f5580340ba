"""Emptying the kernel's cache of files, without doing it: it is that of all programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgtrial.machines.kernel import drop_caches, may_drop_caches
from pgtrial.machines.machine import HostError


class Kernel:
    """A machine that notes what is done to it."""

    label = "this machine"
    root = True

    def __init__(self, *, refuses: bool = False) -> None:
        self.done: list[Any] = []
        self._refuses = refuses

    def tool(self, command: list[str]) -> str:
        self.done.append(command)
        return ""

    def exists(self, path: Path) -> bool:
        return path == Path("/proc/sys/vm/drop_caches")

    def write_text(self, path: Path, text: str) -> None:
        if self._refuses:
            raise PermissionError(13, "Permission denied")
        self.done.append((path, text))


def test_what_is_not_written_yet_is_written_before() -> None:
    kernel: Any = Kernel()
    drop_caches(kernel)
    assert kernel.done == [["sync"], (Path("/proc/sys/vm/drop_caches"), "3")]


def test_a_kernel_that_refuses_is_named() -> None:
    kernel: Any = Kernel(refuses=True)
    with pytest.raises(HostError, match="the kernel's cache of files"):
        drop_caches(kernel)


def test_it_takes_root_on_linux() -> None:
    kernel: Any = Kernel()
    assert may_drop_caches(kernel)
    kernel.root = False
    assert not may_drop_caches(kernel)
