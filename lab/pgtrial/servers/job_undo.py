"""Undoes a job on a given server: runs the user's SQL after each trial, and after a lab that ended abruptly.

The record of a job says on which server and database it runs, what it makes, and in which transactions its sessions
were seen. After a lab that was killed, the sessions and programs of the job are ended first. Then the SQL runs by
itself only if it is certain that the job changed something; if that is unclear, a person is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import psycopg

from pgtrial.loads.job_command import end_programs
from pgtrial.loads.named_objects import Found, Named, find, only_drops
from pgtrial.loads.target import Session, Target, value
from pgtrial.machines.journal import Consent, Journal, NotUndone, Occasion
from pgtrial.machines.machine import HostError, Machine
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, NameTaken, StudyError, one_line
from pgtrial.servers.load_rights import obstacle_to_sql
from pgtrial.servers.server_record import ServerRecord, write_down

_END_S = 60.0
_POLL_S = 0.05
_LOOK_S = 0.5
"""The pause between two queries for the transactions of a running job, in seconds."""
_JOIN_S = 5.0
"""How long the lab waits for the last of these queries, in seconds."""
_ITS_SESSIONS = "application_name = %s AND usename = session_user AND datname = current_database()"
"""The condition for the job's sessions. Another role may use their application_name for its own."""
_END_SESSIONS = f"""SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE {_ITS_SESSIONS} AND pid <> pg_backend_pid()"""
_TRANSACTIONS = f"SELECT backend_xid::text FROM pg_stat_activity WHERE {_ITS_SESSIONS} AND backend_xid IS NOT NULL"
_PLACE = """SELECT concat((SELECT system_identifier::text FROM pg_control_system()), '/',
    (SELECT oid::text FROM pg_database WHERE datname = current_database()))"""
_PLACE_UNKNOWN = "SELECT concat('-/', (SELECT oid::text FROM pg_database WHERE datname = current_database()))"
_STATUS = """SELECT txid_status(now - ((now - %s) & 4294967295))
    FROM (SELECT txid_snapshot_xmax(txid_current_snapshot()) AS now) AS here"""


class Unclear(ArmError):
    """It is not certain that the job has made what the undo would change."""


@dataclass(frozen=True)
class JobRecord(ServerRecord):
    """The record of what one job may have changed on one server, and of the SQL that undoes it."""

    of_what = "a job"
    prefix = "job-undo-"

    statements: Sequence[str]
    sessions: str
    """The application_name of the job's sessions."""
    names: Sequence[Named] = ()
    """The objects that the job makes and its SQL drops. Nothing had these names before the job."""
    study: str = ""
    """The directory of the study."""
    place: str = ""
    """The identifiers of server and database; "" if they were not found out."""
    transactions: Sequence[str] = field(default=())
    """The numbers of the transactions in which the job's sessions were seen."""

    @property
    def job(self) -> str:
        """The name of the job in messages."""
        return f"job on {self.target.label}"

    @property
    def sql(self) -> str:
        """The SQL that undoes the job, for messages."""
        return "; ".join(self.statements)

    @property
    def what(self) -> str:
        return f"{self.job}, to be undone by: {self.sql}"

    def changed(self) -> Mapping[str, Any]:
        return {
            "statements": list(self.statements),
            "sessions": self.sessions,
            "names": [list(name) for name in self.names],
            "study": self.study,
            "place": self.place,
            "transactions": list(self.transactions),
        }

    @classmethod
    def of_changed(cls, arm: str, target: Target, content: Mapping[str, Any]) -> Self:
        statements = content["statements"]
        if not isinstance(statements, list) or not all(isinstance(each, str) for each in statements):
            raise TypeError("a person may have edited the statements")
        names = tuple(Named(*name) for name in content.get("names", ()))
        study, place = str(content.get("study", "")), str(content.get("place", ""))
        transactions = tuple(map(str, content.get("transactions", ())))
        return cls(arm, target, statements, content["sessions"], names, study, place, transactions)

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Undoes a job that a killed lab left, unless another study begins. Returns a sentence on that."""
        if occasion.study is not None and not (occasion.study and self.study == occasion.study):
            raise NotUndone(
                f"A {self.job} of the interrupted study {self.study or '(unknown)'} may have left changes there; "
                "pgtrial cleanup shows what would undo it"
            )
        try:
            with closing(self.target.connect()) as session:
                return [_undo_left(session, self, occasion.consent)]
        except (psycopg.Error, ArmError) as error:
            raise NotUndone(
                f"The {self.what}: it was not undone ({one_line(error)}); run pgtrial cleanup once its SQL can run "
                "there, for which you may correct the `statements` in its record",
                "if you undo it yourself",
            ) from None


def refuse_taken(target: Target, where: str, names: Sequence[Named]) -> None:
    """Raises StudyError if the database has objects with names that a job makes: they are somebody else's."""
    there = _there(target, names)
    if there:
        listed = ", ".join(str(found.named) for found in there)
        raise StudyError(
            f"{where} already has {listed}, which the job would make or its undo would drop, and pgtrial touches "
            "nothing that others have made; take other names or drop what is there, or, if an interrupted study left "
            "it, run pgtrial cleanup"
        )


