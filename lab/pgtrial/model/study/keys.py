"""The part of the declaration of an arm's key that name, type and description do not contain: the facts that differ if
arms differ in the key, and the effect of the key on the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgtrial.model.records import Record


@dataclass(frozen=True)
class KernelFile:
    """The effect of a key whose value is written to files of the kernel for each trial. It needs root."""

    what: str
    path: str
    """The pattern of the files' paths: an absolute one, or with `of_disk` one below the block device that holds the
    data."""
    of_disk: bool = False
    absent: str = ""
    """The reason why a machine has no such files, and what to do: the rest of a sentence that begins with the
    machine."""


@dataclass(frozen=True)
class KernelParameters:
    """The effect of a key whose values are kernel parameters, which sysctl sets for each trial. It needs root."""


@dataclass(frozen=True)
class Launcher:
    """The effect of a key whose value, a list of numbers, is an argument of the program through which the server is
    started."""

    numbers: Literal["CPUs", "NUMA nodes"]
    tools: tuple[tuple[str, ...], ...]
    """The command lines of the possible programs, with `{}` for the value. The first program that the machine has is
    used."""


Facts = Sequence[str]


@dataclass(frozen=True)
class Key:
    """The properties of a key of an arm that the audit and the preparation of machines use. They are declared as an
    annotation of the field in SetUp, next to the type."""

    shows: Facts | Callable[[Any, Any], Facts] = ()
    """The names of the facts that differ between two arms whose values of the key differ. The audit takes such
    differences as declared. The names may depend on the two values."""
    follows: Facts = ()
    """Patterns of other facts that may follow from the key. If a fact fits the patterns of several keys, the key with
    the longest pattern is the cause."""
    apart: tuple[str, ...] = ()
    """The things of which every arm has its own, such as its loaded data, if arms on servers that pgtrial makes differ
    in the key. They are never swapped between arms."""
    effect: KernelFile | KernelParameters | Launcher | None = None
    absent: Any = None
    """The value that the key has in effect for kinds of servers that do not have it."""

    def shown(self, value: Any, base: Any) -> Facts:
        """Returns the names of the facts that differ between two arms with these values of the key."""
        return self.shows(value, base) if callable(self.shows) else self.shows


def keys_of(model: type[Record]) -> dict[str, Key]:
    """Returns the keys that a type declares, by name, in its order."""
    declared = ((name, field.metadata) for name, field in model.model_fields.items())
    return {name: part for name, metadata in declared for part in metadata if isinstance(part, Key)}
