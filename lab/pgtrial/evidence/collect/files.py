"""Reads for the collectors the small files of a machine's kernel and the output of its tools; absent ones are None.

On a remote machine this takes few round trips: all files and tools that collectors announce are fetched at once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

from pgtrial.machines.kernel import in_force
from pgtrial.machines.machine import LOCAL, Machine
from pgtrial.machines.windows import WindowsHost
from pgtrial.model.resources import filled, resource, table

NAMES: dict[str, Any] = table("names.toml", __package__)
"""The names that operating systems and their tools have for the facts, and the meaning of their words and numbers."""

Command = tuple[str, ...]

_TOOL_TIMEOUT_S = 60.0
_RECORD = "\x1e"
_FIELD = "\x1f"
"""The characters that separate records, and the fields of a record. No path of a kernel and no tool's output has
them."""

_UNAME = r"""
printf '\036uname\n'
for letter in s r v m p; do uname -$letter 2>/dev/null || echo; done
"""
_TOOL = r"""
said=$({command} 2>/dev/null </dev/null) && printf '\036{number}\n%s\n' "$said"
"""
_PATHS = resource("paths.sh", __package__)
"""The script that lists paths. Without IFS a pattern stays one word, and is still expanded."""

_IN_TIME = filled(resource("in_time.sh", __package__), patience_s=f"{_TOOL_TIMEOUT_S:.0f}")
"""The script that runs a tool and ends it in time on the host itself, if the host has a command for that; macOS has
none."""


@dataclass(frozen=True)
class Uname:
    """The output of uname(1), by the names of Python's platform; empty strings for unknown values."""

    system: str = ""
    release: str = ""
    version: str = ""
    machine: str = ""
    processor: str = ""


class Files:
    """The files and tools of a machine; this base class is a machine that has neither. No method raises if a file or a
    tool is absent."""

    local = False
    """True for the machine that the lab runs on."""

    def __init__(self) -> None:
        self._said: dict[Command, str | None] = {}

    @property
    def uname(self) -> Uname:
        """Returns the operating system's names."""
        return Uname()

    def read(self, path: str | Path) -> str | None:
        """Returns the text of a file without surrounding space, or None."""
        return None

    def exists(self, path: str | Path) -> bool:
        """True if there is a file or directory at the path, as far as pgtrial may see it."""
        return False

    def glob(self, pattern: str | Path) -> list[Path]:
        """Returns the paths that match an absolute pattern of the shell, in order."""
        return []

    def resolve(self, path: str | Path) -> Path:
        """Returns the path without links, as far as pgtrial may see it."""
        return Path(path)

    def fetch(self, *patterns: str | Path) -> None:
        """Reads all files that match the patterns in advance, together."""

    def _run(self, command: Command) -> str | None:
        """Runs a tool and returns its output, or None."""
        return None

    def fields(self, path: str | Path) -> dict[str, str]:
        """Returns the `name: value` lines of a file; if a name is repeated, the first value counts."""
        return parse_fields(self.read(path) or "")

    def output(self, *command: str | Path) -> str | None:
        """Returns the output of a tool, in English; None if the tool is absent, fails, or takes too long.

        Each command runs only once.
        """
        words = tuple(str(word) for word in command)
        if words not in self._said:
            self._said[words] = self._run(words)
        return self._said[words]


