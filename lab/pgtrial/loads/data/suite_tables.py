"""Makes and finds, on a server, the tables of the suites (sets of queries that are timed) that come with pgtrial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from pgtrial.loads.client_processes import count_clients
from pgtrial.loads.data.data import Data, freeze, refuse_foreign
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder, LoadMaker, OnLine, noticing
from pgtrial.loads.marks import Mark, mark_on
from pgtrial.loads.names import qualified
from pgtrial.loads.target import Session, Target
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec

_SEED = 1
"""The seed of the random numbers with which the rows are generated. It never changes, so that all arms get the same
rows."""


@dataclass(frozen=True)
class Generator:
    """A set of tables that the engine can make, and its size."""

    tables: tuple[str, ...]
    """The names of the tables. When all tables are complete, the engine writes a comment (a mark) on the first one."""
    mb: int
    """The size of tables and indexes at scale 1, in megabytes."""
    mb_at_least: int
    """The size, in megabytes, of the tables that do not grow with the scale."""


GENERATORS: Mapping[str, Generator] = {
    "reports": Generator(
        ("lines", "purchases", "offers", "parts", "buyers", "suppliers", "nations", "regions"), 1480, 1
    ),
    "joins": Generator(("sales", "visits", "reviews", "people", "products", "places", "coupons"), 380, 1),
}
"""The generators of tables in the engine, by the names that a suite uses for them in its file suite.toml."""


@dataclass(frozen=True)
class SuiteTables(Data):
    """The tables that the queries of a suite read, which the engine generates at a scale. `name` is the name of the
    generator."""

    marks: ClassVar[tuple[str, ...]] = tuple(f"pgtrial {name}" for name in GENERATORS)

    name: str
    scale: float

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        if point.suite is None or point.suite.data is None:
            return None
        return cls(point.suite.data, point.scale)

    @property
    def _generator(self) -> Generator:
        return GENERATORS[self.name]

    def relations(self, connection: Session) -> str:
        return f"c.relname = ANY ('{{{','.join(self._generator.tables)}}}')"

    @property
    def label(self) -> str:
        return f"the tables of {self.name}, scale {self.scale:g}"

    @property
    def relations_made(self) -> str:
        return ", ".join(sorted(self._generator.tables))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._generator.tables)

    @property
    def digest(self) -> str:
        return f"{self.name} {self._complete}"

    @property
    def mb(self) -> int:
        return round(self._generator.mb * self.scale) + self._generator.mb_at_least

    @property
    def short_name(self) -> str:
        return f"{self.name}-s{self.scale:g}"

    @property
    def _part(self) -> str:
        """The beginning of the comments by which the engine marks these tables as its own."""
        return f"pgtrial {self.name}"

    @property
    def _complete(self) -> str:
        """The text of the comment that the engine puts on the first table when all tables are complete."""
        return f"{self._part}: scale {self.scale:g}, seed {_SEED}"

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the tables with one engine over several connections, and freezes their rows. Raises ArmError if the
        engine fails, and StudyError if a table of one of these names was not created by pgtrial."""
        with server.connect() as connection:
            self.find(connection)  # raises StudyError if tables with these names exist that pgtrial did not create
            clients = count_clients(connection)
        command = ["generate", self.name, f"--scale={self.scale:g}", f"--random-seed={_SEED}"]
        maker.make(DataOrder(f"making {self.label}", command, noticing(server.environment())), report)
        with server.connect() as connection:
            freeze(connection, qualified(connection, self._generator.tables), clients)

    def find(self, connection: Session) -> bool:
        """True if the server already has exactly these tables. Raises StudyError if a table of one of these names was
        not created by pgtrial."""
        tables = self._generator.tables
        marks = {name: mark for name in tables if (mark := mark_on(connection, name)) is not None}
        refuse_foreign(connection, marks, self._part)
        return len(marks) == len(tables) and marks[tables[0]] == Mark(self._complete)
