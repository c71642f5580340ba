"""The data of a replay on a server: a dump of pg_dump, restored once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.process import finished
from pgtrial.loads.sql_files import objection, reads_rows, statements
from pgtrial.loads.sql_scanner import BYTE_ORDER_MARK, Scanner
from pgtrial.loads.target import Session, Target
from pgtrial.machines.machine import HostError
from pgtrial.machines.trust import check_program
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.records.plan import LoadPoint
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.replay_files import DumpKind, dump_at, kind_of_dump

_GROWTH: dict[DumpKind, float] = {"plain": 1.5, "archive": 6.0}
"""About how many times the bytes of a dump its tables and indexes take; archives are compressed."""

_END = rb"\."
_TOGETHER = 1 << 20
"""Bytes of statements that are sent together, or a longer statement: a dump with --inserts has all its rows in them."""
_LONGEST_COPY = 1 << 20
"""Bytes of a COPY without its rows, at most: a table has 1,600 columns at most."""
_COMMAND = re.compile(rb"\s*(\\\S+)")
_RESTRICTS = (rb"\restrict", rb"\unrestrict")
_CONNECTS = (rb"\c", rb"\connect")


@dataclass(frozen=True)
class RestoredDump(Data):
    """All that a dump has."""

    marks: ClassVar[tuple[str, ...]] = ()

    sha256: str
    size: int = field(compare=False)
    path: Path = field(compare=False)

    @classmethod
    def needed(cls, spec: StudySpec, point: LoadPoint) -> Self | None:
        replay = spec.load.replay
        if point.replay is None or replay.data is None or replay.files is None:
            return None
        return cls(replay.files.data_sha256, replay.files.data_bytes, dump_at(replay.data))

    def relations(self, connection: Session) -> str:
        others = "SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_' OR nspname = 'information_schema'"
        return f"c.relnamespace NOT IN ({others})"

    @property
    def label(self) -> str:
        return f"the dump {self.path.name}"

    @property
    def digest(self) -> str:
        return f"dump {self.sha256}"

    @property
    def relations_made(self) -> str:
        return "what the dump creates"

    @property
    def short_name(self) -> str:
        return f"dump-{self.sha256[:8]}"

    @property
    def mb(self) -> int:
        return max(1, round(self.size * _GROWTH[kind_of_dump(self.path)] / 1e6))

    def make(self, server: Target, report: OnLine, maker: LoadMaker = ENGINE_HERE, *, in_steps: bool = False) -> None:
        """Restore it, freeze and analyse all tables. Raises ArmError with the words of PostgreSQL or of pg_restore."""
        if kind_of_dump(self.path) == "archive":
            _restore(self.path, server)
        else:
            _run(self.path, server)
        with server.connect() as connection:
            # hint bits and frozen rows are written now, not by the first reads of a trial
            connection.execute("VACUUM (FREEZE, ANALYZE)")

    def find(self, connection: Session) -> bool:
        """Whether it is there: no server keeps it but as a template."""
        return False


def _restore(path: Path, server: Target) -> None:
    """Run the pg_restore of the server's own installation."""
    if server.programs is None:
        raise ArmError(
            f"{path} is restored by pg_restore, for servers on this machine; for one on another host give a plain dump "
            "(pg_dump --format=plain)"
        )
    program = server.programs / "pg_restore"
    if not program.is_file():
        raise ArmError(
            f"{server.programs} has no pg_restore to restore {path}; name an installation that has it, or give a plain "
            "dump (pg_dump --format=plain)"
        )
    try:
        check_program(program)
    except HostError as error:
        raise ArmError(
            f"root does not run {program} to restore {path}: {error}; name an installation of root's, or give a plain "
            "dump (pg_dump --format=plain)"
        ) from None
    # the server has no other role than the lab's
    options = ["--no-owner", "--no-privileges", "--exit-on-error", f"--dbname={server.dbname}"]
    done = finished([program, *options, path], server.environment())
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        why = errors[0].removeprefix("pg_restore: error: ") if errors else f"it ended with status {done.returncode}"
        raise ArmError(f"pg_restore cannot restore {path}: {why}")


