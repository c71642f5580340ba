"""The words with which the engine is started for a load: what all kinds of load have in common."""

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
    """The load that one engine makes."""

    load: LoadSection
    point: LoadPoint
    seed: int
    script: Path | None
    """The file of a workload of the study's own, or the folder of a pack or suite; None for a built-in workload."""
    machine: Each = field(default_factory=Each)
    turn: Turn = ALONE
    values: Mapping[str, Path] = field(default_factory=dict)
    """The files from which variables take their values, by variable."""

    @property
    def seeded(self) -> list[str]:
        """The option for the seed of pgbench's front end, and of the front ends that are like it."""
        return ["--random-seed", str(self.seed)]


class CommandLine(abc.ABC):
    """The command lines of a kind of load."""

    front_end: ClassVar[FrontEnd]
    """The name of the engine's front end that runs this kind of load."""
    lists_statements: ClassVar[bool] = False
    """True if files list the statements that the load sends."""

    @abc.abstractmethod
    def options(self, asked: Asked) -> list[str]:
        """Returns the options for the load of a trial. They describe the whole load."""

    def sessions(self, asked: Asked) -> int:
        """Returns how many connections the threads of an engine share."""
        return asked.point.clients // asked.machine.engines

    def most_threads(self, asked: Asked) -> int:
        """Returns how many threads of an engine can share its connections."""
        return self.sessions(asked)

    def threads(self, asked: Asked) -> int:
        """Returns the threads of an engine: as the study says, else one for 16 connections and at most its CPUs."""
        usual = min(math.ceil(self.sessions(asked) / 16), asked.machine.cpus)
        return min(self.most_threads(asked), asked.load.threads or max(1, usual))


class UnlistedLine(CommandLine):
    """The command lines of a kind of load whose statements no file lists: a short run shows them."""

    @abc.abstractmethod
    def short_options(self, asked: Asked) -> list[str]:
        """Returns the options of a short run of one client."""


SHORT_RUN = 100
"""The transactions of a short run: the transactions of order entry that are drawn in 4% of all cases are among them
with a probability of 98%."""
