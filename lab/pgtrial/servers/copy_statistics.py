"""Gives a fresh copy of the data its planner statistics, before a trial runs its own SQL and its load."""

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
    """Changes the planner statistics of a fresh copy of the data, just after its server has started."""

    def give(self, tables: Data, target: Target) -> None:
        """Changes the planner statistics of a copy of the data `tables`, which the server `target` has. Raises
        TrialError."""


class DrawnStatistics:
    """Gives each copy statistics of its own: ANALYZE draws a new random sample, under the settings of the arm's
    server."""

    def give(self, tables: Data, target: Target) -> None:
        """Runs ANALYZE as the role that owns the tables, so that functions in their indexes do not run with the rights
        of a superuser."""
        del tables
        try:
            with target.for_load.connect() as session:
                draw_anew(session)
        except psycopg.Error as error:
            raise TrialError(f"ANALYZE of the fresh copy failed: {one_line(error)}") from None


@dataclass(frozen=True)
class SameStatistics:
    """Gives the copies of all arms the same statistics: those of the first arm."""

    statements: Mapping[Data, Sequence[str]]
    """The SQL statements that write the statistics into a copy, by the data for which they are."""

    def give(self, tables: Data, target: Target) -> None:
        """Gives the copy the statistics of the first arm."""
        try:
            with target.for_load.connect() as session:
                take_statistics(session, self.statements.get(tables, ()))
        except (ArmError, psycopg.Error) as error:
            raise TrialError(
                f"the first arm's statistics cannot be written into the fresh copy: {one_line(error)}"
            ) from None
