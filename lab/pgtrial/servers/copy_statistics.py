"""Gives a fresh copy of the data its planner statistics, before the trial's own SQL and its load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.data.planner_statistics import draw_anew, take_statistics
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError, TrialError, one_line


class CopyStatistics(Protocol):
    """Changes the statistics of a fresh copy that a server has just begun to serve."""

    def give(self, tables: Data, target: Target) -> None:
        """Changes the statistics of a copy of this data. Raises TrialError."""


class DrawnStatistics:
    """Statistics that ANALYZE draws for each copy, under the settings of the arm's server."""

    def give(self, tables: Data, target: Target) -> None:
        """Analyses the tables as the role that owns them, so that functions of their indexes do not run with a
        superuser's rights."""
        del tables
        try:
            with target.for_load.connect() as session:
                draw_anew(session)
        except psycopg.Error as error:
            raise TrialError(f"ANALYZE of the fresh copy failed: {one_line(error)}") from None


@dataclass(frozen=True)
class SameStatistics:
    """Statistics of the first arm, which all arms get."""

    statements: Mapping[Data, Sequence[str]]
    """The statements that give a copy the statistics, by data."""

    def give(self, tables: Data, target: Target) -> None:
        """Gives the copy the statistics of the first arm."""
        try:
            with target.for_load.connect() as session:
                take_statistics(session, self.statements.get(tables, ()))
        except (ArmError, psycopg.Error) as error:
            raise TrialError(f"the fresh copy does not take the first arm's statistics: {one_line(error)}") from None
