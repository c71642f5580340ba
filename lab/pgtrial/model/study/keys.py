"""What a key of an arm says of itself beside its name, type and text: the facts it shows in, and its effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgtrial.model.records import Record


@dataclass(frozen=True)
class KernelFile:
    """The key's value stands in files of the kernel during each trial. Needs root."""

    what: str
    path: str
    """A pattern, from the root on; with `of_disk` below the block device that holds the data."""
    of_disk: bool = False
    absent: str = ""
    """Why there are no such files, and what to do: the rest of a sentence that begins with the machine."""


@dataclass(frozen=True)
class KernelParameters:
    """The key's values are the kernel's parameters during each trial, by sysctl. Needs root."""


@dataclass(frozen=True)
class Launcher:
    """The key's value, a list of numbers, is that of a program through which the server is started."""

    numbers: Literal["CPUs", "NUMA nodes"]
    tools: tuple[tuple[str, ...], ...]
    """Command lines of which the first is taken that the machine has; `{}` stands for the value."""


Facts = Sequence[str]


@dataclass(frozen=True)
class Key:
    """Stands beside the type of a field of SetUp."""

    shows: Facts | Callable[[Any, Any], Facts] = ()
    """The facts in which arms differ that differ in the key: they are declared. May follow from the two values."""
    follows: Facts = ()
    """Patterns of other facts that may follow from the key; of several keys that with the longest names the cause."""
    apart: tuple[str, ...] = ()
    """What each arm has as its own, and never swapped, where arms of our own differ in the key."""
    effect: KernelFile | KernelParameters | Launcher | None = None
    absent: Any = None
    """What the key stands for in servers of a kind that does not have it."""

    def shown(self, value: Any, base: Any) -> Facts:
        """The facts in which these two values show."""
        return self.shows(value, base) if callable(self.shows) else self.shows


def keys_of(model: type[Record]) -> dict[str, Key]:
    """The keys that a type declares, by name, in its order."""
    declared = ((name, field.metadata) for name, field in model.model_fields.items())
    return {name: part for name, metadata in declared for part in metadata if isinstance(part, Key)}
