"""Undoes a job on a given server by running the user's SQL for this, after each trial, and after a lab that was killed.

The record of a job has the server and database on which the job runs, the objects that it makes, and the numbers of the
transactions in which its sessions were observed. If the lab was killed, the next pgtrial first ends the sessions and
programs of the job. It then runs the SQL without asking only if it is certain that the job has changed something;
otherwise it asks a person.
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
"""The pause between two queries for the current transactions of a running job, in seconds."""
_JOIN_S = 5.0
"""The time for which the lab waits for the last query for the job's transactions when the job has ended, in seconds."""
_ITS_SESSIONS = "application_name = %s AND usename = session_user AND datname = current_database()"
"""The SQL condition for the sessions of the job in pg_stat_activity. application_name alone does not suffice, since
sessions of another role may have the same one."""
_END_SESSIONS = f"""SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE {_ITS_SESSIONS} AND pid <> pg_backend_pid()"""
_TRANSACTIONS = f"SELECT backend_xid::text FROM pg_stat_activity WHERE {_ITS_SESSIONS} AND backend_xid IS NOT NULL"
_PLACE = """SELECT concat((SELECT system_identifier::text FROM pg_control_system()), '/',
    (SELECT oid::text FROM pg_database WHERE datname = current_database()))"""
_PLACE_UNKNOWN = "SELECT concat('-/', (SELECT oid::text FROM pg_database WHERE datname = current_database()))"
_STATUS = """SELECT txid_status(now - ((now - %s) & 4294967295))
    FROM (SELECT txid_snapshot_xmax(txid_current_snapshot()) AS now) AS here"""


class Unclear(ArmError):
    """Raised when pgtrial is not certain that the objects which the undo would change were made by the job."""


