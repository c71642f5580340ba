"""The base classes for building the engine's command lines, with the rules that all kinds of load share."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pgtrial.loads.engine import FrontEnd
from pgtrial.loads.load_makers import Each
from pgtrial.loads.turns import ALONE, Turn
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.load_section import LoadSection


@dataclass(frozen=True)
class Asked:
    """The load for which a command line of the engine is built: its part of the study file, its number of clients, its
    seed and its files."""

    load: LoadSection
    point: LoadPoint
    seed: int
    script: Path | None
    """The user's script file, or the folder of a pack or suite; None for a built-in workload."""
    machine: Each = field(default_factory=Each)
    turn: Turn = ALONE
    values: Mapping[str, Path] = field(default_factory=dict)
    """The files from which variables of scripts take their values, by the name of the variable."""

    @property
    def seeded(self) -> list[str]:
        """The option of the engine that sets the seed of its random numbers, as pgbench and most other front ends spell
        it."""
        return ["--random-seed", str(self.seed)]


class CommandLine(abc.ABC):
    """Builds the command lines of one kind of load."""

    front_end: ClassVar[FrontEnd]
    """The name of the engine's front end (its command, such as `pgbench`) that runs this kind of load."""
    lists_statements: ClassVar[bool] = False
    """True if the statements that the load sends can be read from its script files or query files."""

    @abc.abstractmethod
    def options(self, asked: Asked) -> list[str]:
        """Returns the options for the load of a trial. They describe the whole load, even if several engines share
        it."""

    def sessions(self, asked: Asked) -> int:
        """Returns the number of connections of one engine, which its threads share."""
        return asked.point.clients // asked.machine.engines

    def most_threads(self, asked: Asked) -> int:
        """Returns the largest number of threads of an engine that its connections can keep busy."""
        return self.sessions(asked)

    def threads(self, asked: Asked) -> int:
        """Returns the number of threads of an engine: the number in the study file, or else one thread for every 16
        connections, but no more than the engine has CPUs."""
        usual = min(math.ceil(self.sessions(asked) / 16), asked.machine.cpus)
        return min(self.most_threads(asked), asked.load.threads or max(1, usual))


class CountableLine(CommandLine):
    """Builds the command lines of a kind of load that consists of transactions, of which the engine can run any
    number."""

    @abc.abstractmethod
    def counted_options(self, asked: Asked, transactions: int) -> list[str]:
        """Returns the options of a run in which one client executes this number of transactions."""


class UnlistedLine(CountableLine):
    """Builds the command lines of a kind of load whose statements no file lists. pgtrial finds the statements by
    running the load for a moment and recording what it sends."""

    short_run: ClassVar[int] = 100
    """The number of transactions in this short run. With 100, a transaction type that makes up 4% of the order-entry
    load occurs with a probability of 98%."""

    def short_options(self, asked: Asked) -> list[str]:
        """Returns the options of a short run with one client, in which the engine shows the statements that it
        sends."""
        return self.counted_options(asked, self.short_run)
