"""Files of SQL and plain dumps: running them on a server, and what a file cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import generators
from psycopg.pq import ExecStatus

from pgtrial.files.reading import open_file
from pgtrial.loads.sql_files import Statement, objection, reads_rows, statements
from pgtrial.loads.sql_scanner import BYTE_ORDER_MARK, Scanner
from pgtrial.loads.target import Session, Target
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.units import shortened

_END = rb"\."
_TOGETHER = 1 << 20
"""Bytes of statements that are sent together, or a longer statement: a dump with --inserts has all its rows in them."""
_LONGEST_COPY = 1 << 20
"""Bytes of a COPY without its rows, at most: a table has 1,600 columns at most."""
_COMMAND = re.compile(rb"\s*(\\\S+)")
_RESTRICTS = (rb"\restrict", rb"\unrestrict")
_CONNECTS = (rb"\c", rb"\connect")

_SHOWN = 60
"""Characters of a statement in a message."""
_ROW = re.compile(r"COPY [^,]+, line (\d+)")
"""In the context of an error, the row from 1."""
_SYNTAX_ERROR = "42601"
_UNKNOWN_SETTING = "42704"
_MADE_BY = re.compile(rb"-- Dumped by pg_dump version (\S+)")


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


def run_file(path: Path, server: Target) -> None:
    """Run a file of SQL or a plain dump: some statements together, the rows of a COPY.

    It needs no psql, which not every installation has. Raises ArmError with file, line, statement and PostgreSQL's
    words.
    """
    waiting = _Statements()
    with open_file(path) as file, server.connect() as connection:
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
        raise ArmError(f"{path}, line {number}: {objection(command.decode(errors='replace'))}")


def _execute(connection: Session, text: bytes, path: Path, first: int) -> None:
    """Run the statements of a text, which begins on the line `first`. Raises ArmError."""
    parts = statements(text.decode("latin-1"), {}) if b"stdout" in text.lower() else []
    for part in parts:
        if (against := objection(part.text)) is not None:
            raise ArmError(f"{path}, line {first + part.line - 1}: {against}")
    try:
        connection.pgconn.send_query(text)
        results = connection.wait(generators.execute(connection.pgconn))
    except psycopg.Error as error:
        raise ArmError(f"{path}, line {first}: the server did not answer: {one_line(error)}") from None
    if not results or results[-1].status != ExecStatus.FATAL_ERROR:
        return
    failure = psycopg.errors.error_from_result(results[-1])
    statement = _failed(failure, text, len(results))
    raise _refusal(failure, path, first + statement.line - 1, statement.text)


def _failed(error: psycopg.Error, text: bytes, number: int) -> Statement:
    """The statement of a text that failed: what has a wrong form anywhere fails before the first one is run."""
    parts = statements(text.decode("latin-1"), {}) or [Statement("", 1)]
    position = error.diag.statement_position
    if number > 1 or error.sqlstate != _SYNTAX_ERROR or position is None:
        return parts[min(number, len(parts)) - 1]
    line = 1 + text.decode(errors="replace")[: int(position) - 1].count("\n")
    begun = [part for part in parts if part.line <= line] or parts[:1]
    return Statement(begun[-1].text, line)


def _copy(connection: Session, command: bytes, lines: Iterator[tuple[int, bytes]], path: Path, number: int) -> int:
    """Copy the rows that follow, and return the number of their last line. Raises ArmError."""
    text = command.rstrip().removesuffix(b";")
    try:
        with connection.cursor() as cursor, cursor.copy(text) as copy:
            for last, line in lines:
                if line.rstrip(b"\r\n") == _END:
                    return last
                copy.write(line)
            raise ArmError(f"{path} ends within the rows of a COPY; make the dump anew")
    except psycopg.Error as error:
        row = _ROW.search(error.diag.context or "")
        place = number + int(row[1]) if row is not None else number
        raise _refusal(error, path, place, text.decode(errors="replace")) from None


def _refusal(error: psycopg.Error, path: Path, line: int, statement: str) -> ArmError:
    words = (error.diag.message_primary or one_line(error)).removesuffix(".")
    shown = shortened(" ".join(statement.split()), _SHOWN)
    cure = ""
    if "role " in words and "does not exist" in words:
        cure = "; make the dump with --no-owner --no-privileges"
    elif error.sqlstate == _UNKNOWN_SETTING and (made_by := _version_of(path)) is not None:
        cure = f"; it was made by pg_dump {made_by}: make it by the pg_dump of this server's version"
    return ArmError(f"{path}, line {line} ({shown}): PostgreSQL says: {words}{cure}")


def _version_of(path: Path) -> str | None:
    """The version of the pg_dump that has made a plain dump."""
    with open_file(path) as file:
        made_by = _MADE_BY.search(file.read(4096))
    return made_by[1].decode() if made_by is not None else None
