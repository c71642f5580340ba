"""Runs the SQL of plain dumps, of SQL files and of archives on a server, and explains errors with the line and a
remedy."""

from __future__ import annotations

import re

import psycopg
from psycopg import generators
from psycopg.pq import ExecStatus, TransactionStatus

from pgtrial.loads.data.dump_text import DumpText, Part
from pgtrial.loads.server_message import message_of
from pgtrial.loads.sql_files import Statement, objection, statements
from pgtrial.loads.target import Session
from pgtrial.model.errors import ArmError, one_line
from pgtrial.model.units import short_statement

_ROW = re.compile(r"COPY [^,]+, line (\d+)")
"""Finds the number of the row, counted from 1, in the error context of a COPY."""
_COPIED = re.compile(r"COPY\s", re.IGNORECASE)
_SYNTAX_ERROR = "42601"
_NOT_IN_ENCODING = "22021"
_UNKNOWN_NAME = "42704"
_NO_RIGHT = "42501"
_AS_OWNER = (
    "pgtrial restores data as a role without superuser rights, so that no statement in the dump can run programs or "
    "read files of this machine"
)


class PlainFile:
    """Runs the statements of a dump on a server. `connection` is a session of the role that owns the database."""

    def __init__(self, connection: Session, text: DumpText, made_by: str | None, *, has_lines: bool) -> None:
        """Sets up the object for one dump, whose statements come from `text`.

        `made_by` is the version of the pg_dump that wrote the dump, if it is known. `has_lines` is true if the dump is
        a text file, so that line numbers help the user.
        """
        self._connection = connection
        self._text = text
        self._made_by = made_by
        self._has_lines = has_lines

    def run(self) -> None:
        """Runs all statements. Raises ArmError with the name of the dump, the line if the dump is a text file, the
        statement and PostgreSQL's message, or if the dump ends within a transaction."""
        for part in self._text.parts():
            if part.has_rows:
                self._copy(part)
            elif part.may_fail:
                self._try(part)
            else:
                self._execute(part)
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            raise ArmError(
                f"{self._text.named} ends within a transaction, so that PostgreSQL undoes what the file has done since "
                "its last BEGIN; write COMMIT at its end"
            )

    def _try(self, part: Part) -> None:
        """Runs a statement about privileges, such as GRANT. If the role has no right to do so, the statement is
        skipped, since it does not affect the rows."""
        in_block = self._connection.info.transaction_status == TransactionStatus.INTRANS
        failure = self._send(b"SAVEPOINT pgtrial; " * in_block + part.text, part)
        if failure is None:
            return
        if failure[0].sqlstate != _NO_RIGHT:
            raise self._refusal(failure[0], part.line, part.text.decode(errors="replace"))
        if in_block:
            self._send(b"ROLLBACK TO SAVEPOINT pgtrial", part)

    def _execute(self, part: Part) -> None:
        """Runs the statements of a part. Raises ArmError if PostgreSQL rejects one of them."""
        text = part.text
        parts = statements(text.decode("latin-1"), {}) if b"stdout" in text.lower() else []
        for one in parts:
            if (against := objection(one.text)) is not None:
                raise ArmError(f"{self._where(part.line + one.line - 1)}: {against}")
        if (failure := self._send(text, part)) is not None:
            error, number = failure
            statement = _failed(error, text, number)
            raise self._refusal(error, part.line + statement.line - 1, statement.text)

    def _send(self, text: bytes, part: Part) -> tuple[psycopg.Error, int] | None:
        """Sends statements in one message. Returns None if they succeed, or else the error and the number of the failed
        statement, counted from 1."""
        connection = self._connection
        try:
            connection.pgconn.send_query(text)
            results = connection.wait(generators.execute(connection.pgconn))
        except psycopg.Error as error:
            raise ArmError(
                f"{self._where(part.line)}: the server did not answer: {one_line(error)}; its log may say why"
            ) from None
        if not results or results[-1].status != ExecStatus.FATAL_ERROR:
            return None
        return psycopg.errors.error_from_result(results[-1]), len(results)

    def _copy(self, part: Part) -> None:
        """Sends the rows that follow a COPY in the dump. Raises ArmError if PostgreSQL rejects them."""
        text = part.text.rstrip().removesuffix(b";")
        begin = part.line + part.text.count(b"\n")
        rows = self._text.rows()
        try:
            with self._connection.cursor() as cursor, cursor.copy(text) as copy:
                for row in rows:
                    copy.write(row)
        except psycopg.Error as error:
            if error.sqlstate == _NO_RIGHT and self._is_of_extension(error):
                for _ in rows:
                    pass
                return
            in_row = _ROW.search(error.diag.context or "")
            raise self._refusal(
                error, begin + int(in_row[1]) if in_row else begin, text.decode(errors="replace")
            ) from None

    def _is_of_extension(self, error: psycopg.Error) -> bool:
        """True if PostgreSQL rejected the rows because their table belongs to an extension. A superuser has created
        this table, so the role that owns the database has no right to fill it. The function then also notes that the
        rows are left out."""
        words = error.diag.message_primary or ""
        if self._connection.info.transaction_status != TransactionStatus.IDLE or "table" not in words:
            return False
        table = words.rpartition(" ")[2]
        row = self._connection.execute(
            "SELECT 1 FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) d.objid "
            "WHERE d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" "
            "AND c.relname OPERATOR(pg_catalog.=) %s::pg_catalog.name",
            (table,),
        ).fetchone()
        if row is not None:
            self._text.left_out.append(f"the rows of {table}, a table of an extension")
        return row is not None

    def _refusal(self, error: psycopg.Error, line: int, statement: str) -> ArmError:
        words = message_of(error)
        shown = short_statement(statement)
        cure = ""
        if error.sqlstate == _NOT_IN_ENCODING:
            cure = "; save the file in UTF-8, or name its encoding at its beginning: SET client_encoding = 'LATIN1';"
        elif error.sqlstate == _NO_RIGHT and _COPIED.match(statement):
            cure = f"; {_AS_OWNER}: write COPY ... FROM stdin and the rows behind it, as pg_dump does"
        elif error.sqlstate == _NO_RIGHT:
            cure = f"; {_AS_OWNER}: remove this statement from the dump"
        elif error.sqlstate == _UNKNOWN_NAME and "parameter" in words and self._made_by is not None:
            cure = f"; the dump was made by pg_dump {self._made_by}: make it with the pg_dump of this server's version"
        return ArmError(f"{self._where(line)} ({shown}): PostgreSQL says: {words}{cure}")

    def _where(self, line: int) -> str:
        return f"{self._text.named}, line {line}" if self._has_lines else self._text.named


def _line_beyond_utf8(text: bytes) -> int | None:
    """Returns the line of the first byte that is not valid in UTF-8, counted from 1; None if there is none."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return 1 + text.count(b"\n", 0, error.start)
    return None


def _failed(error: psycopg.Error, text: bytes, number: int) -> Statement:
    """Returns the statement that failed among several that were sent in one message. PostgreSQL reports a syntax error
    in any of them before it runs the first one, so for a syntax error the position in the error message shows which
    statement failed."""
    parts = statements(text.decode("latin-1"), {}) or [Statement("", 1)]
    position = error.diag.statement_position
    if error.sqlstate == _NOT_IN_ENCODING and (line := _line_beyond_utf8(text)) is not None:
        return Statement([part for part in parts if part.line <= line][-1].text, line)
    if number > 1 or error.sqlstate != _SYNTAX_ERROR or position is None:
        return parts[min(number, len(parts)) - 1]
    line = 1 + text.decode(errors="replace")[: int(position) - 1].count("\n")
    begun = [part for part in parts if part.line <= line] or parts[:1]
    return Statement(begun[-1].text, line)
