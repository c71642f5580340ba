"""Runs and explains statements on the server of one arm of a rehearsal of an upgrade."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg.pq.abc import PGresult

from pgtrial.conduct.preparation.rehearsal import as_study_error
from pgtrial.evidence.observe.plans import SentStatement, planned
from pgtrial.loads.parsed_statements import first_word
from pgtrial.loads.script_answers import TOO_SLOW, AnswerRefused, Bound, results_of
from pgtrial.loads.server_message import message_of
from pgtrial.loads.target import Session, Target, value
from pgtrial.model.errors import StudyError
from pgtrial.model.records.trial import LoadStatement
from pgtrial.model.records.upgrade import NewError

_RECOVERY_S = 30.0
"""The time in seconds for which the lab tries to connect again after the server has ended the connection. A server that
has crashed needs some of it to recover."""
_POLL_S = 0.2

_OUTSIDE = ("25001", "2D000")
"""The SQLSTATEs of statements that cannot run within a transaction, such as VACUUM or a procedure that commits."""


@dataclass(frozen=True)
class Ran:
    """The end of one execution of a statement, or of the several statements of a file."""

    results: Sequence[PGresult] = ()
    error: NewError | None = None
    over_limit: bool = False
    why_not: str | None = None
    """The reason why pgtrial cannot run the statement at all, as a clause; None if it can. If a statement cannot run in
    a transaction, `error` has the words of the server."""


@dataclass
class StatementServer:
    """The server of one arm, and the session in which its statements run. Each statement runs in a transaction of its
    own, which is rolled back."""

    name: str
    """The name of the arm."""
    target: Target
    limit_s: float
    _session: Session | None = field(default=None, init=False)

    @property
    def version(self) -> str:
        """The version of the server, as it prints it. Raises StudyError if the server cannot be reached."""
        return str(value(self._connected(), "SHOW server_version")).partition(" ")[0]

    def run(self, parts: Sequence[str]) -> Ran:
        """Runs the statements, for at most `limit_s` seconds. Raises StudyError if the server cannot be reached any
        more."""
        bound = [Bound(number, part, ()) for number, part in enumerate(parts)]
        session = self._connected()
        try:
            return Ran(list(results_of(session, bound, self.limit_s, read_only=False)))
        except AnswerRefused as refused:
            if not session.closed:
                return _refused(refused)
            sqlstate, words = refused.sqlstate, refused.words
        except psycopg.Error as error:
            sqlstate, words = error.sqlstate, message_of(error)
        if session.closed:
            self.close()
            words = f"the server ended the connection: {words}"
        return Ran(error=NewError(sqlstate=sqlstate, message=words))

    def plan(self, parts: Sequence[str]) -> LoadStatement:
        """Returns the longest of the statements with its plan. Settings (SET) that come before it are in force. Raises
        StudyError if the session is lost."""
        longest = max(parts, key=len)
        session = self._connected()
        with as_study_error(self.name), session.transaction(force_rollback=True):
            for part in parts[: parts.index(longest)]:
                if first_word(part) == "set":
                    session.execute(part.encode())
            return planned(session, SentStatement(longest))

    def analyze(self) -> None:
        """Draws new planner statistics for all tables, by the role that owns the data, since functions of its indexes
        run. Raises StudyError with the message of the server."""
        try:
            with self.target.connect_as_load() as session:
                session.execute("ANALYZE")
        except psycopg.Error as error:
            raise StudyError(f"arms.{self.name}: ANALYZE failed: {message_of(error)}") from None

    def close(self) -> None:
        """Closes the session, if it is open."""
        if self._session is not None:
            with suppress(psycopg.Error):
                self._session.close()
            self._session = None

    def _connected(self) -> Session:
        if self._session is None or self._session.closed:
            with as_study_error(self.name):
                self._session = self._connect()
        return self._session

    def _connect(self) -> Session:
        ends = time.monotonic() + _RECOVERY_S
        while True:
            try:
                return self.target.connect_as_load()
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(_POLL_S)


def _refused(refused: AnswerRefused) -> Ran:
    if refused.sqlstate == TOO_SLOW:
        return Ran(over_limit=True)
    if refused.sqlstate is None:
        return Ran(why_not=refused.words)
    outside = f"it cannot run in a transaction that pgtrial rolls back: {refused.words}"
    error = NewError(sqlstate=refused.sqlstate, message=refused.words)
    return Ran(error=error, why_not=outside if refused.sqlstate in _OUTSIDE else None)