@contextmanager
def undone_on_exit(record: JobRecord, run: Path, connect: Callable[[], Session]) -> Iterator[None]:
    """Lets the job run within the context; on exit the job is undone by a session that `connect` opens.

    If the job failed because an object with one of its names already existed, the job has not made that object, and
    nothing is undone. Raises ArmError, and StudyError if a name is taken before the job begins.
    """
    with closing(connect()) as session:
        refuse_taken(record.target, f"arms.{record.arm}: {record.target.label}", record.names)
        record = replace(record, place=_place(session))
    entry = write_down(record, run)
    watch = _Watch(record, run, connect)
    taken = False
    try:
        with watch:
            yield
    except NameTaken:
        taken = True
        raise
    finally:
        if taken:
            _leave(watch.record, connect)
        else:
            try:
                with closing(connect()) as session:
                    _end(session, record)
                _undo(record)
            except (psycopg.Error, ArmError) as error:
                reason = one_line(error).removeprefix(f"arms.{record.arm}: ")
                raise ArmError(
                    f"arms.{record.arm}: the {record.job} could not be undone ({reason}); correct "
                    f"{marks.key('load.job', 'undo')} for the next study, and for this one the `statements` in "
                    f"{entry}, or what is in their way; then run pgtrial cleanup"
                ) from None
            entry.unlink()


def _leave(record: JobRecord, connect: Callable[[], Session]) -> None:
    """Ends what is left of a job whose SQL is not run. The record stays for pgtrial cleanup."""
    with suppress(psycopg.Error, ArmError), closing(connect()) as session:
        _end(session, record)


class _Watch:
    """Notes the transactions of a running job in its record: what they made was made by the job."""

    def __init__(self, record: JobRecord, run: Path, connect: Callable[[], Session]) -> None:
        self.record = record
        self._run, self._connect = run, connect
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(_JOIN_S)

    def _look(self) -> None:
        # without a session nothing is noted, and a person is asked later
        with suppress(psycopg.Error, ArmError, HostError), closing(self._connect()) as session:
            while not self._over.is_set():
                known = self.record.transactions
                seen = [xid for (xid,) in session.execute(_TRANSACTIONS, [self.record.sessions]).fetchall()]
                if new := [xid for xid in seen if xid not in known]:
                    self.record = replace(self.record, transactions=(*known, *new))
                    Journal(self._run, (JobRecord,)).write(self.record, durable=False)
                self._over.wait(_LOOK_S)


def _undo_left(session: Session, record: JobRecord, consent: Consent | None) -> str:
    """Undoes a job that a killed lab left. Returns a sentence. Raises psycopg.Error, ArmError, and Unclear."""
    if record.place and _place(session) != record.place:
        raise ArmError("another server or database answers there")
    _end(session, record)
    if (against := obstacle_to_sql(session, "its SQL")) is not None:
        raise ArmError(against)
    there = _there(record.target, record.names)
    if not there and record.names and all(map(only_drops, record.statements)):
        return f"The {record.job} had changed nothing."
    if (why := _doubt(session, record, there)) is not None:
        question = f"The {record.job} of an interrupted study: {why}. What would undo it is: {record.sql}"
        if consent is None:
            raise Unclear(f"{why}; in a terminal pgtrial cleanup asks, and pgtrial cleanup --yes runs the SQL")
        if not consent(question):
            raise Unclear("it was declined")
    _undo(record)
    return f"Undid the {record.job}: {record.sql}."


def _doubt(session: Session, record: JobRecord, there: Sequence[Found]) -> str | None:
    """Returns why it is not certain that the objects in `there` were made by the job, or that the job changed anything
    at all; None if it is certain."""
    others = [str(found.named) for found in there if found.made_by not in record.transactions]
    if others:
        return f"{', '.join(others)} may have been made by somebody else since"
    if there or any(_has_committed(session, xid) for xid in record.transactions):
        return None
    return "it is not known whether it had changed anything"


def _has_committed(session: Session, xid: str) -> bool:
    if session.info.server_version < 100000:
        return False
    return bool(value(session, _STATUS, int(xid)) == "committed")


def _place(session: Session) -> str:
    try:
        return str(value(session, _PLACE))
    except psycopg.errors.InsufficientPrivilege:
        return str(value(session, _PLACE_UNKNOWN))


def _end(session: Session, record: JobRecord) -> None:
    """Ends the job's programs on this machine and its sessions. Raises psycopg.Error, and ArmError."""
    end_programs("PGAPPNAME", record.sessions)
    deadline = time.monotonic() + _END_S
    while value(session, _END_SESSIONS, record.sessions):
        if time.monotonic() > deadline:
            raise ArmError(f"sessions of the job did not end within {_END_S:.0f}s")
        time.sleep(_POLL_S)


def _undo(record: JobRecord) -> None:
    with closing(record.target.connect_as_load()) as of_study:  # the same search path as in the job
        for statement in record.statements:
            of_study.execute(statement.encode())


def _there(target: Target, names: Sequence[Named]) -> list[Found]:
    """Returns those of these objects that exist under the names that the job uses. Raises psycopg.Error."""
    if not names:
        return []
    with closing(target.connect_as_load()) as of_study:
        return find(of_study, names)
