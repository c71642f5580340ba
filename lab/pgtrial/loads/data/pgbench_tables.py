"""Makes and finds pgbench's tables on a server, and resets them before a trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from psycopg import sql

from pgtrial.loads.client_processes import count_clients
from pgtrial.loads.data.data import Data, freeze, vacuum
from pgtrial.loads.data.pgbench_names import TABLES, names_tables
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder, LoadMaker, OnLine, noticing
from pgtrial.loads.made_objects import drop_marked, marking_query
from pgtrial.loads.marks import Mark, mark_on, mark_tables
from pgtrial.loads.names import qualified
from pgtrial.loads.target import Session, Target, value
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.spec import StudySpec

MB_PER_SCALE = 15
"""The size, in megabytes, of tables and indexes per scale unit (100,000 accounts) at fill factor 100, as pgbench's
documentation gives it."""

_MARK = "loaded by pgtrial: "
_UNFINISHED = "being loaded by pgtrial: "
_ROWS = "g"
_CREATION = "t"
_PHASES = (_CREATION, _ROWS, "v", "p", "f")
"""The steps of pgbench's initialisation, by its letters: tables, rows, vacuum, primary keys, foreign keys."""

_CONNECTIONS = 8
"""The number of connections over which all engines together load rows. If there are more engines than this, each uses
one connection."""


