"""Undoes a job on a given server: runs the user's SQL after each trial, and after a lab that ended abruptly.

The record of a job is in the run directory from before the job until it is undone. It says on which server and database
the job runs, what it makes, and in which transactions its sessions were seen. After a lab that was killed, the sessions
and programs of the job are ended first. Then the SQL runs by itself only if it is certain that the job changed
something; if that is unclear, a person is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.loads.job_command import end_programs
from pgtrial.loads.named_objects import Found, Named, find, only_drops
from pgtrial.loads.target import Session, Target, value
from pgtrial.model import marks
from pgtrial.model.errors import ArmError, NameTaken, StudyError, one_line
from pgtrial.servers.load_rights import obstacle_to_sql
from pgtrial.servers.run_records import read_record, record_files, what_of, write_record

_PREFIX = "job-undo-"
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

Consent = Callable[[str], bool]
"""Asks a person whether SQL shall run. The text says why pgtrial asks, and shows the SQL."""


class Unclear(ArmError):
    """It is not certain that the job has made what the undo would change."""


@dataclass(frozen=True)
class UndoRecord:
    """The record of what one job may have changed on one server, and of the SQL that undoes it."""

    arm: str
    target: Target
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
    def what(self) -> str:
        """The name of the job in messages."""
        return f"job on {self.target.label}"

    @property
    def sql(self) -> str:
        """The SQL that undoes the job, for messages."""
        return "; ".join(self.statements)

    def write_down(self, run: Path, *, durable: bool = True) -> Path:
        """Writes the record to a run directory. A durable file is on disk on return. No password is written."""
        content = {
            "statements": list(self.statements),
            "sessions": self.sessions,
            "names": [list(name) for name in self.names],
            "study": self.study,
            "place": self.place,
            "transactions": list(self.transactions),
        }
        return write_record(run, _PREFIX, self.arm, self.target, content, durable=durable)

    @classmethod
    def read(cls, path: Path) -> UndoRecord:
        """Returns the record in a file. Raises ArmError for a file that is no record."""
        return read_record(path, cls._of, "a job")

    @classmethod
    def _of(cls, arm: str, target: Target, content: Mapping[str, Any]) -> UndoRecord:
        names = tuple(Named(*name) for name in content.get("names", ()))
        study, place = str(content.get("study", "")), str(content.get("place", ""))
        transactions = tuple(map(str, content.get("transactions", ())))
        return cls(arm, target, content["statements"], content["sessions"], names, study, place, transactions)


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
def undone_on_exit(record: UndoRecord, run: Path, connect: Callable[[], Session]) -> Iterator[None]:
    """Lets the job run within the context; on exit the job is undone by a session that `connect` opens.

    If the job failed because an object with one of its names already existed, the job has not made that object, and
    nothing is undone. Raises ArmError, and StudyError if a name is taken before the job begins.
    """
    with closing(connect()) as session:
        refuse_taken(record.target, f"arms.{record.arm}: {record.target.label}", record.names)
        record = replace(record, place=_place(session))
    entry = record.write_down(run)
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
                    f"arms.{record.arm}: the {record.what} could not be undone ({reason}); correct "
                    f"{marks.key('load.job', 'undo')}, or what is in its way; pgtrial cleanup tries again"
                ) from None
            entry.unlink()


def _leave(record: UndoRecord, connect: Callable[[], Session]) -> None:
    """Ends what is left of a job whose SQL is not run. The record stays for pgtrial cleanup."""
    with suppress(psycopg.Error, ArmError), closing(connect()) as session:
        _end(session, record)


class _Watch:
    """Notes the transactions of a running job in its record: what they made was made by the job."""

    def __init__(self, record: UndoRecord, run: Path, connect: Callable[[], Session]) -> None:
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
        with suppress(psycopg.Error, ArmError, OSError), closing(self._connect()) as session:
            while not self._over.is_set():
                known = self.record.transactions
                seen = [xid for (xid,) in session.execute(_TRANSACTIONS, [self.record.sessions]).fetchall()]
                if new := [xid for xid in seen if xid not in known]:
                    self.record = replace(self.record, transactions=(*known, *new))
                    self.record.write_down(self._run, durable=False)
                self._over.wait(_LOOK_S)


def paths(run: Path) -> list[Path]:
    """Returns the records in a run directory."""
    return record_files(run, _PREFIX)


def pending(run: Path) -> list[str]:
    """Returns descriptions of the jobs that the run of a crashed lab has not undone, with their SQL. Connects to no
    server."""
    return [_with_sql(path) for path in paths(run)]


def _with_sql(path: Path) -> str:
    what = what_of(path, UndoRecord.read)
    with suppress(ArmError):
        return f"{what}, to be undone by: {UndoRecord.read(path).sql}"
    return what


def undo(run: Path, *, study: str | None = None, consent: Consent | None = None) -> tuple[list[str], list[str]]:
    """Undoes what a run's jobs left. Returns a sentence for each that was undone, and one for each that could not be.

    With `study` only the jobs of that study are undone. Without `consent` no person is asked, and jobs of which it is
    unclear what they changed are not undone.
    """
    done, failures = [], []
    for path in paths(run):
        try:
            record = UndoRecord.read(path)
            if study is not None and not (study and record.study == study):
                failures.append(
                    f"A {record.what} of the interrupted study {record.study or '(unknown)'} may have left changes "
                    "there; pgtrial cleanup shows what would undo it."
                )
                continue
            with closing(record.target.connect()) as session:
                done.append(_undo_left(session, record, consent))
        except (psycopg.Error, ArmError) as error:
            failures.append(
                f"The {_with_sql(path)}: it was not undone ({one_line(error)}); run pgtrial cleanup "
                f"once its SQL can run there, or undo it yourself and run pgtrial cleanup --forget {path}."
            )
        else:
            path.unlink()
    return done, failures


def _undo_left(session: Session, record: UndoRecord, consent: Consent | None) -> str:
    """Undoes a job that a killed lab left. Returns a sentence. Raises psycopg.Error, ArmError, and Unclear."""
    if record.place and _place(session) != record.place:
        raise ArmError("another server or database answers there")
    _end(session, record)
    if (against := obstacle_to_sql(session, "its SQL")) is not None:
        raise ArmError(against)
    there = _there(record.target, record.names)
    if not there and record.names and all(map(only_drops, record.statements)):
        return f"The {record.what} had changed nothing."
    if (why := _doubt(session, record, there)) is not None:
        question = f"The {record.what} of an interrupted study: {why}. What would undo it is: {record.sql}"
        if consent is None:
            raise Unclear(f"{why}; in a terminal pgtrial cleanup asks, and pgtrial cleanup --yes runs the SQL")
        if not consent(question):
            raise Unclear("it was declined")
    _undo(record)
    return f"Undid the {record.what}: {record.sql}."


def _doubt(session: Session, record: UndoRecord, there: Sequence[Found]) -> str | None:
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


def _end(session: Session, record: UndoRecord) -> None:
    """Ends the job's programs on this machine and its sessions. Raises psycopg.Error, and ArmError."""
    end_programs("PGAPPNAME", record.sessions)
    deadline = time.monotonic() + _END_S
    while value(session, _END_SESSIONS, record.sessions):
        if time.monotonic() > deadline:
            raise ArmError(f"sessions of the job did not end within {_END_S:.0f}s")
        time.sleep(_POLL_S)


def _undo(record: UndoRecord) -> None:
    with closing(record.target.connect_as_load()) as of_study:  # the same search path as in the job
        for statement in record.statements:
            of_study.execute(statement.encode())


def _there(target: Target, names: Sequence[Named]) -> list[Found]:
    """Returns those of these objects that exist under the names that the job uses. Raises psycopg.Error."""
    if not names:
        return []
    with closing(target.connect_as_load()) as of_study:
        return find(of_study, names)
