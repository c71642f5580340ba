"""Splits files of plain SQL into statements, replaces variables in them as pgbench and psql do, and runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from pgtrial.loads.made_objects import MarkingSession
from pgtrial.loads.parsed_statements import TRANSACTION
from pgtrial.loads.server_message import message_of
from pgtrial.loads.sql_scanner import BYTE_ORDER_MARK, Scanner
from pgtrial.loads.target import Session
from pgtrial.model.errors import StudyError, TrialError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import short_statement

_GONE = "57P"
"""The first characters of the SQLSTATEs with which a server ends sessions, such as 57P01 (admin_shutdown). The error of
a connection that broke has no SQLSTATE."""


_COPY = re.compile(r"(COPY\s.+?\sFROM\s+)'([^']+)'(.*)\Z", re.IGNORECASE | re.DOTALL)
_COPY_STDIN = re.compile(r"COPY\b.+?\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_COPY_STDOUT = re.compile(r"COPY\b.+?\bTO\s+STDOUT\b", re.IGNORECASE | re.DOTALL)
_COMMAND = re.compile(r"\\\w+|\\\S")


_ALONE = frozenset(("vacuum", "call", "do", "cluster", "reindex", "discard"))
"""The first words of statements that cannot run in a transaction with others, or that may end it."""
_ALONE_PAIRS = {("alter", "type"), ("alter", "system"), ("create", "database"), ("drop", "database")}
_OF_READING = frozenset(("client_encoding", "names", "standard_conforming_strings", "backslash_quote"))
"""The settings by which PostgreSQL reads the text of statements. It reads a whole message before it runs the first
statement of it."""


@dataclass(frozen=True)
class Statement:
    """One statement without its semicolon, and the line on which it begins, counted from 1."""

    text: str
    line: int


def statements(text: str, variables: Mapping[str, str]) -> list[Statement]:
    """Returns the statements of a file, with variables replaced by their values: `:name` by the value as it is,
    `:'name'` by the value as a quoted SQL literal.

    A name after a colon that is not a variable stays as it is. Nothing is replaced in quoted texts, comments and
    dollar-quoted bodies of functions.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    complete: list[Statement] = []
    parts: list[str] = []
    begin = position = 0
    for token in Scanner().tokens(text):
        parts.append(text[position : token.start])
        position = token.end
        if token.kind == "comment":
            parts.append(" ")
            if not "".join(parts).strip():
                parts, begin = [], position
        elif token.kind == "end":
            complete += _statement(parts, text, begin)
            parts, begin = [], position
        elif token.name in variables:
            value = variables[token.name]
            parts.append(sql.Literal(value).as_string() if token.kind == "literal" else value)
        else:
            parts.append(text[token.start : token.end])
    parts.append(text[position:])
    return [*complete, *_statement(parts, text, begin)]


def _statement(parts: list[str], text: str, begin: int) -> list[Statement]:
    """Joins the parts of a text to one statement. Returns a list with this statement, or an empty list if the parts are
    blank. The line of the statement is that of the first character after `begin` that is not white space; comments
    before the statement are already skipped."""
    whole = "".join(parts).strip()
    first = len(text) - len(text[begin:].lstrip())
    return [Statement(whole, text.count("\n", 0, first) + 1)] if whole else []


def names_in(text: str) -> set[str]:
    """Returns the names that follow a colon in an SQL text. They may be names of variables."""
    return {token.name for token in Scanner().tokens(text) if token.name}


def reads_rows(statement: str) -> bool:
    """True if a statement is COPY ... FROM STDIN, which takes rows from its session. The statement must not begin with
    a comment."""
    return _COPY_STDIN.match(statement) is not None