@dataclass(frozen=True)
class PgbenchTables(Data):
    """The tables of pgbench at a scale; `fillfactor` is in percent."""

    marks: ClassVar[tuple[str, ...]] = (_MARK, _UNFINISHED)

    scale: int
    fillfactor: int = 100
    foreign_keys: bool = False

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        """Returns pgbench's tables if a load point needs them: for pgbench's workloads, for scripts and for client
        programs.

        On a server of the user, scripts need the tables only if they name one of them or if the study sets `scale`, and
        client programs only if the study sets `scale`.
        """
        if point.kind.query_files or point.without_tables:
            return None
        scripts = [spec.scripts[name] for name in point.script_names if name in spec.scripts]
        if (
            (scripts or not point.kind.is_by_engine)
            and spec.has_given
            and not spec.load.scale_is_set
            and not any(map(names_tables, scripts))
        ):
            return None
        return cls(point.whole_scale, spec.load.fillfactor, spec.load.foreign_keys)

    def relations(self, connection: Session) -> str:
        return "c.relname LIKE 'pgbench\\_%'"

    @property
    def label(self) -> str:
        return f"scale {self.scale}"

    @property
    def relations_made(self) -> str:
        return ", ".join(TABLES)

    @property
    def names(self) -> tuple[str, ...]:
        return TABLES

    @property
    def short_name(self) -> str:
        return f"s{self.scale}"

    @property
    def mb(self) -> int:
        """The approximate size of tables and indexes in megabytes. A lower fill factor takes more space in
        proportion."""
        return round(MB_PER_SCALE * self.scale * 100 / self.fillfactor)

    @property
    def digest(self) -> str:
        return json.dumps(asdict(self))

    @property
    def key(self) -> dict[str, Any]:
        return asdict(self)

    def find(self, connection: Session) -> bool:
        """True if the server already has exactly these tables. Raises StudyError if it has tables of these names with
        another scale, fill factor or foreign keys that pgtrial did not create, and ArmError if it has only some of the
        four tables."""
        present = find_tables(connection)
        if present is None:
            return False
        if not present.ours and present.contents != self:
            raise StudyError(
                f"{present.where} already holds pgbench tables of scale {present.contents.scale}, fillfactor "
                f"{present.contents.fillfactor}, that pgtrial did not make and will not replace; set scale to "
                f"{present.contents.scale} only, drop these tables, or name another database in the dsn"
            )
        return present.contents == self and not present.missing

    def clear(self, connection: Session) -> bool:
        """Drops nothing, since the engine replaces the tables when it loads them. Returns true if an earlier load of
        these tables was interrupted and can be resumed."""
        return bool(_missing(connection, self))

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Makes the tables with the engine, marks them as pgtrial's by a comment, and runs VACUUM (FREEZE, ANALYZE) on
        them. Raises ArmError if the engine fails, or if somebody replaces one of the tables meanwhile.

        With `in_steps`, the tables' comments say after each step of pgbench's initialisation which steps are left. A
        load that was interrupted is later resumed with the step in which it was interrupted.
        """
        phases: tuple[str, ...] = _PHASES if self.foreign_keys else _PHASES[:-1]
        with server.connect() as connection:
            clients = count_clients(connection)
        if in_steps:
            phases = _left(server, self) or phases
        elif maker.engines <= 1:
            # a single engine creates and loads the tables in one run, and can therefore load the rows frozen
            phases = ("".join(phases),)
        if phases[0].startswith(_CREATION):
            with server.connect() as connection:
                drop_marked(connection, self.marks)
        for done, steps in enumerate(phases, 1):
            _carry_out(server, self, steps, report, maker)
            if (
                in_steps and phases[done:] and steps != _CREATION
            ):  # the engine itself sets this mark when it creates the tables
                _mark(server, _UNFINISHED, {**asdict(self), "missing": phases[done:]})
        with server.connect() as connection:
            freeze(connection, qualified(connection, TABLES), clients)
        _mark(server, _MARK, asdict(self))

    def used_as_found(self, connection: Session) -> str | None:
        present = find_tables(connection)
        return f"pgbench's tables of {self.label}" if present is not None and not present.ours else None

    def reset(self, connection: Session) -> None:
        """Brings the tables close to their initial state before a trial: empties pgbench_history and removes dead
        rows. Tables of others that inherit from pgbench_history keep their rows."""
        [history] = qualified(connection, ["pgbench_history"])
        connection.execute(f"TRUNCATE ONLY {history}".encode())
        vacuum(connection, qualified(connection, TABLES))


@dataclass(frozen=True)
class Found:
    """pgbench's tables as they were found in a database. `ours` is true if pgtrial loaded them, and is therefore
    allowed to replace them.

    `missing` lists the steps of pgbench's initialisation that an interrupted load did not finish; () if the tables are
    complete.
    """

    contents: PgbenchTables
    ours: bool
    where: str
    missing: tuple[str, ...] = ()


def find_tables(connection: Session) -> Found | None:
    """Returns pgbench's tables in this database, as the search path finds them; None if none of the four tables exists.

    Raises ArmError if only some of the four tables exist.
    """
    present = {name: mark for name in TABLES if (mark := mark_on(connection, name)) is not None}
    if not present:
        return None
    database = str(value(connection, "SELECT current_database()"))
    if len(present) < len(TABLES):
        missing = ", ".join(sorted(set(TABLES) - present.keys()))
        raise ArmError(
            f"the database {database} has some of pgbench's tables but lacks {missing}: drop the remaining ones, or "
            "name another database in the dsn"
        )
    made = _content(present["pgbench_accounts"]) if len(set(present.values())) == 1 else None
    if made is not None and made.missing:
        return replace(made, where=f"database {database}")
    accounts, branches = qualified(connection, ["pgbench_accounts", "pgbench_branches"])
    options = value(connection, "SELECT reloptions FROM pg_class WHERE oid = %s::regclass", accounts) or []
    fillfactor = next((int(item.split("=")[1]) for item in options if item.startswith("fillfactor=")), 100)
    keys = value(
        connection,
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = %s::regclass",
        accounts,
    )
    scale = value(connection, f"SELECT count(*) FROM {branches}")
    return Found(PgbenchTables(int(scale), fillfactor, bool(keys)), made is not None, f"database {database}")


def _content(mark: Mark) -> Found | None:
    """Returns pgbench's tables as a mark (the comment on one of them) describes them; None if the comment was not
    written by pgtrial for pgbench's tables."""
    if not mark.is_ours((_MARK, _UNFINISHED)):
        return None
    try:
        content = json.loads(mark.text.partition(": ")[2])
        missing = tuple(content.pop("missing", ()))
        return Found(PgbenchTables(**content), ours=True, where="", missing=missing)
    except (ValueError, TypeError, AttributeError):
        return None


