"""Reads small files of a machine's kernel and the output of its tools, for the collectors. Where a file or a tool is
missing, the methods return None in place of its text.

For a remote machine this takes only a few round trips, since one request fetches all files and tools that the
collectors announce.
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
"""The contents of names.toml: the names under which operating systems and their tools report the facts, and what the
words and numbers in their output mean."""

Command = tuple[str, ...]

_TOOL_TIMEOUT_S = 60.0
_RECORD = "\x1e"
_FIELD = "\x1f"
"""The characters that separate records, and the fields of a record, in the output of pgtrial's shell scripts. They
occur in no path of a kernel and in no tool's output."""

_UNAME = r"""
printf '\036uname\n'
for letter in s r v m p; do uname -$letter 2>/dev/null || echo; done
"""
_TOOL = r"""
said=$({command} 2>/dev/null </dev/null) && printf '\036{number}\n%s\n' "$said"
"""
_PATHS = resource("paths.sh", __package__)
"""The script that lists the paths that match patterns. It unsets IFS, so that a pattern with spaces stays one word but
is still expanded."""

_IN_TIME = filled(resource("in_time.sh", __package__), patience_s=f"{_TOOL_TIMEOUT_S:.0f}")
"""The script that runs a tool. If the host has the command `timeout`, it limits the time of the tool on the host
itself; macOS has no such command."""


@dataclass(frozen=True)
class Uname:
    """The output of uname(1), under the names of Python's module platform. Unknown values are empty."""

    system: str = ""
    release: str = ""
    version: str = ""
    machine: str = ""
    processor: str = ""


class Files:
    """Reads the files and tools of a machine. This base class represents a machine that has none of them. If a file or
    a tool is missing, methods raise no error: they return None, or an empty list or dictionary."""

    local = False
    """True if this is the machine that the lab runs on."""

    def __init__(self) -> None:
        self._said: dict[Command, str | None] = {}

    @property
    def uname(self) -> Uname:
        """The name, release and version of the operating system, and the processor type, as uname(1) reports them."""
        return Uname()

    def read(self, path: str | Path) -> str | None:
        """Returns the text of a file without surrounding white space; None if the file is missing or empty."""
        return None

    def exists(self, path: str | Path) -> bool:
        """True if a file or directory exists at the path and pgtrial has the right to see it."""
        return False

    def glob(self, pattern: str | Path) -> list[Path]:
        """Returns the sorted paths that match an absolute pattern of the shell."""
        return []

    def resolve(self, path: str | Path) -> Path:
        """Returns the path with symbolic links resolved, as far as pgtrial has the right to see them."""
        return Path(path)

    def fetch(self, *patterns: str | Path) -> None:
        """Reads all files that match the patterns in one request, so that later calls of `read` return their texts
        without a request."""

    def _run(self, command: Command) -> str | None:
        """Runs a tool and returns its output; None if the tool is missing, fails or prints nothing."""
        return None

    def fields(self, path: str | Path) -> dict[str, str]:
        """Returns the `name: value` lines of a file; if a name is repeated, the first value counts."""
        return parse_fields(self.read(path) or "")

    def output(self, *command: str | Path) -> str | None:
        """Returns the output of a tool, in English; None if the tool is missing, fails, takes too long, or prints
        nothing.

        Each command runs only once; later calls return the same output.
        """
        words = tuple(str(word) for word in command)
        if words not in self._said:
            self._said[words] = self._run(words)
        return self._said[words]


class MachineFiles(Files):
    """Reads the files and tools of a machine with a shell. Methods raise HostTrouble if the machine is not reachable or
    refuses access.

    The first request fetches the files that match `patterns`, the real paths of `directories`, and the output of
    `tools`. Any other file or tool costs a round trip. The `directories` are never read as files, even if the account
    that runs the servers has replaced one of them by a file or a pipe: only their real paths are asked for.
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
        """The paths that were found on the machine: for a directory its path with links resolved, for a file None."""
        self._texts: dict[Path, str | None] = {}
        """The texts of files that were read; None for files that do not exist."""
        self._resolved: dict[Path, Path] = {}
        """The real paths of files and directories that were not in any earlier answer of the machine, so that each of
        them cost a request of its own."""
        self._first = [*patterns, *(escape(str(path)) for path in directories)]
        self._directories = frozenset(directories)
        self._tools = list(tools)

    @cached_property
    def uname(self) -> Uname:
        """The name, release and version of the operating system, which the first request fetches."""
        scripts = [_TOOL.format(command=shlex.join(tool), number=index) for index, tool in enumerate(self._tools)]
        records = self._look(self._first, _UNAME + "".join(scripts))
        self._said |= {tool: records.get(str(index), "").strip() or None for index, tool in enumerate(self._tools)}
        lines = [line.strip() for line in records.get("uname", "").splitlines()]
        return Uname(*("" if line == "unknown" else line for line in lines[:5]))

    def fetch(self, *patterns: str | Path) -> None:
        """Reads all files that match the patterns in two round trips, so that later calls of `read` need none."""
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
        """Sends the first request, if it was not sent before. It fetches all files and tools that were given to the
        constructor, and the names of the operating system."""
        _ = self.uname

    def _covered(self, path: Path) -> bool:
        """True if pgtrial has already listed all paths on the machine that match a pattern which this path matches. If
        this path was not among them, it does not exist, and no further request is needed."""
        return any(_matches(path, pattern) for pattern in self._known)

    def _look(self, patterns: Sequence[str], script: str = "") -> dict[str, str]:
        """Lists the paths that match the patterns in one round trip, and reads their texts in another. `script` is a
        further shell script that runs in the first round trip; the records that it printed are returned by their
        names."""
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
    """True if a path matches an absolute pattern of the shell, in which `*` does not match a slash.

    `Path.match` would be too slow: it splits path and pattern each time, and the facts of a server need some thousand
    calls.
    """
    text = str(path)
    return text.count("/") == pattern.count("/") and fnmatchcase(text, pattern)


def number(text: str | None) -> int | None:
    """Returns the whole number at the beginning of a text such as `2048 kB`; None if there is none."""
    match = re.match(r"-?\d+(?=\s|$)", text or "")
    return int(match[0]) if match else None


def scaled(text: str | None, unit: int) -> int | None:
    """Returns the whole number at the beginning of a text, divided by `unit` and rounded down; None if there is
    none."""
    value = number(text)
    return None if value is None else value // unit


def flag(text: str | None) -> bool | None:
    """True if the text is "1", by which the kernel shows that a switch is on; false for any other text; None if there
    is no text."""
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
    """Returns the facts that a table describes. By the name of each fact, the table has the path of a file and a word
    for the function that reads it, such as `number`. Relative paths are below `home`."""
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
"""The beginning of a command that runs a script of PowerShell."""


class WindowsFiles(Files):
    """Runs tools on a Windows host, whose files are not read. Raises HostTrouble if the host is not reachable or
    refuses access.

    Only scripts of PowerShell are run, with one round trip each.
    """

    def __init__(self, host: WindowsHost) -> None:
        super().__init__()
        self._host = host

    @property
    def uname(self) -> Uname:
        """The name of the system, which is known without a request. Other facts of the system come from CIM, the
        management interface of Windows."""
        return Uname("Windows")

    def _run(self, command: Command) -> str | None:
        return self._host.powershell(command[-1]).strip() or None if command[:-1] == POWERSHELL else None