@dataclass(frozen=True)
class JobRecord(ServerRecord):
    """The record of what one job may have changed on one server, and of the SQL that undoes it."""

    of_what = "a job"
    prefix = "job-undo-"

    statements: Sequence[str]
    sessions: str
    """The application_name that the job's sessions have."""
    names: Sequence[Named] = ()
    """The objects that the job makes and that the undo drops. Before the job, no objects with these names existed."""
    study: str = ""
    """The directory of the study to which the job belongs."""
    database: str = ""
    """The identifiers of the server and the database; "" if they are not known."""
    transactions: Sequence[str] = field(default=())
    """The IDs of the transactions in which the job's sessions were observed."""

    @property
    def job(self) -> str:
        """The name by which messages call the job."""
        return f"job on {self.target.label}"

    @property
    def sql(self) -> str:
        """The SQL that undoes the job, as one text for messages."""
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
            "place": self.database,
            "transactions": list(self.transactions),
        }

    @classmethod
    def of_changed(cls, arm: str, target: Target, content: Mapping[str, Any]) -> Self:
        statements = content["statements"]
        if not isinstance(statements, list) or not all(isinstance(each, str) for each in statements):
            raise TypeError("a person may have edited the statements")
        names = tuple(Named(*name) for name in content.get("names", ()))
        study, database = str(content.get("study", "")), str(content.get("place", ""))
        transactions = tuple(map(str, content.get("transactions", ())))
        return cls(arm, target, statements, content["sessions"], names, study, database, transactions)

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Undoes a job that a killed lab has left, unless the study that begins now is another one than that of the
        job. Returns a sentence on the result."""
        if occasion.study is not None and not (occasion.study and self.study == occasion.study):
            raise NotUndone(
                f"A {self.job} of the interrupted study {self.study or '(unknown)'} may have left changes there; "
                "pgtrial cleanup shows the SQL that would undo them"
            )
        try:
            with closing(self.target.connect()) as session:
                return [_undo_left(session, self, occasion.consent)]
        except (psycopg.Error, ArmError) as error:
            raise NotUndone(
                f"The {self.what}: it was not undone ({one_line(error)}); run pgtrial cleanup once this SQL can run "
                "there; you may correct the `statements` in the record for that",
                "if you undo it yourself",
            ) from None


def refuse_taken(target: Target, where: str, names: Sequence[Named]) -> None:
    """Raises StudyError if the database already has objects with the names that a job would create, since these objects
    belong to somebody else."""
    there = _there(target, names)
    if there:
        listed = ", ".join(dict.fromkeys(str(found.named) for found in there))
        raise StudyError(
            f"{where} already has {listed}, which the job would make or its undo would drop, but pgtrial changes "
            "no objects that others have made; choose other names, or drop these objects; if an interrupted study has "
            "left them, run pgtrial cleanup"
        )


@contextmanager
def undone_on_exit(record: JobRecord, run: Path, connect: Callable[[], Session]) -> Iterator[None]:
    """Records the job before it runs within the context, and undoes it on exit, by a session that `connect` opens.

    If the job failed because an object with one of its names already existed, the job has not made that object, and
    nothing is undone. Raises ArmError if the undo fails, and StudyError if an object with one of the names exists
    before the job begins.
    """
    with closing(connect()) as session:
        refuse_taken(record.target, f"arms.{record.arm}: {record.target.label}", record.names)
        record = replace(record, database=_database(session))
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
                    f"{marks.key('load.job', 'undo')} for later studies; for this study correct the `statements` in "
                    f"{entry}, or remove what prevents them; then run pgtrial cleanup"
                ) from None
            entry.unlink()


def _leave(record: JobRecord, connect: Callable[[], Session]) -> None:
    """Ends the sessions and programs of a job without undoing it. The record stays, so that `pgtrial cleanup` can ask
    the user."""
    with suppress(psycopg.Error, ArmError), closing(connect()) as session:
        _end(session, record)


class _Watch:
    """Writes the IDs of a running job's transactions to its record. If one of these transactions created an object, the
    job did."""

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
        # if no session can be opened, no transactions are recorded, and a person is asked before an undo
        with suppress(psycopg.Error, ArmError, HostError), closing(self._connect()) as session:
            while not self._over.is_set():
                known = self.record.transactions
                seen = [xid for (xid,) in session.execute(_TRANSACTIONS, [self.record.sessions]).fetchall()]
                if new := [xid for xid in seen if xid not in known]:
                    self.record = replace(self.record, transactions=(*known, *new))
                    Journal(self._run, (JobRecord,)).write(self.record, durable=False)
                self._over.wait(_LOOK_S)


def _undo_left(session: Session, record: JobRecord, consent: Consent | None) -> str:
    """Undoes a job that a killed lab has left. Returns a sentence on the result for the user. Raises psycopg.Error,
    ArmError, and Unclear."""
    if record.database and _database(session) != record.database:
        raise ArmError("another server or database than that of the job answers at this address")
    _end(session, record)
    if (against := obstacle_to_sql(session, "its SQL")) is not None:
        raise ArmError(against)
    there = _there(record.target, record.names)
    if not there and record.names and all(map(only_drops, record.statements)):
        return f"The {record.job} had changed nothing."
    if (why := _doubt(session, record, there)) is not None:
        question = f"The {record.job} of an interrupted study: {why}. This SQL would undo the job: {record.sql}"
        if consent is None:
            raise Unclear(f"{why}; in a terminal pgtrial cleanup asks, and pgtrial cleanup --yes runs the SQL")
        if not consent(question):
            raise Unclear("you have declined it")
    _undo(record)
    return f"Undid the {record.job}: {record.sql}."


def _doubt(session: Session, record: JobRecord, there: Sequence[Found]) -> str | None:
    """Returns the reason why it is not certain that the job has made the objects in `there`, or has changed anything at
    all; None if that is certain."""
    others = [str(found.named) for found in there if found.made_by not in record.transactions]
    if others:
        return f"somebody else may have made {', '.join(dict.fromkeys(others))} in the meantime"
    if there or any(_has_committed(session, xid) for xid in record.transactions):
        return None
    return "it is not known whether the job had changed anything"


def _has_committed(session: Session, xid: str) -> bool:
    if session.info.server_version < 100000:
        return False
    return bool(value(session, _STATUS, int(xid)) == "committed")


def _database(session: Session) -> str:
    try:
        return str(value(session, _PLACE))
    except psycopg.errors.InsufficientPrivilege:
        return str(value(session, _PLACE_UNKNOWN))


def _end(session: Session, record: JobRecord) -> None:
    """Ends the job's programs on this machine and the job's sessions on the server. Raises psycopg.Error, and ArmError
    if the sessions do not end."""
    end_programs("PGAPPNAME", record.sessions)
    deadline = time.monotonic() + _END_S
    while value(session, _END_SESSIONS, record.sessions):
        if time.monotonic() > deadline:
            raise ArmError(f"sessions of the job did not end within {_END_S:.0f}s")
        time.sleep(_POLL_S)


def _undo(record: JobRecord) -> None:
    with closing(
        record.target.connect_as_load()
    ) as of_study:  # a session of the load has the same search path as the job
        for statement in record.statements:
            of_study.execute(statement.encode())


def _there(target: Target, names: Sequence[Named]) -> list[Found]:
    """Returns those objects of the database that have one of these names, looked up with the search path of the job.
    Raises psycopg.Error."""
    if not names:
        return []
    with closing(target.connect_as_load()) as of_study:
        return find(of_study, names)
