"""Reads the files of callgrind, the tool of valgrind that counts the instructions of each function.

The format is described in valgrind's manual under "Callgrind Format Specification". A file has the counts of one
process. Of the events that a file can count, this module reads the first one, which is Ir (executed instructions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple, TypeVar

from pgtrial.model.records.instructions import UNNAMED


class Function(NamedTuple):
    """A function of a program, as callgrind names it."""

    name: str
    program: str
    """The file name of the program or library that has the function."""


@dataclass
class Profile:
    """The instructions of one process, or the sum or difference of several."""

    own: dict[Function, int] = field(default_factory=dict)
    """The instructions that each function has executed itself."""
    calls: dict[tuple[Function, Function], int] = field(default_factory=dict)
    """The instructions that were executed during calls, by the caller and the function that was called."""

    @property
    def total(self) -> int:
        """Returns the instructions of all functions."""
        return sum(self.own.values())

    def __add__(self, other: Profile) -> Profile:
        return Profile(_sum(self.own, other.own, 1), _sum(self.calls, other.calls, 1))

    def __sub__(self, other: Profile) -> Profile:
        return Profile(_sum(self.own, other.own, -1), _sum(self.calls, other.calls, -1))


_Key = TypeVar("_Key")


def _sum(one: Mapping[_Key, int], other: Mapping[_Key, int], sign: int) -> dict[_Key, int]:
    return {key: one.get(key, 0) + sign * other.get(key, 0) for key in {**one, **other}}


class FormatError(ValueError):
    """The error for a file that callgrind has not written, or not to its end."""


_SPECIFICATION = re.compile(r"([a-z]+)=\s*(?:\((\d+)\)\s*)?(.*)")
"""Matches a line that names a function, a file or a program: `fn=(12) heap_getnext`. If the number occurred before, the
name is left out."""

_OF_PROGRAMS, _OF_FUNCTIONS = ("ob", "cob"), ("fn", "cfn")


def read_profile(lines: Iterable[str]) -> Profile:
    """Returns the content of a file of callgrind. Raises FormatError if the file is not complete."""
    return _Reader().read(lines)


class _Reader:
    """Reads the lines of one file. Names are abbreviated by numbers, which are counted for programs, and for functions,
    in two separate series."""

    def __init__(self) -> None:
        self.profile = Profile()
        self.names: dict[tuple[str, str], str] = {}
        self.positions = 1
        """The number of columns in front of the counts, which say to which line or address the counts belong."""
        self.program = self.called_program = ""
        self.function = self.called = Function("", "")
        self.is_call = False
        """True if the next line of counts has the instructions of a call."""
        self.total: int | None = None
        """The sum that the file itself states."""

    def read(self, lines: Iterable[str]) -> Profile:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            try:
                self._read(text)
            except (ValueError, KeyError):
                raise FormatError(f"line {number} is not in callgrind's format: {text[:80]}") from None
        if self.total is None:
            raise FormatError("it has no line `totals:`, so callgrind has not written it to its end")
        if self.total != self.profile.total:
            raise FormatError(f"its functions have {self.profile.total:,} instructions, and it states {self.total:,}")
        return self.profile

    def _read(self, text: str) -> None:
        if not text or text.startswith("#"):
            return
        if text[0] in "0123456789+-*":
            self._count(text)
        elif (match := _SPECIFICATION.fullmatch(text)) is not None:
            self._name(match[1], match[2], match[3])
        elif text.startswith("positions:"):
            self.positions = len(text.split()) - 1
        elif text.startswith("totals:"):
            # a file without any instructions may state no number
            self.total = int([*text.split(), "0"][1])

    def _count(self, text: str) -> None:
        columns = text.split()
        # a count of zero may be left out
        count = int(columns[self.positions]) if len(columns) > self.positions else 0
        if self.is_call:
            pair = (self.function, self.called)
            self.profile.calls[pair] = self.profile.calls.get(pair, 0) + count
            self.is_call, self.called_program = False, self.program
        else:
            self.profile.own[self.function] = self.profile.own.get(self.function, 0) + count

    def _name(self, key: str, number: str | None, name: str) -> None:
        if key in ("jump", "jcnd"):
            raise ValueError(key)  # their lines of counts would be taken for instructions
        if key in _OF_PROGRAMS:
            program = PurePath(self._known("ob", number, name)).name
            self.called_program = program
            if key == "ob":
                self.program = program
        elif key in _OF_FUNCTIONS:
            known = self._known("fn", number, name)
            if key == "fn":
                self.function = Function(known, self.program)
                self.called_program = self.program
            else:
                self.called = Function(known, self.called_program)
        elif key == "calls":
            self.is_call = True

    def _known(self, kind: str, number: str | None, name: str) -> str:
        if number is None:
            return name
        if name:
            self.names[kind, number] = name
        return self.names[kind, number]


_LEVEL = re.compile(r"'\d+$")
"""Matches the level of a recursive function: `ExecProcNode'2` is ExecProcNode that was called while it was running."""

_CLONE = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|llvm|localalias|specialized)\b.*| \[clone [^\]]*\].*)$")
"""Matches what compilers append to the name of a copy of a function. The copies differ between builds of nearly the
same source."""

_ADDRESS = re.compile(r"0x[0-9a-f]+|\?\?\?")
"""Matches what callgrind writes for a function without a name."""


def _source(function: Function) -> Function:
    """Returns the function of the source code to which a function of a profile belongs."""
    name = _CLONE.sub("", _LEVEL.sub("", function.name))
    return Function(UNNAMED if _ADDRESS.fullmatch(name) else name, function.program)


@dataclass(frozen=True)
class Cost:
    """The instructions of one function of the source code."""

    own: int = 0
    below: int = 0
    """The instructions of the function and of all functions that it calls."""
    callers: Mapping[Function, int] = field(default_factory=dict)
    """The instructions of the function and of all that it calls, by the function that has called it."""


def by_function(profile: Profile) -> dict[Function, Cost]:
    """Returns the instructions of each function of the source code. Copies of a function that the compiler has made,
    and the levels of a recursive function, are counted together.

    The instructions of a call within a call of the same function are counted once.
    """
    own: Counter[Function] = Counter()
    for function, count in profile.own.items():
        own[_source(function)] += count
    callers: dict[Function, Counter[Function]] = {}
    called_by: Counter[Function] = Counter()
    for (caller, called), count in profile.calls.items():
        by, of = _source(caller), _source(called)
        if by == of:
            continue
        if _LEVEL.search(called.name) is None:
            callers.setdefault(of, Counter())[by] += count
        if _LEVEL.search(caller.name) is None:
            called_by[by] += count
    return {
        function: Cost(
            own[function],
            callers[function].total() if function in callers else own[function] + called_by[function],
            callers.get(function, {}),
        )
        for function in {**own, **callers}
    }
