"""What collectors read: the small files of a machine's kernel and the words of its tools; what is not there is None.

Of a machine that is far they come in few round trips: what collectors announce is fetched at once.
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
"""What systems and their tools call the facts, and what their words and numbers mean."""

Command = tuple[str, ...]

_TOOL_TIMEOUT_S = 60.0
_RECORD = "\x1e"
_FIELD = "\x1f"
"""What parts records, and the fields of one: no path of a kernel's and no tool's output holds them."""

_UNAME = r"""
printf '\036uname\n'
for letter in s r v m p; do uname -$letter 2>/dev/null || echo; done
"""
_TOOL = r"""
said=$({command} 2>/dev/null </dev/null) && printf '\036{number}\n%s\n' "$said"
"""
_PATHS = resource("paths.sh", __package__)
"""Without IFS a pattern stays one word, and is still expanded."""

_IN_TIME = filled(resource("in_time.sh", __package__), patience_s=f"{_TOOL_TIMEOUT_S:.0f}")
"""Ended on the host itself where it has a tool for that; macOS has none."""


@dataclass(frozen=True)
class Uname:
    """What uname(1) says, by the names of Python's platform; empty where it says nothing."""

    system: str = ""
    release: str = ""
    version: str = ""
    machine: str = ""
    processor: str = ""


class Files:
    """The files and tools of one machine: here of one that has neither. No method raises for what is absent."""

    local = False
    """Whether it is the machine that the lab runs on."""

    def __init__(self) -> None:
        self._said: dict[Command, str | None] = {}

    @property
    def uname(self) -> Uname:
        """The system."""
        return Uname()

    def read(self, path: str | Path) -> str | None:
        """The text without surrounding space, or None."""
        return None

    def exists(self, path: str | Path) -> bool:
        """Whether there is a file or directory, as far as can be seen."""
        return False

    def glob(self, pattern: str | Path) -> list[Path]:
        """What matches an absolute pattern, as the shell understands it, in order."""
        return []

    def resolve(self, path: str | Path) -> Path:
        """The path without links, as far as can be seen."""
        return Path(path)

    def fetch(self, *patterns: str | Path) -> None:
        """Have what matches at hand, in one go."""

    def _run(self, command: Command) -> str | None:
        """What a tool prints, or None."""
        return None

    def fields(self, path: str | Path) -> dict[str, str]:
        """`name: value` lines of a file; of a repeated name the first."""
        return parse_fields(self.read(path) or "")

    def output(self, *command: str | Path) -> str | None:
        """What a tool prints, in English and asked once; None where it is absent, fails, or takes too long."""
        words = tuple(str(word) for word in command)
        if words not in self._said:
            self._said[words] = self._run(words)
        return self._said[words]


class MachineFiles(Files):
    """Raises HostTrouble where the machine is gone or refuses.

    The first look fetches what matches `patterns`, where `directories` lead, and what `tools` say; what else is asked
    for costs a round trip. Directories are not read, also where the servers' account has put a file or a pipe in their
    place.
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
        """What looks have shown; of a directory what it is without links, of a file None."""
        self._texts: dict[Path, str | None] = {}
        """Texts of files that were read; None for those that are not there."""
        self._resolved: dict[Path, Path] = {}
        """Files that were read, and paths that were resolved, without a look that had shown them."""
        self._first = [*patterns, *(escape(str(path)) for path in directories)]
        self._directories = frozenset(directories)
        self._tools = list(tools)

    @cached_property
    def uname(self) -> Uname:
        """With the first look."""
        scripts = [_TOOL.format(command=shlex.join(tool), number=place) for place, tool in enumerate(self._tools)]
        records = self._look(self._first, _UNAME + "".join(scripts))
        self._said |= {tool: records.get(str(place), "").strip() or None for place, tool in enumerate(self._tools)}
        lines = [line.strip() for line in records.get("uname", "").splitlines()]
        return Uname(*("" if line == "unknown" else line for line in lines[:5]))

    def fetch(self, *patterns: str | Path) -> None:
        """Two round trips for all of them."""
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
        """What was announced is fetched with the system's name, whatever is asked for first."""
        _ = self.uname

    def _covered(self, path: Path) -> bool:
        """Whether a look has shown the path if it is there."""
        return any(_matches(path, pattern) for pattern in self._known)

    def _look(self, patterns: Sequence[str], script: str = "") -> dict[str, str]:
        """One round trip for what there is, one for the texts of it. The records of `script` by name."""
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
    """Whether an absolute pattern matches, as the shell understands it: where both have as many slashes, no star stands
    for one. `Path.match` takes both apart each time, some thousand times for the facts of a server."""
    text = str(path)
    return text.count("/") == pattern.count("/") and fnmatchcase(text, pattern)


def number(text: str | None) -> int | None:
    """The whole number that a text starts with (`2048 kB`), or None."""
    match = re.match(r"-?\d+(?=\s|$)", text or "")
    return int(match[0]) if match else None


def scaled(text: str | None, unit: int) -> int | None:
    """The whole number that a text starts with in units of so many, or None."""
    value = number(text)
    return None if value is None else value // unit


def flag(text: str | None) -> bool | None:
    """Whether a switch is on, which the kernel shows as 1; None where it shows nothing."""
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
    """The facts of a table: of each a file, below `home` if its path is relative, and how it is read."""
    return {fact: _READ[how](files.read(home / path)) for fact, (path, how) in table.items()}


def parse_fields(text: str, separator: str = ":") -> dict[str, str]:
    """`name: value` lines; of a repeated name the first."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, parted, value = line.partition(separator)
        if parted:
            fields.setdefault(name.strip(), value.strip())
    return fields


POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command")
"""The words of a command before its script."""


class WindowsFiles(Files):
    """Raises HostTrouble where the host is gone or refuses. Only a script of PowerShell costs a round trip."""

    def __init__(self, host: WindowsHost) -> None:
        super().__init__()
        self._host = host

    @property
    def uname(self) -> Uname:
        """Known without a look; the rest is said by CIM."""
        return Uname("Windows")

    def _run(self, command: Command) -> str | None:
        return self._host.powershell(command[-1]).strip() or None if command[:-1] == POWERSHELL else None