def _missing(connection: Session, tables: PgbenchTables) -> tuple[str, ...]:
    """Returns the steps of pgbench's initialisation that an interrupted load of exactly these tables did not finish; ()
    if no load was interrupted."""
    present = find_tables(connection)
    return present.missing if present is not None and present.contents == tables else ()


def _left(server: Target, tables: PgbenchTables) -> tuple[str, ...]:
    """Returns the steps of pgbench's initialisation that an interrupted load did not finish. Also drops the primary or
    foreign keys that the first of these steps created before it was interrupted, so that the step can be repeated."""
    with server.connect() as connection:
        missing = _missing(connection, tables)
    if missing:
        _undo_constraints(server, "f" if missing[0] == "f" else "pf" if missing[0] == "p" else "")
    return missing


def _carry_out(server: Target, tables: PgbenchTables, steps: str, report: OnLine, maker: LoadMaker) -> None:
    """Carries out steps of pgbench's initialisation. If loading the rows is the only step in `steps`, all machines of a
    fleet share it; otherwise one engine carries out the steps."""
    engines = maker.engines if steps == _ROWS else 1
    if engines > 1:
        # engines that share the rows do not delete earlier rows: those of an interrupted load are removed here
        with server.connect() as connection:
            tables_alone = ", ".join(f"ONLY {name}" for name in qualified(connection, TABLES))
            connection.execute(f"TRUNCATE {tables_alone}".encode())
    order = tables_order(server.environment(), tables.scale, steps, fillfactor=tables.fillfactor, engines=engines)
    if steps.startswith(_CREATION):
        missing = _PHASES[1:] if tables.foreign_keys else _PHASES[1:-1]
        with server.connect() as connection:
            mark = _UNFINISHED + json.dumps({**asdict(tables), "missing": missing})
            marking = f"--mark-by={marking_query(connection, mark)}"
        order = replace(order, command=[*order.command, marking])
    maker.make(order, report)


def tables_order(
    env: Mapping[str, str], scale: int, steps: str, *, fillfactor: int = 100, engines: int = 1
) -> DataOrder:
    """Returns the command of the engine that carries out `steps` of pgbench's initialisation, as a DataOrder. Several
    `engines` can share the step `g`, which generates the rows, if it is the only step."""
    command = ["pgbench", "-i", "-q", "-I", steps, "-s", str(scale), "-F", str(fillfactor)]
    if engines > 1:
        command.append(f"--load-jobs={max(1, _CONNECTIONS // engines)}")
    return DataOrder(f"loading the tables at scale {scale}", command, noticing(env), engines)


def _undo_constraints(server: Target, kinds: str) -> None:
    """Drops the primary keys (`p`) and foreign keys (`f`) that an interrupted step created.

    If an engine was killed, the server still completes the engine's last statement. This function therefore first locks
    the tables, which waits for the end of that statement.
    """
    with server.connect() as connection, connection.transaction():
        tables = qualified(connection, TABLES)
        connection.execute(f"LOCK TABLE {', '.join(tables)}".encode())
        rows = connection.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype::text = ANY (%s) "
            "AND conrelid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name) ORDER BY contype",
            (list(kinds), tables),
        ).fetchall()
        for table, name in rows:
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {sql.Identifier(name).as_string()}".encode())


def _mark(server: Target, mark: str, content: dict[str, Any]) -> None:
    """Writes a comment on all four tables, which marks them as pgtrial's and contains `content`. Raises ArmError if one
    of them has no earlier mark by pgtrial, since somebody has then replaced it by another table."""
    with server.connect() as connection, connection.transaction():
        tables = ", ".join(qualified(connection, TABLES))
        connection.execute(f"LOCK TABLE {tables} IN SHARE UPDATE EXCLUSIVE MODE".encode())
        marks = {name: mark_on(connection, name) for name in TABLES}
        replaced = [name for name, there in marks.items() if there is None or not there.is_ours((_MARK, _UNFINISHED))]
        if replaced:
            raise ArmError(
                f"{', '.join(replaced)}: somebody replaced these tables while pgtrial was loading its own tables of "
                "the same names; rename or drop the new ones, or name another database in the dsn"
            )
        mark_tables(connection, TABLES, mark + json.dumps(content))
