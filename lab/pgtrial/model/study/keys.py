"""Properties of an arm's key that its name, type and description do not say: the facts that differ if arms differ in
the key, and the effect of the key on the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgtrial.model.records import Record


@dataclass(frozen=True)
class KernelFile:
    """The effect of a key whose value pgtrial writes to files of the kernel for each trial, which requires root."""

    what: str
    path: str
    """The pattern of the files' paths. The paths are absolute or, with `of_disk`, relative to the directory in /sys of
    the block device that holds the data."""
    of_disk: bool = False
    absent: str = ""
    """The reason why a machine has no such files, and what the user can do. It is the rest of a sentence that begins
    with the name of the machine."""


@dataclass(frozen=True)
class KernelParameters:
    """The effect of a key whose values are kernel parameters, which pgtrial sets by sysctl for each trial. This
    requires root."""


@dataclass(frozen=True)
class Launcher:
    """The effect of a key whose value, a list of numbers, becomes an argument of the program that starts the server,
    such as numactl."""

    numbers: Literal["CPUs", "NUMA nodes"]
    tools: tuple[tuple[str, ...], ...]
    """The command lines of the programs that can start the server, with `{}` for the value. pgtrial uses the first
    program that the machine has."""


Facts = Sequence[str]


@dataclass(frozen=True)
class Key:
    """The properties of an arm's key that the audit and the preparation of machines use. A field of SetUp declares them
    as an annotation, next to its type."""

    shows: Facts | Callable[[Any, Any], Facts] = ()
    """The names of the facts that differ between two arms which have different values of the key. The audit accepts
    such differences as declared. The names may depend on the two values."""
    follows: Facts = ()
    """Patterns of further facts that may differ as a consequence, if two arms have different values of the key. If a
    fact fits the patterns of several keys, the key with the longest pattern counts as the cause."""
    apart: tuple[str, ...] = ()
    """The resources that arms on servers that pgtrial makes must not share if they differ in the key, such as the
    loaded data. Each of the arms then has its own, and pgtrial never swaps it between arms."""
    effect: KernelFile | KernelParameters | Launcher | None = None
    absent: Any = None
    """The value with which arms are compared in this key if the server of an arm is of a kind that does not have the
    key."""

    def shown(self, value: Any, base: Any) -> Facts:
        """Returns the names of the facts that differ between two arms with these values of the key."""
        return self.shows(value, base) if callable(self.shows) else self.shows


def keys_of(model: type[Record]) -> dict[str, Key]:
    """Returns the keys that a type declares, by name, in the order of its fields."""
    declared = ((name, field.metadata) for name, field in model.model_fields.items())
    return {name: part for name, metadata in declared for part in metadata if isinstance(part, Key)}
