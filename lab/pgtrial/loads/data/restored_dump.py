"""The data of a replay on a server: a dump of pg_dump, restored once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.load_makers import ENGINE_HERE, LoadMaker, OnLine
from pgtrial.loads.process import finished
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

_COPY = re.compile(rb"COPY\s.+\sFROM\s+stdin;\s*\Z", re.IGNORECASE)
_END = rb"\."
_TOGETHER = 1 << 20
"""Bytes of statements that are sent together, or a longer statement: a dump with --inserts has all its rows in them."""
_RESTRICTS = re.compile(rb"\\(un)?restrict\s")
_CONNECTS = re.compile(rb"\\c(onnect)?\s")


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


def _run(path: Path, server: Target) -> None:
    """Run a plain dump without psql, which not every installation has: some statements together, the rows of a COPY."""
    scanner = Scanner()
    with path.open("rb") as file, server.connect() as connection:
        lines = enumerate(file, 1)
        statements: list[bytes] = []
        size = 0
        first = 1
        for number, line in lines:
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK.encode())  # noqa: PLW2901
            # of psql's own lines none stands within a statement: there they are text
            between = scanner.between
            if between and _CONNECTS.match(line):
                raise ArmError(f"{path}, line {number}: it changes the database; make the dump without --create")
            if between and _COPY.fullmatch(line):
                _execute(connection, statements, path, first)
                first = _copy(connection, line, lines, path, number) + 1
                statements, size = [], 0
                continue
            if between and _RESTRICTS.match(line):
                line = b"\n"  # noqa: PLW2901 - it counts as a line
            # what ends quotes and statements is ASCII in every encoding that a server can have
            for _ in scanner.tokens(line.decode("latin-1")):
                pass
            statements.append(line)
            size += len(line)
            if size > _TOGETHER and scanner.between:
                _execute(connection, statements, path, first)
                statements, size, first = [], 0, number + 1
        _execute(connection, statements, path, first)


def _execute(connection: Session, lines: Sequence[bytes], path: Path, first: int) -> None:
    text = b"".join(lines)
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
