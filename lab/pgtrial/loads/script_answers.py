"""Runs the statements of a script with given values of its variables, in transactions that are rolled back, and returns
for each statement the number of the rows that it returned, and a digest of these rows that does not depend on their
order. By these answers pgtrial checks whether two arms have the same data."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import generators
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from pgtrial.loads.parsed_statements import TRANSACTION, first_word
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session

_MODULUS = 1 << 256
_STEPS = {700: 2**12, 701: 2**30}
"""For the OIDs of `real` and `double precision`, the number of steps into which a doubling is divided. Two numbers are
the same if they lie in the same step, that is to about 4 and 9 digits. Sums and means depend in their last digits on
the order in which the rows were read, and thus on the plan."""
_OFFSET = (5**0.5 - 1) / 2
"""The position of whole powers of two within their step. As it is irrational, no decimal number lies on the border of
two steps."""


@dataclass(frozen=True)
class Answer:
    """The answer of a statement: the number of rows that it returned, and their digest."""

    rows: int
    digest: str


@dataclass(frozen=True)
class Bound:
    """A statement of a script as it is run once, with one value for each of its parameters."""

    number: int
    """The position of the statement among the commands of the script, counted from 0."""
    sql: str
    values: Sequence[str]


class AnswerRefused(Exception):
    """The error for a statement that the server rejected or cancelled, or that pgtrial did not run since it is COPY."""

    def __init__(self, number: int, sqlstate: str | None, words: str) -> None:
        super().__init__(words)
        self.number, self.sqlstate, self.words = number, sqlstate, words


TOO_SLOW = "57014"
"""The SQLSTATE (query_canceled) of a statement that was cancelled at its time limit."""


def answers_of(session: Session, statements: Sequence[Bound], limit_s: float, *, read_only: bool) -> list[Answer]:
    """Runs the statements as `results_of` does, and returns the answers of the statements that return rows, in their
    order. Raises the same errors."""
    results = results_of(session, statements, limit_s, read_only=read_only)
    return [_answer(result) for result in results if result.status == ExecStatus.TUPLES_OK]


def results_of(session: Session, statements: Sequence[Bound], limit_s: float, *, read_only: bool) -> Iterator[PGresult]:
    """Runs the statements in one transaction that is rolled back, and yields their results in their order. Statements
    that begin or end transactions are left out.

    `session` must have been opened by `Target.connect_as_load`. Raises AnswerRefused if a statement is COPY, if the
    server rejects it, or if the server cancels it since all statements together have taken `limit_s` seconds. Raises
    psycopg.OperationalError if the session is lost.
    """
    ends = time.monotonic() + limit_s
    with session.transaction(force_rollback=True):
        if read_only:
            session.execute("SET TRANSACTION READ ONLY")
        for statement in statements:
            if first_word(statement.sql) in TRANSACTION:  # all statements run in one transaction here
                continue
            if first_word(statement.sql) == "copy":
                raise AnswerRefused(statement.number, None, "it has COPY")
            left_ms = max(1, round((ends - time.monotonic()) * 1000))
            session.execute(f"SET LOCAL statement_timeout = {left_ms}".encode())
            yield _executed(session, statement)


def _executed(session: Session, statement: Bound) -> PGresult:
    values = [value.encode() for value in statement.values]
    session.pgconn.send_query_params(statement.sql.encode(), values)
    results = session.wait(generators.execute(session.pgconn))
    result: PGresult = results[-1]
    if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY):
        error = psycopg.errors.error_from_result(result)
        raise AnswerRefused(statement.number, error.sqlstate, message_of(error))
    return result


def _answer(result: PGresult) -> Answer:
    """Returns the answer in a result: the number of rows, and the sum of the digests of the rows, which is the same in
    any order and in which a repeated row counts each time."""
    total = sum(int.from_bytes(digest) for digest in row_digests(result))
    return Answer(result.ntuples, f"{total % _MODULUS:064x}")


def row_digests(result: PGresult, exact: Collection[int] = ()) -> Iterator[bytes]:
    """Yields the digest of each row of a result. Floating-point numbers that agree in the first digits have equal
    digests, except for those in the columns `exact`, which are counted from 0."""
    for row in range(result.ntuples):
        yield hashlib.sha256(b"".join(_cells(result, row, exact))).digest()


def _cells(result: PGresult, row: int, exact: Collection[int]) -> Iterator[bytes]:
    for column in range(result.nfields):
        value = result.get_value(row, column)
        steps = None if column in exact else _STEPS.get(result.ftype(column))
        if value is not None and steps is not None:
            value = _step(float(value), steps)
        yield b"N" if value is None else b"%d:%b" % (len(value), value)


def _step(number: float, steps: int) -> bytes:
    """Returns the sign of a floating-point number and the number of the step in which it lies; numbers without a
    logarithm are their own texts."""
    if number == 0:
        return b"0"  # also for minus zero
    if not math.isfinite(number):
        return b"%r" % number
    sign = b"-" if number < 0 else b"+"
    return sign + b"%d" % math.floor(math.log2(abs(number)) * steps + _OFFSET)


def in_words(values: Mapping[str, str]) -> str:
    """Returns the values of variables as a phrase for messages: `id = 7, who = 'anna'`."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())