class _Statements:
    """The statements of a plain dump that are not executed yet, line by line."""

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._complete: list[bytes] = []
        self._begun: list[bytes] = []
        self._size = 0

    @property
    def between(self) -> bool:
        """Whether what comes next begins a statement."""
        return self._scanner.between

    @property
    def are_many(self) -> bool:
        """Whether it is time to execute them."""
        return self._size > _TOGETHER and self.between

    def add(self, line: bytes) -> bytes | None:
        """Take a line. Returns the COPY that ends with it, if its rows follow: that is not to be executed."""
        place, last = 0, b""
        # what ends quotes and statements is ASCII in every encoding that a server can have
        for token in self._scanner.tokens(line.decode("latin-1")):
            if token.kind == "end":
                self._complete += [last] if last else []
                last = b"".join((*self._begun, line[place : token.end]))
                self._begun, place = [], token.end
        self._begun.append(line[place:])
        self._size += len(line)
        if last and self.between and _awaits_rows(last):
            return last
        self._complete += [last] if last else []
        return None

    def take(self) -> bytes:
        """All that there is, which is no longer here then."""
        text = b"".join((*self._complete, *self._begun))
        self._complete, self._begun, self._size = [], [], 0
        return text


def _awaits_rows(statement: bytes) -> bool:
    if len(statement) > _LONGEST_COPY or b"stdin" not in statement.lower():
        return False
    return any(reads_rows(part.text) for part in statements(statement.decode("latin-1"), {}))


def _run(path: Path, server: Target) -> None:
    """Run a plain dump without psql, which not every installation has: some statements together, the rows of a COPY."""
    waiting = _Statements()
    with path.open("rb") as file, server.connect() as connection:
        lines = enumerate(file, 1)
        first = 1
        for number, line in lines:
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK.encode())  # noqa: PLW2901
            # of psql's own lines none stands within a statement: there they are text
            if waiting.between and (command := _COMMAND.match(line)) is not None:
                _check_command(command[1], path, number)
                line = b"\n"  # noqa: PLW2901 - it counts as a line
            copying = waiting.add(line)
            if copying is not None:
                _execute(connection, waiting.take(), path, first)
                first = _copy(connection, copying, lines, path, number) + 1
            elif waiting.are_many:
                _execute(connection, waiting.take(), path, first)
                first = number + 1
        _execute(connection, waiting.take(), path, first)


def _check_command(command: bytes, path: Path, number: int) -> None:
    """Raise ArmError for a command of psql that does something."""
    if command in _CONNECTS:
        raise ArmError(f"{path}, line {number}: it changes the database; make the dump without --create")
    if command not in _RESTRICTS:
        raise ArmError(
            f"the dump {path} cannot be restored: line {number}: {objection(command.decode(errors='replace'))}"
        )


def _execute(connection: Session, text: bytes, path: Path, first: int) -> None:
    for part in statements(text.decode("latin-1"), {}) if b"stdout" in text.lower() else ():
        if (against := objection(part.text)) is not None:
            raise ArmError(f"the dump {path} cannot be restored: line {first + part.line - 1}: {against}")
    try:
        connection.execute(text)
    except psycopg.Error as error:
        before = text.decode(errors="replace")[: int(error.diag.statement_position or 1) - 1]
        raise _refusal(error, path, first + before.count("\n")) from None


def _copy(connection: Session, command: bytes, lines: Iterator[tuple[int, bytes]], path: Path, number: int) -> int:
    """Copy the rows that follow, and return the number of their last line. Raises ArmError."""
    try:
        with connection.cursor() as cursor, cursor.copy(command.rstrip().removesuffix(b";")) as copy:
            for last, line in lines:
                if line.rstrip(b"\r\n") == _END:
                    return last
                copy.write(line)
            raise ArmError(f"{path} ends within the rows of a COPY; make the dump anew")
    except psycopg.Error as error:
        raise _refusal(error, path, number) from None


def _refusal(error: psycopg.Error, path: Path, line: int) -> ArmError:
    words = (error.diag.message_primary or one_line(error)).removesuffix(".")
    role = "; make the dump with --no-owner --no-privileges" if "role " in words and "does not exist" in words else ""
    return ArmError(f"the dump {path} cannot be restored: line {line}: PostgreSQL says: {words}{role}")