class MachineFiles(Files):
    """The files and tools of a machine with a shell. Methods raise HostTrouble if it is gone or refuses access.

    The first request fetches the files that match `patterns`, the targets of `directories`, and the output of `tools`;
    any other file or tool costs a round trip. `directories` are never read as files, even if the servers' account has
    put a file or a pipe in their place.
    """

    def __init__(
        self,
        machine: Machine,
        patterns: Collection[str] = (),
        tools: Collection[Command] = (),
        directories: Collection[Path] = (),
    ):
        super().__init__()
        self.local = machine is LOCAL
        self._machine = machine
        self._known: list[str] = []
        self._seen: dict[Path, Path | None] = {}
        """The paths that were listed on the machine: a directory with its path without links, a file with None."""
        self._texts: dict[Path, str | None] = {}
        """The texts of files that were read; None for files that are not there."""
        self._resolved: dict[Path, Path] = {}
        """The paths that were resolved one by one, because no listing had them."""
        self._first = [*patterns, *(escape(str(path)) for path in directories)]
        self._directories = frozenset(directories)
        self._tools = list(tools)

    @cached_property
    def uname(self) -> Uname:
        """Returns the operating system's names, which the first request fetches."""
        scripts = [_TOOL.format(command=shlex.join(tool), number=place) for place, tool in enumerate(self._tools)]
        records = self._look(self._first, _UNAME + "".join(scripts))
        self._said |= {tool: records.get(str(place), "").strip() or None for place, tool in enumerate(self._tools)}
        lines = [line.strip() for line in records.get("uname", "").splitlines()]
        return Uname(*("" if line == "unknown" else line for line in lines[:5]))

    def fetch(self, *patterns: str | Path) -> None:
        """Reads all files that match the patterns in advance, in two round trips."""
        self._look_first()
        self._look([str(pattern) for pattern in patterns])

    def read(self, path: str | Path) -> str | None:
        path = Path(path)
        self._look_first()
        if path not in self._texts and not self._covered(path):
            self._texts[path] = self._machine.read_many([path]).get(path)
        return (self._texts.get(path) or "").strip() or None

    def exists(self, path: str | Path) -> bool:
        path = Path(path)
        self._look_first()
        if path in self._seen or self._texts.get(path) is not None:
            return True
        return not self._covered(path) and self._machine.exists(path)

    def glob(self, pattern: str | Path) -> list[Path]:
        self._look_first()
        if str(pattern) not in self._known:
            self.fetch(pattern)
        return sorted(path for path in self._seen if _matches(path, str(pattern)))

    def resolve(self, path: str | Path) -> Path:
        path = Path(path)
        self._look_first()
        real = self._seen.get(path)
        if real is not None:
            return real
        if self._covered(path) and path not in self._seen:
            return path
        if path not in self._resolved:
            self._resolved[path] = self._machine.resolve(path)
        return self._resolved[path]

    def _run(self, command: Command) -> str | None:
        self._look_first()
        done = self._machine.looked(("sh", "-c", _IN_TIME, "sh", *command))
        return done.stdout.strip() or None if done.status == 0 else None

    def _look_first(self) -> None:
        """Sends the first request, unless it was sent. It fetches all announced files and tools together with the
        system's names."""
        _ = self.uname

    def _covered(self, path: Path) -> bool:
        """True if the patterns that were listed so far match the path, so that it does not exist unless a listing had
        it."""
        return any(_matches(path, pattern) for pattern in self._known)

    def _look(self, patterns: Sequence[str], script: str = "") -> dict[str, str]:
        """Lists the paths that match in one round trip, and reads their texts in another. Returns the records of
        `script` by name."""
        done = self._machine.looked(["sh", "-c", script + _PATHS, "sh", *patterns])
        named = (record.partition("\n") for record in done.stdout.split(_RECORD)[1:])
        records = {name: text for name, _, text in named}
        lines = (line.split(_FIELD) for line in records.get("paths", "").splitlines())
        there = {Path(path): Path(real) if kind == "d" else None for kind, path, real in lines}
        files = [path for path, real in there.items() if real is None and path not in self._directories]
        self._seen |= there
        self._texts |= self._machine.read_many(files) if files else {}
        self._known += patterns
        return records


def _matches(path: Path, pattern: str) -> bool:
    """True if a path matches an absolute pattern of the shell, in which no star stands for a slash.

    `Path.match` is too slow: it splits both each time, some thousand times for the facts of a server.
    """
    text = str(path)
    return text.count("/") == pattern.count("/") and fnmatchcase(text, pattern)


def number(text: str | None) -> int | None:
    """Returns the whole number that a text starts with (`2048 kB`), or None."""
    match = re.match(r"-?\d+(?=\s|$)", text or "")
    return int(match[0]) if match else None


def scaled(text: str | None, unit: int) -> int | None:
    """Returns the whole number that a text starts with, divided by `unit`, or None."""
    value = number(text)
    return None if value is None else value // unit


def flag(text: str | None) -> bool | None:
    """Returns whether a switch is on, which the kernel shows as 1; None if the kernel shows nothing."""
    return None if text is None else text == "1"


_READ: dict[str, Callable[[str | None], Any]] = {
    "text": lambda text: text,
    "number": number,
    "flag": flag,
    "chosen": lambda text: None if text is None else in_force(text),
    "positive": lambda text: None if number(text) is None else text != "0",
    # sizes in /sys are in units of 512 bytes, whatever the disk's sectors
    "sectors": lambda text: scaled(text, 2048),
}


def read_facts(files: Files, table: Mapping[str, tuple[str, str]], home: Path = Path("/")) -> dict[str, Any]:
    """Returns the facts of a table, which has for each fact a file and the way to read it. Relative paths are below
    `home`."""
    return {fact: _READ[how](files.read(home / path)) for fact, (path, how) in table.items()}


def parse_fields(text: str, separator: str = ":") -> dict[str, str]:
    """Returns the `name: value` lines of a text; if a name is repeated, the first value counts."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, parted, value = line.partition(separator)
        if parted:
            fields.setdefault(name.strip(), value.strip())
    return fields


POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command")
"""The words of a PowerShell command before its script."""


class WindowsFiles(Files):
    """The tools of a Windows host; its files are not read. Raises HostTrouble if the host is gone or refuses access.

    Only scripts of PowerShell cost a round trip.
    """

    def __init__(self, host: WindowsHost) -> None:
        super().__init__()
        self._host = host

    @property
    def uname(self) -> Uname:
        """Returns the system's name, which is known without a request; CIM has the other facts."""
        return Uname("Windows")

    def _run(self, command: Command) -> str | None:
        return self._host.powershell(command[-1]).strip() or None if command[:-1] == POWERSHELL else None
