"""The records of what pgtrial has made in databases of given servers, and its removal.

There is a record for each database, in the state directory, from before the first table is made until the tables are
removed. Only tables that have a mark of the recorded kinds are dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.loads.data.data import Data
from pgtrial.loads.made_objects import copied_objects, drop_marked
from pgtrial.loads.target import Target, value
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError, StudyError, one_line
from pgtrial.servers.arm import Arm
from pgtrial.servers.lock_waits import short_lock_waits
from pgtrial.servers.server_locks import ServerLocks

_FOLDER = "given-data"
_ALWAYS_THERE = ("postgres", "template1")
"""Databases that initdb creates. The lab connects to one of them to find out whether another database still exists."""


@dataclass(frozen=True)
class DataRecord:
    """The record of what may have been made in one database."""

    path: Path
    target: Target
    made: Mapping[str, tuple[str, ...]]
    """The marks of the tables that were made, by a description for people."""

    @property
    def what(self) -> str:
        """A description of what was made, for people."""
        return f"{'; '.join(self.made)} in the database {self.target.dbname} ({self.target.label})"


def note_made(state: Path, target: Target, data: Data) -> None:
    """Records data that is about to be made. The record is on disk on return, and has no password. Raises OSError.

    The record says where to look for objects with marks. Nothing without a mark is dropped because of it.
    """
    path = _path(state, target)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    record = _read(path) if path.exists() else DataRecord(path, target, {})
    _write(replace(record, made={**record.made, data.relations_made: data.marks}))


def _write(record: DataRecord) -> None:
    content: dict[str, Any] = {"target": record.target.without_secrets()}
    content["made"] = {what: list(marks) for what, marks in record.made.items()}
    LOCAL.write_text(record.path, json.dumps(content), mode=0o600, durable=True)


def records(state: Path) -> list[DataRecord]:
    """Returns all records. Raises ArmError for a file that is no record."""
    return [_read(path) for path in paths(state)]


def paths(state: Path) -> list[Path]:
    """Returns the files of the records."""
    return sorted((state / _FOLDER).glob("*.json"))


def made_for(state: Path, arms: Mapping[str, Arm]) -> Iterator[str]:
    """Yields a sentence for each given server of these arms that has data made by pgtrial."""
    paths = {_path(state, target) for arm in arms.values() for target in arm.targets or ()}
    for path in sorted(path for path in paths if path.exists()):
        yield f"pgtrial has made {_read(path).what}; it stays there for other studies, and pgtrial cleanup removes it"


def remove(record: DataRecord) -> str:
    """Drops what pgtrial has made, and then its record. A database that is gone has nothing left to drop.

    If the role cannot connect any more, PGUSER is tried. Returns what stays and why, for people, or "". Raises
    StudyError if another lab has a study on that server or something else depends on a table, ArmError and
    psycopg.Error if the server cannot be reached or refuses.
    """
    stays = ""
    target = _way_in(record.target)
    if target is not None:
        with ServerLocks("cleanup") as locks:
            locks.take_one(target)
            with closing(target.connect()) as session:
                marks = tuple(mark for marks in record.made.values() for mark in marks)
                if marks:
                    with short_lock_waits(session, target.connect):
                        stays = _stays(drop_marked(session, marks, everywhere=True), copied_objects(session, marks))
    record.path.unlink(missing_ok=True)
    return stays


def _stays(extensions: list[str], copies: list[str]) -> str:
    kept = f"; the extension {', '.join(extensions)} stays, since other objects need it" if extensions else ""
    if copies:
        more = f" and {len(copies) - 1:,} more" if len(copies) > 1 else ""
        kept += f"; {copies[0]}{more} stays, which is a copy that pgtrial did not make"
    return kept


def _way_in(target: Target) -> Target | None:
    """Returns the database's address with a role that can connect, the recorded one or PGUSER; None if the server has
    no such database any more.

    Raises the psycopg.OperationalError of the first connection.
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


def remove_all(state: Path) -> tuple[list[str], list[str]]:
    """Drops all that pgtrial has made on given servers.

    Returns a sentence for each database in which that is done, and one for each in which it is not.
    """
    done, failed = [], []
    for path in paths(state):
        try:
            record = _read(path)
        except ArmError as error:
            failed.append(f"{error}; forget it by pgtrial cleanup --forget {path}.")
            continue
        try:
            stays = remove(record)
        except (StudyError, ArmError, psycopg.Error) as error:
            failed.append(
                f"Not removed: {record.what}: {one_line(error).removesuffix('.')}. Once that is mended, run pgtrial "
                f"cleanup with PGPASSWORD or .pgpass (and PGUSER, if the role is gone) set for it; if that server is "
                f"gone for good, run pgtrial cleanup --forget {path}."
            )
        else:
            done.append(f"Removed {record.what}{stays}.")
    return done, failed


def _path(state: Path, target: Target) -> Path:
    address = json.dumps([target.host, target.port, target.user, target.dbname])
    return state / _FOLDER / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> DataRecord:
    try:
        content = json.loads(path.read_text())
        made = {str(what): tuple(map(str, marks)) for what, marks in content["made"].items()}
        return DataRecord(path, Target.from_record(content["target"]), made)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ArmError(f"{path} is no record of data that this pgtrial knows") from None
