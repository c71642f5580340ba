"""A change of a machine and its undo: what every kind of change has in common."""

from __future__ import annotations

import abc
from typing import ClassVar

from pgtrial.machines.machine import Machine
from pgtrial.model.records import Record


class Change(Record, abc.ABC):
    """One change. Its fields are all that the undo needs, and are JSON.

    A kind of change is a subclass and a line in the journal's list of kinds.
    """

    survives_reboot: ClassVar[bool] = False
    """Whether the change is still there after the machine was started anew: a file is, a mount is not."""

    @abc.abstractmethod
    def make(self, machine: Machine) -> None:
        """Make it on the machine. Raises HostError, and may leave a part of it behind for the undo."""

    @abc.abstractmethod
    def undo(self, machine: Machine) -> None:
        """Put back what was. Right also where nothing or a part was made, and done twice. Raises HostError."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """What is changed, in a few words: `mount of ext4 at /x`."""
