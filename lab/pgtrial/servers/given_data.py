"""What pgtrial has made in databases of given servers: the records of it, and its removal.

A record is in the state directory, one for each database, from before the first table is made until the tables are
removed. Only tables that bear a mark of the recorded kinds are dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgtrial.loads.data.data import Data, drop_marked
from pgtrial.loads.data.order_entry_tables import OrderEntryTables, drop_procedures
from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError, StudyError, one_line
from pgtrial.servers.arm import Arm
from pgtrial.servers.server_locks import ServerLocks

_FOLDER = "given-data"


@dataclass(frozen=True)
class DataRecord:
    """What may have been made in one database."""

    path: Path
    target: Target
    made: Mapping[str, tuple[str, ...]]
    """For people what was made, and the marks that its tables have."""

    @property
    def what(self) -> str:
        """For people."""
        return f"{'; '.join(self.made)} in the database {self.target.dbname} ({self.target.label})"


def note_made(state: Path, target: Target, data: Data) -> None:
    """Record data that is about to be made; on disk on return. No password is written. Raises OSError."""
    path = _path(state, target)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    record = _read(path) if path.exists() else DataRecord(path, target, {})
    made = {**record.made, data.relations_made: data.marks}
    content = {"target": target.without_secrets(), "made": {what: list(marks) for what, marks in made.items()}}
    LOCAL.write_text(path, json.dumps(content), mode=0o600, durable=True)


def records(state: Path) -> list[DataRecord]:
    """All that may have been made. Raises ArmError for a file that is no record."""
    return [_read(path) for path in sorted((state / _FOLDER).glob("*.json"))]


def made_for(state: Path, arms: Mapping[str, Arm]) -> Iterator[str]:
    """A sentence for each given server of these arms on which something is that pgtrial has made."""
    paths = {_path(state, target) for arm in arms.values() for target in arm.targets or ()}
    for path in sorted(path for path in paths if path.exists()):
        yield f"pgtrial has made {_read(path).what}; it stays there for other studies, and pgtrial cleanup removes it"


def remove(record: DataRecord) -> None:
    """Drop what bears the marks, and the record with it.

    Raises StudyError where another lab has a study on that server or something else depends on a table, ArmError and
    psycopg.Error where the server cannot be reached or refuses.
    """
    with ServerLocks("cleanup") as locks:
        locks.take_one(record.target)
        with closing(record.target.connect()) as session:
            marks = tuple(mark for marks in record.made.values() for mark in marks)
            if set(OrderEntryTables.marks) & set(marks):
                drop_procedures(session)
            if marks:
                drop_marked(session, marks)
    record.path.unlink(missing_ok=True)


def remove_all(state: Path) -> tuple[list[str], list[str]]:
    """Drop all that pgtrial has made on given servers.

    Returns a sentence for each database in which that is done, and for each in which it is not.
    """
    done, failed = [], []
    for path in sorted((state / _FOLDER).glob("*.json")):
        try:
            record = _read(path)
        except ArmError as error:
            failed.append(f"{error}; remove it.")
            continue
        try:
            remove(record)
        except (StudyError, ArmError, psycopg.Error) as error:
            failed.append(
                f"Not removed: {record.what}: {one_line(error).removesuffix('.')}. Once that is mended, run pgtrial "
                f"cleanup with PGPASSWORD or .pgpass set for it; if that database is no more, remove {path}."
            )
        else:
            done.append(f"Removed {record.what}.")
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
