"""Splits the text of a dump into the parts that are sent to a server together: several statements, a single statement,
or the rows of a COPY."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pgtrial.loads.data.restored_statements import Treated, is_looked_at
from pgtrial.loads.sql_files import is_sent_alone, objection, reads_rows, statements
from pgtrial.loads.sql_scanner import BYTE_ORDER_MARK, Scanner
from pgtrial.model.errors import ArmError

_END = rb"\."
_TOGETHER = 1 << 20
"""The number of bytes at which collected statements are sent together. A dump of pg_dump --inserts has all its rows in
statements."""
_LONGEST = 1 << 20
"""The length, in bytes, of the longest statement that is examined. Longer statements only insert rows: a COPY without
its rows is shorter, since a table has at most 1,600 columns."""
_COMMAND = re.compile(rb"\s*(\\\S+)")
_RESTRICTS = (rb"\restrict", rb"\unrestrict")
_CONNECTS = (rb"\c", rb"\connect")
_OF_A_SERVER = b"-- PostgreSQL database cluster dump"
"""A line at the beginning of the output of pg_dumpall, which pgtrial does not restore, since it has all databases of a
server."""


@dataclass(frozen=True)
class Part:
    """A part of a dump that is sent to the server in one message."""

    text: bytes
    line: int
    """The number of the line of the dump on which this part begins, counted from 1."""
    has_rows: bool = False
    """True if the part is a COPY whose rows follow in the dump."""
    may_fail: bool = False


class DumpText:
    """Reads a dump line by line, and yields its parts. `named` is the name of the dump in messages."""

    def __init__(
        self, lines: Iterator[bytes], named: str, treat: Callable[[str], Treated], together: int = _TOGETHER
    ) -> None:
        """Sets up the reader for the lines of a dump.

        `treat` returns the replacement of a statement that is examined. Statements are collected and sent together as
        soon as they have more than `together` bytes.
        """
        self.named = named
        self.left_out: list[str] = []
        """The objects that the database lacks because pgtrial left out statements of the dump; phrases for messages."""
        self._lines = lines
        self._treat = treat
        self._together = together
        self._scanner = Scanner()
        self._complete: list[bytes] = []
        self._begun: list[bytes] = []
        self._size = 0
        self._line = 1
        """The number of the line at which the next part begins."""
        self._of_a_server = False

    def parts(self) -> Iterator[Part]:
        """Yields all parts in their order. After a part with `has_rows`, the caller must read all rows by `rows` before
        it asks for the next part."""
        for number, line in enumerate(self._lines):
            text = line.removeprefix(BYTE_ORDER_MARK.encode()) if number == 0 else line
            self._of_a_server = self._of_a_server or text.startswith(_OF_A_SERVER)
            # psql's backslash commands stand between statements; within a statement such a line is text
            if self._scanner.between and (command := _COMMAND.match(text)) is not None:
                self._check_command(command[1])
                text = b"\n"  # the empty line keeps the line numbers right
            yield from self._add(text)
        yield from self._take()

    def rows(self) -> Iterator[bytes]:
        """Yields the rows of the COPY that was the last part. Raises ArmError if the dump ends before the end of the
        rows."""
        for line in self._lines:
            self._line += 1
            if line.rstrip(b"\r\n") == _END:
                return
            yield line
        raise ArmError(f"{self.named} ends within the rows of a COPY; make the dump again")

    def _add(self, line: bytes) -> Iterator[Part]:
        position = 0
        last: tuple[bytes, list[str]] | None = None
        # latin-1 keeps every byte: the characters that end quotes and statements are ASCII in every server encoding
        for token in self._scanner.tokens(line.decode("latin-1")):
            if token.kind == "end":
                if last is not None:
                    yield from self._end(*last)
                last = b"".join((*self._begun, line[position : token.end])), self._scanner.ended
                self._begun, position = [], token.end
        rest = line[position:]
        self._size += len(line)
        if last is not None and self._scanner.between and _awaits_rows(last[0]):
            yield from self._take()
            yield self._next(Part(last[0], self._line, has_rows=True))
        elif last is not None:
            yield from self._end(*last)
        self._begun.append(rest)
        if self._size > self._together and self._scanner.between:
            yield from self._take()

    def _end(self, statement: bytes, words: list[str]) -> Iterator[Part]:
        """Collects a complete statement, or the statement that replaces it. Yields parts if the statement has to be
        sent alone."""
        if not is_looked_at(words) or len(statement) > _LONGEST:
            yield from self._collect(statement, words)
            return
        [text] = [part.text for part in statements(statement.decode("latin-1"), {})]
        what = self._treat(text)
        if what.left_out and what.left_out not in self.left_out:
            self.left_out.append(what.left_out)
        if what.text != text:
            # the number of lines is kept, so that the line numbers of later statements stay right
            lines = statement.count(b"\n") - what.text.count("\n")
            statement = b"\n" * lines + (f"{what.text};".encode("latin-1") if what.text else b"")
        if what.may_fail:
            yield from self._take()
            yield self._next(Part(statement, self._line, may_fail=True))
        else:
            yield from self._collect(statement, words)

    def _collect(self, statement: bytes, words: list[str]) -> Iterator[Part]:
        """Collects a statement, or yields it and what was collected before it if it has to be sent alone."""
        if is_sent_alone(words):
            yield from self._take()
            yield self._next(Part(statement, self._line))
        else:
            self._complete.append(statement)

    def _take(self) -> Iterator[Part]:
        """Yields the statements that were collected so far as one part, unless they are blank, and begins to collect
        again."""
        text = b"".join((*self._complete, *self._begun))
        self._complete, self._begun, self._size = [], [], 0
        part = self._next(Part(text, self._line))
        if text.strip():
            yield part

    def _next(self, part: Part) -> Part:
        self._line += part.text.count(b"\n")
        return part

    def _check_command(self, command: bytes) -> None:
        """Raises ArmError for a backslash command of psql in the dump, apart from `restrict` and `unrestrict`, which
        pg_dump itself writes."""
        line = self._line + sum(part.count(b"\n") for part in (*self._complete, *self._begun))
        where = f"{self.named}, line {line}"
        if command in _CONNECTS and self._of_a_server:
            raise ArmError(
                f"{where}: the file is the output of pg_dumpall, with all databases of a server; give a dump of the "
                "one database that the load uses (pg_dump DATABASE)"
            )
        if command in _CONNECTS:
            raise ArmError(f"{where}: the dump connects to another database; make it without pg_dump's option --create")
        if command not in _RESTRICTS:
            raise ArmError(f"{where}: {objection(command.decode(errors='replace'))}")


def _awaits_rows(statement: bytes) -> bool:
    if len(statement) > _LONGEST or b"stdin" not in statement.lower():
        return False
    return any(reads_rows(part.text) for part in statements(statement.decode("latin-1"), {}))
