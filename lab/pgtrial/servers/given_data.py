"""Records the tables and other objects that pgtrial has made in databases of given servers, and removes them.

The journal of undo in the state directory has a record for each database. The tables stay after their study, for later
studies; only `pgtrial cleanup` drops them. It drops only tables that have one of the recorded marks, which are comments
by which pgtrial marks its tables.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.made_objects import copied_objects, drop_marked
from pgtrial.loads.target import Target, value
from pgtrial.machines.journal import Journal, NotUndone, Occasion, UndoRecord
from pgtrial.machines.machine import HostError, Machine
from pgtrial.model.errors import ArmError, StudyError, one_line
from pgtrial.servers.arm import Arm
from pgtrial.servers.lock_waits import short_lock_waits
from pgtrial.servers.server_locks import ServerLocks

_FOLDER = "given-data"
_ALWAYS_THERE = ("postgres", "template1")
"""Databases that initdb creates. The lab connects to one of these to find out whether another database of the server
still exists."""


@dataclass(frozen=True)
class DataRecord(UndoRecord):
    """The record of the tables that pgtrial has made, or was about to make, in one database."""

    of_what = "data"

    target: Target
    made: Mapping[str, tuple[str, ...]]
    """The marks of the tables that pgtrial has made, by a description of these tables for messages. A mark is a comment
    on a table by which pgtrial recognises its own tables."""

    @classmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        return sorted(folder.glob("*.json"))

    def file(self, folder: Path, machine: Machine) -> Path:
        return _file(folder, self.target)

    def content(self) -> Mapping[str, Any]:
        made = {what: list(marks) for what, marks in self.made.items()}
        return {"target": self.target.without_secrets(), "made": made}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        made = {str(what): tuple(map(str, marks)) for what, marks in content["made"].items()}
        return cls(Target.from_record(content["target"]), made)

    @property
    def what(self) -> str:
        return f"{'; '.join(self.made)} in the database {self.target.dbname} ({self.target.label})"

    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Drops the tables that pgtrial has made. Returns a sentence on what was dropped and what stays. The server
        must be locked by the caller."""
        with self._as_not_undone():
            target = _way_in(self.target)
            stays = _drop(self, target) if target is not None else ""
        return [f"Removed {self.what}{stays}."]

    @contextmanager
    def undone(self, path: Path, machine: Machine, occasion: Occasion) -> Iterator[Sequence[str]]:
        """Drops the tables, and keeps the server locked until the journal has removed the record. Otherwise a lab could
        lock the server in between, add its own tables to the record, and lose the record.

        The record is read again once the server is locked, since a lab that held the lock before may have changed it.
        """
        with ExitStack() as held:
            with self._as_not_undone():
                target = _way_in(self.target)
                if target is not None:
                    held.enter_context(ServerLocks("cleanup")).take_one(target)
            yield DataRecord.read(path, machine).undo(machine, occasion) if machine.exists(path) else []

    @contextmanager
    def _as_not_undone(self) -> Iterator[None]:
        """Raises NotUndone, with what the user can do, in place of an error of the server or of the way to it."""
        try:
            yield
        except (StudyError, ArmError, psycopg.Error) as error:
            raise NotUndone(
                f"Not removed: {self.what}: {one_line(error).removesuffix('.')}. Once the cause is corrected, run "
                "pgtrial cleanup with PGPASSWORD or .pgpass (and PGUSER, if the role no longer exists) set for "
                "that server",
                "if that server is gone for good",
            ) from None


def data_journal(state: Path) -> Journal[DataRecord]:
    """Returns the journal with the records of the tables that pgtrial has made on given servers."""
    return Journal(state / _FOLDER, (DataRecord,))


def note_made(state: Path, target: Target, data: Data) -> None:
    """Records the data that the caller is about to load. The record is on disk when the function returns, and contains
    no password. Raises ArmError.

    The record only says in which database to look for objects with pgtrial's marks, which are comments on these
    objects. An object without a mark is never dropped.
    """
    journal = data_journal(state)
    path = _file(journal.folder, target)
    try:
        record = DataRecord.read(path) if path.exists() else DataRecord(target, {})
        journal.write(replace(record, made={**record.made, data.relations_made: data.marks}))
    except HostError as error:
        raise ArmError(str(error)) from None


def made_for(state: Path, arms: Mapping[str, Arm]) -> Iterator[str]:
    """Yields a sentence for the user for each database of these arms' given servers in which pgtrial has made data."""
    folder = data_journal(state).folder
    paths = {_file(folder, target) for arm in arms.values() for target in arm.targets or ()}
    for path in sorted(path for path in paths if path.exists()):
        made = DataRecord.read(path).what
        yield f"pgtrial has made {made}; it stays there for other studies, and pgtrial cleanup removes it"


def _drop(record: DataRecord, target: Target) -> str:
    """Drops the tables of a record, in the database at `target`. Returns a phrase that says which objects stay and why,
    or "" if none stays.

    Raises StudyError if another object depends on a table; raises ArmError and psycopg.Error if the server cannot be
    reached or refuses.
    """
    with closing(target.connect()) as session:
        marks = tuple(mark for marks in record.made.values() for mark in marks)
        if not marks:
            return ""
        with short_lock_waits(session, target.connect):
            return _stays(drop_marked(session, marks, everywhere=True), copied_objects(session, marks))


def _stays(extensions: list[str], copies: list[str]) -> str:
    kept = f"; the extension {', '.join(extensions)} stays, since other objects need it" if extensions else ""
    if copies:
        more = f" and {len(copies) - 1:,} more" if len(copies) > 1 else ""
        kept += f"; {copies[0]}{more} stays, since it is a copy of pgtrial's tables that somebody else has made"
    return kept


def _way_in(target: Target) -> Target | None:
    """Returns the database's address with a role that can connect: the recorded role or that of PGUSER. Returns None if
    the server no longer has the database.

    If neither role can connect, raises the psycopg.OperationalError of the first attempt.
    """
    user = os.environ.get("PGUSER") or target.user
    ways = [target, *([replace(target, user=user)] if user != target.user else [])]
    errors = []
    for way in ways:
        try:
            way.connect().close()
        except psycopg.OperationalError as error:
            errors.append(error)
        else:
            return way
    for way in ways:
        for name in _ALWAYS_THERE:
            with suppress(psycopg.OperationalError), closing(replace(way, dbname=name).connect()) as session:
                if value(session, "SELECT count(*) FROM pg_database WHERE datname = %s", target.dbname) == 0:
                    return None
                break
    raise errors[0]


def _file(folder: Path, target: Target) -> Path:
    address = json.dumps([target.host, target.port, target.user, target.dbname])
    return folder / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"
