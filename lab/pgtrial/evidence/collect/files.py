"""What collectors read: the small files of a machine's kernel and the words of its tools; what is not there is None."""

from __future__ import annotations

import abc
import glob
import os
import platform
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pgtrial.machines.kernel import in_force
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.windows import WindowsHost

TOOL_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Uname:
    """What uname(1) says, by the names of Python's platform; empty where it says nothing."""

    system: str = ""
    release: str = ""
    version: str = ""
    machine: str = ""
    processor: str = ""


class Files(abc.ABC):
    """The files and tools of one machine. No method raises for what is absent, or not for us."""

    local: bool
    """Whether it is the machine that the lab runs on."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, ...], str | None] = {}

    @property
    @abc.abstractmethod
    def uname(self) -> Uname:
        """The system."""

    @abc.abstractmethod
    def read(self, path: str | Path) -> str | None:
        """The text without surrounding space, or None."""

    @abc.abstractmethod
    def exists(self, path: str | Path) -> bool:
        """Whether there is a file or directory, as far as can be seen."""

    @abc.abstractmethod
    def glob(self, pattern: str | Path) -> list[Path]:
        """What matches an absolute pattern, as the shell understands it, in order."""

    @abc.abstractmethod
    def resolve(self, path: str | Path) -> Path:
        """The path without links, as far as can be seen."""

    @abc.abstractmethod
    def fetch(self, *patterns: str | Path) -> None:
        """Have what matches at hand, in one go; where files are near, nothing."""

    @abc.abstractmethod
    def _run(self, command: tuple[str, ...]) -> str | None:
        """What a tool prints, or None."""

    def chosen(self, path: str | Path) -> str | None:
        """What is in force of a kernel switch, or None."""
        text = self.read(path)
        return None if text is None else in_force(text)

    def fields(self, path: str | Path) -> dict[str, str]:
        """`name: value` lines of a file; of a repeated name the first."""
        return parse_fields(self.read(path) or "")

    def output(self, *command: str | Path) -> str | None:
        """What a tool prints, in English and asked once; None where it is absent, fails, or takes too long."""
        words = tuple(str(word) for word in command)
        if words not in self._said:
            self._said[words] = self._run(words)
        return self._said[words]


class LocalFiles(Files):
    """Those of the machine that the lab runs on."""

    local = True

    @cached_property
    def uname(self) -> Uname:
        """As Python knows it."""
        return Uname(*(told() for told in _PLATFORM))

    def read(self, path: str | Path) -> str | None:
        try:
            return Path(path).read_text(errors="replace").strip() or None
        except OSError:
            return None

    def exists(self, path: str | Path) -> bool:
        return os.path.exists(path)

    def glob(self, pattern: str | Path) -> list[Path]:
        """What matches an absolute pattern, in order."""
        return sorted(Path(found) for found in glob.glob(str(pattern)))

    def resolve(self, path: str | Path) -> Path:
        return Path(os.path.realpath(path))

    def fetch(self, *patterns: str | Path) -> None:
        """Files are near."""

    def _run(self, command: tuple[str, ...]) -> str | None:
        try:
            done = LOCAL.run(command, timeout_s=TOOL_TIMEOUT_S)
        except HostError:
            return None
        return done.stdout.strip() or None if done.status == 0 else None


_PLATFORM = (platform.system, platform.release, platform.version, platform.machine, platform.processor)


def number(text: str | None) -> int | None:
    """The whole number that a text starts with (`2048 kB`), or None."""
    found = re.match(r"-?\d+(?=\s|$)", text or "")
    return int(found[0]) if found else None


def parse_fields(text: str, separator: str = ":") -> dict[str, str]:
    """`name: value` lines; of a repeated name the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, parted, value = line.partition(separator)
        if parted:
            found.setdefault(name.strip(), value.strip())
    return found


POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command")
"""The words of a command before its script."""


class WindowsFiles(Files):
    """Raises HostTrouble where the host is gone or refuses. Only a script of PowerShell costs a round trip."""

    local = False

    def __init__(self, host: WindowsHost) -> None:
        super().__init__()
        self._host = host

    @property
    def uname(self) -> Uname:
        """Known without a look; the rest is said by CIM."""
        return Uname("Windows")

    def read(self, path: str | Path) -> str | None:
        """Nothing."""
        del path
        return None

    def exists(self, path: str | Path) -> bool:
        """Nothing is there."""
        del path
        return False

    def glob(self, pattern: str | Path) -> list[Path]:
        """Nothing matches."""
        del pattern
        return []

    def resolve(self, path: str | Path) -> Path:
        """The path as it is."""
        return Path(path)

    def fetch(self, *patterns: str | Path) -> None:
        """Nothing is to be had."""

    def _run(self, command: tuple[str, ...]) -> str | None:
        return self._host.powershell(command[-1]).strip() or None if command[:-1] == POWERSHELL else None