def is_sent_alone(words: Sequence[str]) -> bool:
    """True if a statement with these first words, in lower case, must be sent in a message of its own. PostgreSQL runs
    the statements of one message as one transaction.

    Such a statement is VACUUM, CREATE INDEX CONCURRENTLY, a procedure that commits, or ALTER TYPE, whose new value only
    later transactions may use. A BEGIN in the same message would take the statements before it into its transaction,
    and a SET of the encoding would come too late for the statements after it.
    """
    if not words:
        return False
    sets_reading = words[0] in ("set", "reset") and not _OF_READING.isdisjoint(words)
    is_of_pairs = tuple(words[:2]) in _ALONE_PAIRS
    return words[0] in _ALONE | TRANSACTION or "concurrently" in words or is_of_pairs or sets_reading


def objection(statement: str) -> str | None:
    """Returns why pgtrial cannot run a statement, with a remedy, as the rest of a sentence that begins with the
    statement's position; None if pgtrial can run it."""
    if (command := _COMMAND.match(statement)) is not None:
        return f"{command[0]} is a command of psql, which pgtrial does not run; write SQL in its place"
    if _COPY_STDOUT.match(statement) is not None:
        return (
            "pgtrial does not read the rows of COPY ... TO STDOUT; write SELECT in its place, or remove the statement"
        )
    return None


@dataclass(frozen=True)
class SqlFiles:
    """The SQL files of a pack, with the values of its variables."""

    pack: str
    files: Mapping[str, str]
    variables: Mapping[str, str]

    def __contains__(self, file: str) -> bool:
        return file in self.files

    def run(
        self, session: Session | MarkingSession, file: str, report: Callable[[str], None] = lambda line: None
    ) -> None:
        """Runs all statements of a file. `COPY table FROM 'rows.csv'` reads the file rows.csv of the pack.

        Raises StudyError with the file, the line, the statement and PostgreSQL's message, or TrialError if the server
        does not answer any more.
        """
        todo = statements(self.files[file], self.variables)
        for number, statement in enumerate(todo, 1):
            report(f"{file}: statement {number} of {len(todo)}")
            self._run(session, file, statement)

    def rows(self, session: Session, file: str) -> list[tuple[object, ...]]:
        """Runs all statements of a file, and returns the rows of all of them. Raises the same errors as `run`."""
        todo = statements(self.files[file], self.variables)
        return [row for statement in todo for row in self._run(session, file, statement)]

    def _run(self, session: Session | MarkingSession, file: str, statement: Statement) -> list[tuple[object, ...]]:
        """Runs one statement, and returns its rows."""
        try:
            if (against := objection(statement.text)) is not None:
                raise StudyError(f"the pack {self.pack}: {file}, line {statement.line}: {against}")
            if reads_rows(statement.text):
                raise StudyError(
                    f"the pack {self.pack}: {file}, line {statement.line}: pgtrial does not read the rows of COPY ... "
                    "FROM STDIN here; put them into the file rows.csv or rows.tsv in the folder of the pack, and "
                    "write COPY ... FROM 'rows.csv'"
                )
            copied = _COPY.match(statement.text)
            if copied is not None:
                plain = session.session if isinstance(session, MarkingSession) else session
                self._copy(plain, file, statement, copied)
                return []
            cursor = session.execute(statement.text.encode())
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            words = message_of(error)
            if isinstance(error, psycopg.OperationalError) and (error.sqlstate or _GONE).startswith(_GONE):
                raise TrialError(
                    f"the server stopped answering while it ran {file} of the pack {self.pack}: {words}"
                ) from None
            shown = short_statement(statement.text)
            where = f"the pack {self.pack}: {file}, line {statement.line} ({shown})"
            raise StudyError(f"{where}: PostgreSQL says: {words}") from None

    def _copy(self, session: Session, file: str, statement: Statement, copied: re.Match[str]) -> None:
        name = copied[2]
        if name not in self.files:
            raise StudyError(
                f"the pack {self.pack}: {file}, line {statement.line}: COPY reads {quoted(name)}, which is not in the "
                "folder of the pack; put the rows there, in a file whose name ends in .csv or .tsv"
            )
        with session.cursor() as cursor, cursor.copy(f"{copied[1]}STDIN{copied[3]}".encode()) as copy:
            copy.write(self.files[name])
