"""Makes and finds the tables of the workload order-entry on a server, and checks TPC-C's consistency conditions on
them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

from pgtrial.loads.client_processes import count_clients
from pgtrial.loads.data.data import Data, freeze, refuse_foreign, too_old
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder, LoadMaker, OnLine, noticing
from pgtrial.loads.marks import Mark, mark_on
from pgtrial.loads.names import qualified
from pgtrial.loads.process import finished, last_words, starting
from pgtrial.loads.target import Session, Target
from pgtrial.model import marks
from pgtrial.model.errors import TrialError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import plural

TABLES = ("customer", "district", "history", "item", "new_order", "order_line", "orders", "stock", "warehouse")

_PROCEDURES = tuple(f"pgtrial_{name}" for name in ("new_order", "payment", "order_status", "delivery", "stock_level"))

MB_PER_WAREHOUSE = 105
"""The size, in megabytes, of the tables and indexes of one warehouse at fill factor 100."""

_MADE = "pgtrial order entry"
"""The beginning of the comments by which the engine marks the tables and procedures that it has created."""

_SINCE = 11
"""The first major version of PostgreSQL that has procedures."""

_SEED = 1
"""The seed of the random numbers with which the rows are generated. It never changes, so that all arms get the same
rows."""

_VIOLATED = 2
"""The exit status of the engine if one of TPC-C's consistency conditions is violated."""


@dataclass(frozen=True)
class OrderEntryTables(Data):
    """The nine tables of the workload order-entry, with a given number of `warehouses`; `fillfactor` is in percent."""

    marks: ClassVar[tuple[str, ...]] = (_MADE,)

    warehouses: int
    fillfactor: int = 100
    foreign_keys: bool = False
    procedures: bool = field(default=False, compare=False)
    """True if the transactions are stored procedures, which the load creates when it starts. The tables do not depend
    on this."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        if point.workload != ORDER_ENTRY:
            return None
        load = spec.load
        return cls(point.whole_scale, load.fillfactor, load.foreign_keys, load.procedures)

    def relations(self, connection: Session) -> str:
        return f"c.relname = ANY ('{{{','.join(TABLES)}}}')"

    @property
    def label(self) -> str:
        return f"order entry, {plural(self.warehouses, 'warehouse')}"

    @property
    def relations_made(self) -> str:
        return ", ".join(TABLES) + (f", the procedures {', '.join(_PROCEDURES)}" if self.procedures else "")

    @property
    def names(self) -> tuple[str, ...]:
        return TABLES

    @property
    def digest(self) -> str:
        return f"orders {self._mark}"

    @property
    def mb(self) -> int:
        return round(MB_PER_WAREHOUSE * self.warehouses * 100 / self.fillfactor)

    @property
    def short_name(self) -> str:
        keys = "-keys" if self.foreign_keys else ""
        return f"orders-w{self.warehouses}{f'-f{self.fillfactor}' if self.fillfactor != 100 else ''}{keys}"

    @property
    def _mark(self) -> str:
        """The text of the comment that the engine puts on the table warehouse when all tables are complete. It names
        the data, so that a later study can recognise them."""
        keys = "with" if self.foreign_keys else "without"
        warehouses = f"{self.warehouses} warehouse{'s' if self.warehouses != 1 else ''}"
        return f"{_MADE}: {warehouses}, seed {_SEED}, fillfactor {self.fillfactor}, {keys} foreign keys"

    def objection(self, connection: Session) -> str | None:
        """Returns why a server cannot have the data: if the study asks for stored procedures, the server may be too
        old."""
        if not self.procedures:
            return None
        cure = f"remove {marks.key_in('load', 'procedures', preposition='from')}"
        return too_old(connection, "the procedures of order-entry need", _SINCE, cure)

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the tables with one engine over several connections, and freezes their rows. Raises ArmError if the
        engine fails, and StudyError if a table of one of these names was not created by pgtrial."""
        with server.connect() as connection:
            self.find(connection)  # raises StudyError if tables with these names exist that pgtrial did not create
            clients = count_clients(connection)
        command = ["order-entry", "load", f"--warehouses={self.warehouses}", f"--fillfactor={self.fillfactor}"]
        command += [f"--random-seed={_SEED}", *(["--foreign-keys"] if self.foreign_keys else [])]
        maker.make(DataOrder(f"loading {self.label}", command, noticing(server.environment())), report)
        with server.connect() as connection:
            freeze(connection, qualified(connection, TABLES), clients)

    def find(self, connection: Session) -> bool:
        """True if the server already has exactly these tables. Raises StudyError if a table of one of these names was
        not created by pgtrial."""
        marks = {name: mark for name in TABLES if (mark := mark_on(connection, name)) is not None}
        refuse_foreign(connection, marks, _MADE)
        return len(marks) == len(TABLES) and marks["warehouse"] == Mark(self._mark)


def violated_condition(server: Target) -> str | None:
    """Returns the first consistency condition that does not hold, with its number and the two values that should be
    equal; None if all conditions hold.

    Raises TrialError if the engine cannot check the conditions, and StudyError if the engine cannot be started.
    """
    with starting() as engine:
        done = finished([engine, "order-entry", "check"], server.environment())
    if done.returncode == 0:
        return None
    errors = [line.partition("error: ")[2] for line in done.stderr.splitlines() if "error: " in line]
    if done.returncode != _VIOLATED or not errors:
        words = errors[-1] if errors else last_words(done.stderr.splitlines(), done.returncode)
        raise TrialError(f"the consistency conditions could not be checked: {words}")
    others = len(errors) - 1
    more = f", and {others} more {'condition does' if others == 1 else 'conditions do'} not hold" if others else ""
    return errors[0] + more
