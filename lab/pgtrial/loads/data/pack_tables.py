"""Makes the tables of a pack (a workload in a folder of SQL files) on a server by the pack's SQL files, and finds them
again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar, Self

import psycopg
from psycopg import sql

from pgtrial.loads.data.data import MarkedTables, too_old
from pgtrial.loads.data.made_ready import make_ready
from pgtrial.loads.data.restored_statements import DumpNeeds, Extension
from pgtrial.loads.load_makers import LoadMaker, OnLine
from pgtrial.loads.made_objects import MarkingSession
from pgtrial.loads.marks import Mark, table_marks
from pgtrial.loads.named_objects import Kind, made
from pgtrial.loads.sql_files import SqlFiles, names_in, statements
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.pack import PackLoad
from pgtrial.model.study.packs import DATA, ROWS, SCHEMA, pack_files, read_pack
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.workloads import digest


@dataclass(frozen=True)
class PackTables(MarkedTables):
    """The tables that a pack (a workload in a folder of SQL files) makes by its files schema.sql and data.sql, at one
    scale.

    A pack can have several mixes (sets of scripts with weights). Two load points with different mixes of one pack have
    equal data if the mixes use the same tables.
    """

    mark: ClassVar[str] = "made by pgtrial for a pack: "
    unfinished: ClassVar[str] = "being made by pgtrial for a pack"
    marks: ClassVar[tuple[str, ...]] = (mark, unfinished)

    name: str
    scale: int
    mb_per_scale: float
    server: int
    """The oldest major version of PostgreSQL on which the pack runs."""
    extensions: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = field(repr=False)
    """The names and texts of the files that determine the data: the SQL files for schema and data, and files with
    rows."""
    variables: tuple[tuple[str, str], ...]
    """The variables that occur in the files of `files`, as pairs of name and value."""

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        load = point.pack
        if load is None:
            return None
        files = pack_files(load.name, spec.scripts)
        pack = read_pack(load.name, files)
        shaping = {file: text for file, text in files.items() if file in (SCHEMA, DATA) or file.endswith(ROWS)}
        used = {word for name in (SCHEMA, DATA) for word in names_in(shaping.get(name, ""))}
        variables = {
            name: text for name, text in _variables_of(load, point.whole_scale).items() if name in used - {"mix"}
        }
        return cls(
            load.name,
            point.whole_scale,
            load.mb_per_scale,
            pack.server,
            tuple(pack.extensions),
            tuple(sorted(shaping.items())),
            tuple(sorted(variables.items())),
        )

    @property
    def has_users_rows(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return f"the pack {self.name}, scale {self.scale}"

    @property
    def relations_made(self) -> str:
        extensions = f", and the extensions {', '.join(self.extensions)} where they are not there"
        return f"what {SCHEMA} of the pack {self.name} creates{extensions if self.extensions else ''}"

    @property
    def mb(self) -> int:
        return round(self.mb_per_scale * self.scale)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names_of("relation")

    @property
    def routines(self) -> tuple[str, ...]:
        return self._names_of("routine")

    def _names_of(self, kind: Kind) -> tuple[str, ...]:
        variables = dict(self.variables)
        todo = [each for file, text in self.files if file in (SCHEMA, DATA) for each in statements(text, variables)]
        found = (named for statement in todo for named in made(statement.text) if named.kind == kind)
        return tuple(dict.fromkeys(named.name for named in found))

    @property
    def digest(self) -> str:
        return f"pack-{self.name} {digest(json.dumps([self.scale, self.extensions, self.files, self.variables]))}"

    @property
    def short_name(self) -> str:
        return f"pack-{self.name}-s{self.scale}-{self.digest.partition(' ')[2][:8]}"

    def objection(self, connection: Session) -> str | None:
        """Returns why a server cannot have the data: it is too old, or it lacks an extension."""
        old = too_old(connection, f"the pack {self.name} needs", self.server, "another workload")
        if old is not None:
            return old
        known = connection.execute(
            "SELECT name FROM pg_available_extensions WHERE name = ANY (%s)", (list(self.extensions),)
        ).fetchall()
        lacking = sorted(set(self.extensions) - {name for (name,) in known})
        if lacking:
            return (
                f"the pack {self.name} needs the extension {lacking[0]}, which is not available on this server; "
                "install its package there, or use a server that has it"
            )
        return None

    @property
    def replaced(self) -> str:
        """The beginning of the marks (comments by pgtrial) on all complete tables of this pack, at whatever scale and
        with whatever variables they were made."""
        return f"{self.mark}pack-{self.name} "

    def fill(self, server: Target, report: OnLine, maker: LoadMaker) -> None:
        """Creates the extensions of the pack, and runs schema.sql and data.sql.

        Raises StudyError if a statement fails, TrialError if the server stops answering, and ArmError if an extension
        cannot be created.
        """
        files = SqlFiles(self.name, dict(self.files), dict(self.variables))
        if server.owner is not None:
            needs = DumpNeeds({name: Extension(name) for name in self.extensions})
            with server.connect() as session:
                make_ready(session, needs, server.owner)
        with server.connect_as_load() as connection:
            marking = MarkingSession(connection, self.unfinished)
            self._create_extensions(marking)
            for file in (SCHEMA, DATA):
                if file in files:
                    files.run(marking, file, report)

    def _create_extensions(self, session: MarkingSession) -> None:
        for extension in self.extensions:
            try:
                create = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(extension))
                session.execute(create.as_bytes())
            except psycopg.Error as error:
                raise ArmError(
                    f"the pack {self.name} needs the extension {extension}, but CREATE EXTENSION failed: PostgreSQL "
                    f"says: {one_line(error)}"
                ) from None

    def find(self, connection: Session) -> bool:
        """True if the server already has the tables of exactly this data. Raises StudyError if tables of this pack were
        restored or copied into the database, so that pgtrial must not drop them."""
        if Mark(self.mark + self.digest) in table_marks(connection).values():
            return True
        self.refuse_copies(connection)
        return False


def sql_files(spec: StudySpec, point: LoadPoint) -> SqlFiles | None:
    """Returns the SQL files of a load point's pack with the values of its variables; None if the workload is not a
    pack."""
    if point.pack is None:
        return None
    return SqlFiles(
        point.pack.name, pack_files(point.pack.name, spec.scripts), _variables_of(point.pack, point.whole_scale)
    )


def _variables_of(load: PackLoad, scale: int) -> dict[str, str]:
    """Returns the values that replace variables in the SQL files of a pack: those of the pack's variables, the scale,
    and the name of the mix (the set of scripts that the load runs)."""
    return {**load.variables, "scale": str(scale), "mix": load.mix or ""}
