"""The journal of undo: what pgtrial has changed on machines, on servers and in databases, and has to put back.

Each change has a record, which is a file. It is on disk before the change is made, and is removed once the change is
undone. A kind of record is a subclass of `UndoRecord`, and says where its files lie and how its change is undone. A
`Journal` has the records of one folder: it alone writes, lists, undoes and removes them, whatever their kind.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from pgtrial.machines.machine import LOCAL, HostError, Machine, refused
from pgtrial.machines.trust import check_own

Consent = Callable[[str], bool]
"""Asks a person whether a change shall be undone. The text says why pgtrial asks, and shows what would be done."""


@dataclass(frozen=True)
class Occasion:
    """The circumstances in which changes of an ended lab are undone: the study that begins, and a person to ask."""

    study: str | None = None
    """The directory of the study that begins. Changes that only the user of a study can judge are undone for this study
    only; None: for all studies."""
    consent: Consent | None = None
    """Asks a person; None: nobody can be asked."""


ANY_OCCASION = Occasion()
"""An occasion to undo what is left of all studies, without asking a person."""


class NoRecord(HostError):
    """A file is no record that pgtrial obeys: it cannot be read, or names what its kind never touches."""


class NotUndone(Exception):
    """A change could not be undone, so its record stays. The message is a sentence for the user, without its end: what
    was not undone, why, and what to do."""

    def __init__(self, sentence: str, forget_if: str = "") -> None:
        """`forget_if` says when the user may forget the record, such as `if that server is gone for good`; "" for a
        record that is not to be forgotten."""
        super().__init__(sentence)
        self.forget_if = forget_if


class UndoRecord(abc.ABC):
    """All that the undo of one change needs. A kind of record is a subclass and an entry in a journal's list of
    kinds."""

    of_what: ClassVar[str]
    """The subject of the records of this kind, such as `settings`, for a message on a damaged record."""
    holds_up: ClassVar[bool] = False
    """True if a record that cannot be undone keeps earlier ones of its kind waiting, since it may be built on them."""

    @classmethod
    @abc.abstractmethod
    def files(cls, folder: Path, machine: Machine) -> list[Path]:
        """Returns the files of all records of this kind in a journal's folder, in the order in which they are
        undone."""

    @abc.abstractmethod
    def file(self, folder: Path, machine: Machine) -> Path:
        """Returns the file in which this record is written."""

    @abc.abstractmethod
    def content(self) -> Mapping[str, Any]:
        """Returns what is written, as JSON. It has no password."""

    @classmethod
    @abc.abstractmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Returns the record with this content, as this version or a former one has written it. Raises ValueError,
        KeyError, TypeError or AttributeError if it is another one."""

    @property
    @abc.abstractmethod
    def what(self) -> str:
        """The changed thing in a few words for messages, such as `settings work_mem of postgres@/tmp`."""

    @abc.abstractmethod
    def undo(self, machine: Machine, occasion: Occasion) -> Sequence[str]:
        """Puts back what was changed. Also works if only a part of it was changed, or nothing, and if called twice.

        Returns sentences for the user on what was done, and on what stays as somebody else has changed it. Raises
        NotUndone, and HostLost.
        """

    @classmethod
    def read(cls, path: Path, machine: Machine = LOCAL) -> Self:
        """Returns the record in a file. Raises NoRecord, or another HostError, with words for the user."""
        try:
            return cls.of(json.loads(machine.read_text(path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise NoRecord(f"{path} is no record of {cls.of_what} that this pgtrial knows") from None


R = TypeVar("R", bound=UndoRecord)


class Undone(NamedTuple):
    """The outcome of undoing the records of a journal."""

    done: list[str]
    """Sentences on what was undone, and on what stays as somebody else has changed it."""
    failures: list[str]
    """A sentence for each record that could not be undone and stays."""


@dataclass(frozen=True)
class Journal(Generic[R]):
    """The records in a folder on the machine on which the folder is."""

    folder: Path
    kinds: Sequence[type[R]]
    """The kinds of records that the folder may have, in the order in which they are undone."""
    machine: Machine = LOCAL

    def write(self, record: R, *, durable: bool = True) -> Path:
        """Writes a record, and returns its file. A durable one is on disk on return.

        Raises HostError; the change must not be made then.
        """
        path = record.file(self.folder, self.machine)
        with refused(f"write down the {record.what} in {path.parent}, so it is not made"):
            self.machine.mkdir(path.parent, 0o700, parents=True)
            check_own(self.machine, list(dict.fromkeys([self.folder, path.parent])))
            self.machine.write_text(path, json.dumps(record.content()), mode=0o600, durable=durable)
        return path

    def remove(self, path: Path) -> None:
        """Removes the record in a file: its change is undone, or the user forgets it. Raises HostError."""
        with refused(f"remove the record {path}"):
            self.machine.unlink(path)

    def files(self) -> list[Path]:
        """Returns the files of all records, in the order in which they are undone."""
        return [path for path, _ in self._entries()]

    def records(self) -> list[R]:
        """Returns all records, in the order in which they are undone. Raises NoRecord."""
        return [kind.read(path, self.machine) for path, kind in self._entries()]

    def pending(self) -> list[str]:
        """Returns a description of each change that is not undone, in the order of undoing. Connects to no server."""
        return [what for _, what in self.described()]

    def described(self) -> list[tuple[Path, str]]:
        """Returns the file of each record, with the description that `pending` returns."""
        return [(path, self._words(path, kind)) for path, kind in self._entries()]

    def undo(self, occasion: Occasion = ANY_OCCASION) -> Undone:
        """Undoes all that is recorded. A record that cannot be undone stays. Raises HostLost."""
        undone = Undone([], [])
        for kind in self.kinds:
            for path in kind.files(self.folder, self.machine):
                if not self._undo(path, kind, occasion, undone) and kind.holds_up:
                    break
        return undone

    def _undo(self, path: Path, kind: type[R], occasion: Occasion, undone: Undone) -> bool:
        """Undoes one record, and adds sentences to `undone`. Returns false if the record stays."""
        try:
            record = kind.read(path, self.machine)
        except HostError as error:
            undone.failures.append(f"{error}; put right what it is about, and then {self._way_to_forget(path)}.")
            return False
        try:
            undone.done.extend(record.undo(self.machine, occasion))
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
