"""Files of plain SQL: their statements, with variables filled in as pgbench and psql write them, and running them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgtrial.loads.target import Session
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.units import shortened

_GONE = "57P"
"""SQLSTATEs of a server that ends sessions; a connection that broke has none."""

_SHOWN = 60
"""Characters of a statement in a message."""

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*)
      | (?P<quoted>\b[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z))
      | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
      | (?P<cast>::)
      | :(?P<literal>')(?P<named>[A-Za-z_]\w*)' | :(?P<name>[A-Za-z_]\w*)
      | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
_BLOCK_COMMENT = re.compile(r"/\*|\*/")

_COPY = re.compile(r"(COPY\s.+?\sFROM\s+)'([^']+)'(.*)\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, and the line on which it begins, from 1."""

    text: str
    line: int

    @property
    def shown(self) -> str:
        """Its beginning, for a message."""
        return shortened(" ".join(self.text.split()), _SHOWN)


def statements(text: str, variables: Mapping[str, str]) -> list[Statement]:
    """The statements of a file, variables filled in: `:name` as it is, `:'name'` as a quoted text.

    Other names after a colon stay as they are, as do those in quoted texts, comments and bodies of functions ($$).
    """
    found: list[Statement] = []
    parts: list[str] = []
    begin = place = 0
    while (token := _TOKEN.search(text, place)) is not None:
        parts.append(text[place : token.start()])
        place = token.end()
        name = token["name"] or token["named"]
        if token["comment"]:
            place = _after_comment(text, token.start()) if token["comment"] == "/*" else place
            parts.append(" ")
        elif token["end"]:
            found += _statement(parts, text, begin)
            parts, begin = [], place
        elif name in variables:
            parts.append(sql.Literal(variables[name]).as_string() if token["literal"] else variables[name])
        else:
            parts.append(token[0])
    parts.append(text[place:])
    return [*found, *_statement(parts, text, begin)]


def names_in(text: str) -> set[str]:
    """The names of variables that a file may have filled in."""
    return {name for token in _TOKEN.finditer(text) if (name := token["name"] or token["named"])}


def _statement(parts: list[str], text: str, begin: int) -> list[Statement]:
    """The statement that these parts make, if they are one."""
    whole = "".join(parts).strip()
    if not whole:
        return []
    before = text[:begin] + _leading(text[begin:])
    return [Statement(whole, before.count("\n") + 1)]


_SPACE = re.compile(r"(?:\s+|--[^\n]*)*")


def _leading(text: str) -> str:
    """What stands before a statement: spaces and comments."""
    place = 0
    while (found := _SPACE.match(text, place)) is not None:
        place = found.end()
        if not text.startswith("/*", place):
            break
        place = _after_comment(text, place)
    return text[:place]


def _after_comment(text: str, place: int) -> int:
    """The place after a block comment; those of PostgreSQL may hold others."""
    depth = 0
    for mark in _BLOCK_COMMENT.finditer(text, place):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


@dataclass(frozen=True)
class SqlFiles:
    """The files of a pack, with the values of its variables."""

    pack: str
    files: Mapping[str, str]
    variables: Mapping[str, str]

    def __contains__(self, file: str) -> bool:
        return file in self.files

    def run(self, session: Session, file: str, report: Callable[[str], None] = lambda line: None) -> None:
        """Run all statements of a file; `COPY table FROM 'rows.csv'` reads that file of the pack.

        Raises StudyError naming file, line and statement with the server's words; TrialError if the server is gone.
        """
        todo = statements(self.files[file], self.variables)
        for number, statement in enumerate(todo, 1):
            report(f"{file}: statement {number} of {len(todo)}")
            self._run(session, file, statement)

    def rows(self, session: Session, file: str) -> Iterator[tuple[object, ...]]:
        """Run a file, with all rows that its statements return. Raises as `run` does."""
        for statement in statements(self.files[file], self.variables):
            cursor = self._run(session, file, statement)
            if cursor is not None and cursor.description is not None:
                yield from cursor.fetchall()

    def _run(self, session: Session, file: str, statement: Statement) -> psycopg.Cursor[tuple[object, ...]] | None:
        try:
            copied = _COPY.match(statement.text)
            if copied is None:
                return session.execute(statement.text.encode())
            self._copy(session, file, statement, copied)
        except psycopg.OperationalError as error:
            if (error.sqlstate or _GONE).startswith(_GONE):
                gone = f"the server did not answer {file} of the pack {self.pack}"
                raise TrialError(f"{gone}: {_first_line(error)}") from None
            raise self._complaint(file, statement, error) from None
        except psycopg.Error as error:
            raise self._complaint(file, statement, error) from None
        return None

    def _copy(self, session: Session, file: str, statement: Statement, copied: re.Match[str]) -> None:
        name = copied[2]
        if name not in self.files:
            raise StudyError(
                f"the pack {self.pack}: {file}, line {statement.line}: COPY reads {name!r}, which is not in its "
                "folder; the rows lie there, in a file that ends in .csv or .tsv"
            )
        with session.cursor() as cursor, cursor.copy(f"{copied[1]}STDIN{copied[3]}".encode()) as copy:
            copy.write(self.files[name])

    def _complaint(self, file: str, statement: Statement, error: psycopg.Error) -> StudyError:
        return StudyError(
            f"the pack {self.pack}: {file}, line {statement.line} ({statement.shown}): PostgreSQL says: "
            f"{_first_line(error)}"
        )


def _first_line(error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__
