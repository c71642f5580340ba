"""The platforms that wheels are built for."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A platform and its names in cargo, pip and Debian."""

    name: str
    triple: str
    """Rust's name for the target; empty for the engine that this machine's own compiler built."""
    processor: str
    tags: tuple[str, ...]
    """The platform tags of the wheel. The first one is what auditwheel has to confirm."""
    glibc: str | None = None
    """The oldest version that the engine runs with; None: it is built for musl."""
    debian: str | None = None
    """Debian's name of the processor, if a Debian package is made for it."""


def _glibc(processor: str, debian: str) -> Target:
    tags = (f"manylinux_2_17_{processor}", f"manylinux2014_{processor}")
    return Target(f"{processor}-glibc", f"{processor}-unknown-linux-gnu", processor, tags, "2.17", debian)


def _musl(processor: str) -> Target:
    return Target(f"{processor}-musl", f"{processor}-unknown-linux-musl", processor, (f"musllinux_1_2_{processor}",))


TARGETS = (_glibc("x86_64", "amd64"), _glibc("aarch64", "arm64"), _musl("x86_64"), _musl("aarch64"))
"""The platforms, in the order in which they are built."""


def this_machine() -> Target:
    """Returns the platform of this machine alone: for an engine that its own compiler built."""
    processor, (_, glibc) = platform.machine(), platform.libc_ver()
    debian = next((each.debian for each in TARGETS if each.processor == processor), None)
    return Target("here", "", processor, (f"linux_{processor}",), glibc or None, debian)
