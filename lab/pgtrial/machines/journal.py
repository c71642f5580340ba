"""The journal of undo: records of what pgtrial has changed on machines, on servers and in databases, and has to
restore.

Each change has a record, which is a file. The record is on disk before the change is made, and is removed once the
change is undone. A kind of record is a subclass of `UndoRecord`, which says where the files of its records lie and how
a change is undone. A `Journal` writes, lists, undoes and removes the records of all kinds in one folder; no other code
does so.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from pgtrial.machines.machine import LOCAL, HostError, Machine, refused
from pgtrial.machines.trust import check_own

Consent = Callable[[str], bool]
"""A function that asks a person whether pgtrial shall undo a change. Its argument is the question, which says why
pgtrial asks and shows what pgtrial would do. It returns true if the person agrees."""


@dataclass(frozen=True)
class Occasion:
    """The circumstances in which pgtrial undoes changes that a killed pgtrial has left: the study that begins now, and
    whether a person can be asked."""

    study: str | None = None
    """The directory of the study that begins. Changes that only the user of a study can judge are undone if they belong
    to this study. With None, those of all studies are undone."""
    consent: Consent | None = None
    """The function that asks a person; None if nobody can be asked."""


ANY_OCCASION = Occasion()
"""The occasion on which pgtrial undoes what all studies have left, without asking a person."""


class NoRecord(HostError):
    """Raised for a file of the journal that pgtrial does not obey: it cannot be read as a record, or its change would
    touch an object that a change of this kind never touches, such as a file outside of the run directory."""


class NotUndone(Exception):
    """Raised when a change could not be undone; its record stays. The message is a sentence for the user without its
    full stop. It says which change was not undone, why, and what the user should do."""

    def __init__(self, sentence: str, forget_if: str = "") -> None:
        """`forget_if` is a clause that says when the user may make pgtrial forget the record, such as `if that server
        is gone for good`; it is empty if the user should not."""
        super().__init__(sentence)
        self.forget_if = forget_if


class UndoRecord(abc.ABC):
    """The record of one change: everything that is needed to undo it. Each kind of record is a subclass, and an entry
    in a journal's list of kinds."""

    of_what: ClassVar[str]
    """The subject of the records of this kind, such as `settings`, for a message on a damaged record."""
    holds_up: ClassVar[bool] = False
    """True if earlier changes of this kind have to wait while a later one cannot be undone, since the later one may
    depend on them."""

    @classmethod
    @abc.abstractmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        """Returns the files of all records of this kind in a journal's folder, in the order in which they are
        undone."""

    @abc.abstractmethod
    def file(self, folder: Path, machine: Machine) -> Path:
        """Returns the path of the file for this record."""

    @abc.abstractmethod
    def content(self) -> Mapping[str, Any]:
        """Returns the content of the record's file, as values that JSON can hold. It contains no password."""

    @classmethod
    @abc.abstractmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Returns the record with this content, as this version of pgtrial or an earlier one has written it. Raises
        ValueError, KeyError, TypeError or AttributeError if the content is not that of such a record."""

    @property
    @abc.abstractmethod
    def what(self) -> str:
        """The object that was changed, in a few words for messages, such as `settings work_mem of postgres@/tmp`."""

    @abc.abstractmethod
    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Restores the state before the change. Also works if only a part of the change was made or nothing, and if it
        is called twice.

        Returns sentences for the user: what was restored, and what stays because somebody else has changed it in the
        meantime. Raises NotUndone, and HostLost.
        """

    @contextmanager
    def undone(self, path: Path, machine: Machine, occasion: Occasion) -> Iterator[Sequence[str]]:
        """Undoes the change like `undo`, and yields its sentences. The journal removes the record, which is the file
        `path`, within the context. A kind of record overrides this if others can change the record or repeat its
        change, and a lock keeps them from it.
        """
        yield self.undo(machine, occasion)

    @classmethod
    def read(cls, path: Path, machine: Machine = LOCAL) -> Self:
        """Returns the record in a file. Raises NoRecord, or another HostError, with a message for the user."""
        try:
            return cls.of(json.loads(machine.read_text(path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise NoRecord(f"{path} is no record of {cls.of_what} that this version of pgtrial can read") from None


R = TypeVar("R", bound=UndoRecord)


class Undone(NamedTuple):
    """The outcome of undoing the records of a journal."""

    done: list[str]
    """Sentences on what was undone, and on what stays because somebody else has changed it in the meantime."""
    failures: list[str]
    """A sentence for each record that could not be undone and stays."""


@dataclass(frozen=True)
class Journal(Generic[R]):
    """The records of changes in a folder. The folder lies on `machine`."""

    folder: Path
    kinds: Sequence[type[R]]
    """The kinds of records that the folder may have, in the order in which they are undone."""
    machine: Machine = LOCAL

    def write(self, record: R, *, durable: bool = True) -> Path:
        """Writes a record, and returns its file. With `durable`, the record is on disk when the method returns.

        Raises HostError if the record cannot be written; the caller must not make the change then.
        """
        path = record.file(self.folder, self.machine)
        with refused(f"write the record of the {record.what} to {path.parent}, so pgtrial does not make this change"):
            self.machine.mkdir(path.parent, 0o700, parents=True)
            check_own(self.machine, list(dict.fromkeys([self.folder, path.parent])))
            self.machine.write_text(path, json.dumps(record.content()), mode=0o600, durable=durable)
        return path

    def remove(self, path: Path) -> None:
        """Removes the file of a record, after its change was undone or when the user wants pgtrial to forget it. Raises
        HostError."""
        with refused(f"remove the record {path}"):
            self.machine.unlink(path)

    def files(self) -> list[Path]:
        """Returns the files of all records, in the order in which they are undone."""
        return [path for path, _ in self._entries()]

    def records(self) -> list[R]:
        """Returns all records, in the order in which they are undone. Raises NoRecord."""
        return [kind.read(path, self.machine) for path, kind in self._entries()]

    def pending(self) -> list[str]:
        """Returns a description of each change that is not undone yet, in the order in which they are undone. Does not
        connect to any server."""
        return [what for _, what in self.described()]

    def described(self) -> list[tuple[Path, str]]:
        """Returns the file of each record, with the description that `pending` returns."""
        return [(path, self._words(path, kind)) for path, kind in self._entries()]

    def undo(self, occasion: Occasion = ANY_OCCASION) -> Undone:
        """Undoes all recorded changes. The record of a change that cannot be undone stays. Raises HostLost."""
        undone = Undone([], [])
        for kind in self.kinds:
            for path in kind.files(self.folder, self.machine):
                if not self._undo(path, kind, occasion, undone) and kind.holds_up:
                    break
        return undone

    def _undo(self, path: Path, kind: type[R], occasion: Occasion, undone: Undone) -> bool:
        """Undoes the change of one record, and adds sentences on it to `undone`. Returns false if the change could not
        be undone, so that the record stays."""
        try:
            record = kind.read(path, self.machine)
        except HostError as error:
            undone.failures.append(
                f"{error}; undo the change that it describes by hand, and then {self._way_to_forget(path)}."
            )
            return False
        try:
            with record.undone(path, self.machine, occasion) as sentences:
                undone.done.extend(sentences)
                self.remove(path)
        except NotUndone as error:
            forget = f"; {error.forget_if}, {self._way_to_forget(path)}" if error.forget_if else ""
            undone.failures.append(f"{error}{forget}.")
            return False
        except HostError as error:
            undone.failures.append(f"{error}.")
            return False
        return True

    def _entries(self) -> Iterator[tuple[Path, type[R]]]:
        return ((path, kind) for kind in self.kinds for path in kind.files(self.folder, self.machine))

    def _words(self, path: Path, kind: type[R]) -> str:
        try:
            return kind.read(path, self.machine).what
        except HostError as error:
            return str(error)

    def _way_to_forget(self, path: Path) -> str:
        return f"run pgtrial cleanup --forget {path}" if self.machine is LOCAL else f"remove {path} there"
