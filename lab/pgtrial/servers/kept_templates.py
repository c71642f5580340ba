"""The templates of this machine. Each template is made once, kept in the state directory, and shared by all studies.

The directory `NAME/` has the data directory, the record of how it was made, and the times at which studies used it. The
directory is made under another name and renamed when everything is on disk, so that a template is complete or does not
exist. A lab holds the lock `NAME.lock` while it looks at a template, makes it or removes it. Each lab that uses a
template holds a shared lock on `NAME/lock` until the lab ends, also if it is killed.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NoReturn

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from pgtrial import __version__
from pgtrial.files.locks import IN_USE, NAME_LOCK, holding_name, is_held, is_name_held, open_lock, take, wait_for
from pgtrial.model.errors import ArmError
from pgtrial.model.records import Record
from pgtrial.servers.templates import DATA_FORMAT, TemplateKey, TemplateOrder
from pgtrial.servers.trees import bytes_below, entries
from pgtrial.store.state import is_own

_RECORD = "template.json"
_FILES = "files.json"
_USES = "uses.json"
_ROWS = "rows-2.json"
_MOST_STUDIES = 20
"""The number of studies whose use of a template is recorded. Only the latest are kept."""

_Files = dict[str, tuple[int, int]]
"""The size in bytes and the modification time in ns since 1970 of each file of a data directory, by its path there."""

_FILES_TYPE = TypeAdapter(_Files)


class TemplateInUse(ArmError):
    """Raised when a running lab uses, makes or removes the template, so that it cannot be removed now."""


class _Uses(Record):
    """The time at which each study last used a template, by the study's directory, the latest time last. The key ""
    stands for uses outside of any study."""

    by_study: dict[str, AwareDatetime]


class TemplateRecord(Record):
    """The record of a template: its contents, and how it was made."""

    key: TemplateKey
    label: str
    settings: dict[str, str]
    """The settings that the server had while it loaded the data."""
    pgtrial: str
    data_format: int
    libc: tuple[str, str]
    made: AwareDatetime
    took_s: float
    bytes_on_disk: int


@dataclass(frozen=True)
class KeptTemplate:
    """A template as `pgtrial list` shows it."""

    name: str
    contents: str
    """A description of the data, such as `scale 20, fillfactor 90`."""
    postgres: str
    bytes_on_disk: int
    made: datetime
    last_used: datetime
    studies: list[str]
    """The directories of the latest studies that used the template, the latest one first."""
    in_use: bool
    fault: str | None
    """The reason why no study can use the template, in a few words; None if studies can use it."""


class Templates:
    """The templates below a directory. The object belongs to one lab and holds the locks of the templates that this lab
    uses."""

    def __init__(
        self, root: Path, study: str = "", make_room: Callable[[Templates], str | None] = lambda templates: None
    ) -> None:
        """`study` is the directory of the study that uses the templates; `pgtrial list` shows it. `make_room` is called
        after a new template was made, to remove old templates if there are too many; it returns a sentence on what it
        has removed, or None."""
        self.root = root
        self._make_room = make_room
        self._study = study
        self._held: dict[str, IO[bytes]] = {}
        """The shared locks on the templates that this lab uses, by the template's name."""

    def find(self, key: TemplateKey) -> Path | None:
        """Returns the data directory of a template; None if there is no such template or it cannot be used."""
        home = self.root / key.name
        return home / "data" if _fault(home) is None else None

    def rows_file(self, key: TemplateKey) -> Path | None:
        """Returns the file that stores the digests of a template's rows; None for a template that this lab does not
        use."""
        return self.root / key.name / _ROWS if key.name in self._held else None

    def ensure(self, order: TemplateOrder, staging: Path, on_wait: Callable[[str], None], notes: list[str]) -> Path:
        """Returns the data directory of the template. From now on this lab uses the template, so that no other lab
        removes it.

        A template that does not exist is made in the directory `staging`, which is on the same file system, and is then
        renamed. If two labs need the same template at the same time, one makes it, and the other calls `on_wait` and
        waits. A damaged template is replaced by a new one. `notes` receives a sentence on such a replacement, and one
        on templates that were removed to free space. Raises ArmError if the template is damaged and another lab uses
        it.
        """
        name, made = order.key.name, False
        home = self.root / name
        if name in self._held and _fault(home) is None:
            return home / "data"
        waiting = f"waiting for another pgtrial, which makes or checks the template {name} ({order.label})"
        with _on_disk(f"the template {name} cannot be stored"), self._alone(name, lambda: on_wait(waiting)):
            self._let_go(name)
            if (fault := _fault(home)) is not None:
                if home.exists():
                    self._remove(name, f"the template {name} is damaged ({fault}) and another pgtrial uses it")
                    notes.append(f"the template {name} is damaged ({fault}); it is made again")
                _make(order, staging, home)
                made = True
            self._held[name] = lock = open_lock(home / IN_USE)
            wait_for(lock, shared=True)
            _note_use(home, self._study)
        if made and (gone := self._make_room(self)) is not None:
            notes.append(gone)
        return home / "data"

    def remove(self, name: str) -> None:
        """Removes a template, whether it is finished or not. Raises TemplateInUse, and ArmError if it cannot be
        removed."""
        in_use = f"the template {name} is in use by a running pgtrial"
        with _on_disk(f"the template {name} cannot be removed"), self._alone(name, lambda: _refuse(in_use)):
            self._remove(name, in_use)

    def remove_unfinished(self) -> list[Path]:
        """Removes the directories and files that killed labs have left while they made or removed templates. Returns
        the directories that were removed."""
        for lock in self.root.glob(f"*{NAME_LOCK}"):
            name = lock.name.removesuffix(NAME_LOCK)
            if not (self.root / name).exists():
                with suppress(TemplateInUse), self._alone(name, lambda: _refuse("")):
                    pass  # leaving the block removes the lock file
        removed = []
        for path in self.unfinished():
            with suppress(ArmError):
                self.remove(path.name)
                removed.append(path)
        return removed

    def unfinished(self) -> list[Path]:
        """Returns the directories of templates that have no record, since they are not complete, and that no lab makes
        or removes now."""
        return [path for path in self._present() if not (path / _RECORD).is_file() and not is_name_held(path)]

    def kept(self) -> list[KeptTemplate]:
        """Returns all templates, in the order of their names."""
        templates = []
        for path in self._present():
            with suppress(FileNotFoundError):  # another process is removing it
                templates.append(self._described(path))
        return templates

    def idle_bytes(self) -> int:
        """Returns the bytes on disk of the templates that no lab uses now."""
        idle = [path for path in self._present() if not self._is_in_use(path)]
        return sum(record.bytes_on_disk for path in idle if (record := _record(path)) is not None)

    def close(self) -> None:
        """Ends this lab's use of all templates."""
        for name in list(self._held):
            self._let_go(name)

    def _let_go(self, name: str) -> None:
        if (held := self._held.pop(name, None)) is not None:
            held.close()

    def _present(self) -> list[Path]:
        return sorted(path for path in self.root.glob("*") if path.is_dir() and is_own(path))

    def _alone(self, name: str, wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Holds the lock of a template's name within the context. If another lab holds this lock, calls `wait` before
        it waits; `wait` can raise an error, so that this lab does not wait."""
        return holding_name(self.root / name, wait)

    def _remove(self, name: str, in_use: str) -> None:
        """Removes a template; the caller holds the lock of its name. The record is removed first, so that a partly
        removed template counts as unfinished."""
        home = self.root / name
        if home.exists() and not is_own(home):
            _refuse(
                f"another account owns the template {name} or can write to it; see who owns {home}, and remove it "
                "yourself"
            )
        with suppress(FileNotFoundError), open_lock(home / IN_USE, make=False) as lock:
            if not take(lock):
                _refuse(in_use)
        (home / _RECORD).unlink(missing_ok=True)
        shutil.rmtree(home)

    def _described(self, home: Path) -> KeptTemplate:
        record = _record(home)
        made = datetime.fromtimestamp(home.stat().st_mtime, UTC) if record is None else record.made
        uses = _uses(home)
        return KeptTemplate(
            home.name,
            "unknown" if record is None else _contents(record),
            "unknown" if record is None else record.key.version,
            bytes_below(home) if record is None else record.bytes_on_disk,
            made,
            max(uses.values(), default=made),
            [study for study in reversed(uses) if study],
            self._is_in_use(home),
            _fault(home),
        )

    def _is_in_use(self, home: Path) -> bool:
        return home.name in self._held or is_held(home / IN_USE)


@contextmanager
def _on_disk(what: str) -> Iterator[None]:
    """Turns an OSError within the context into an ArmError whose message begins with `what`."""
    try:
        yield
    except BrokenPipeError:  # the program to which pgtrial's output is piped has closed the pipe
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ArmError(
            f"{what} ({where}{error.strerror}); free some space, or set PGTRIAL_STATE to a directory that you own"
        ) from None


def _refuse(what: str) -> NoReturn:
    raise TemplateInUse(f"{what}; try again when that pgtrial has ended")


def _make(order: TemplateOrder, staging: Path, home: Path) -> None:
    staging.mkdir(mode=0o711)
    begun = time.monotonic()
    try:
        order.build(staging / "data")
        record = TemplateRecord(
            key=order.key,
            label=order.label,
            settings=dict(order.settings),
            pgtrial=__version__,
            data_format=DATA_FORMAT,
            libc=platform.libc_ver(),
            made=_now(),
            took_s=round(time.monotonic() - begun, 3),
            bytes_on_disk=bytes_below(staging),
        )
        open_lock(staging / IN_USE).close()
        (staging / _FILES).write_bytes(_FILES_TYPE.dump_json(_files(staging / "data")))
        (staging / _RECORD).write_text(record.model_dump_json(indent=1))
        for name in (_FILES, _RECORD):
            (staging / name).chmod(0o644)
        os.sync()  # later processes trust a template that has its name, so everything is on disk before the rename
        staging.rename(home)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _fault(home: Path) -> str | None:
    """Returns the reason why a template cannot be used, in a few words; None if it can be used.

    The files are compared by name, size and modification time with `files.json`, which lists them as they were when the
    template was made. This takes some milliseconds. The content of the files is not read; PostgreSQL's page checksums
    detect changes by a faulty disk.
    """
    if not home.is_dir():
        return "it does not exist"
    if not is_own(home):
        return "other accounts own it or can write to it"
    record = _record(home)
    if record is None:
        return f"{_RECORD} is missing or was written by another version of pgtrial"
    if record.key.name != home.name:
        return "it was made by another version of pgtrial, or before an upgrade of the C library"
    try:
        recorded = _FILES_TYPE.validate_json((home / _FILES).read_bytes())
    except (OSError, ValidationError):
        return f"{_FILES} is missing or damaged"
    present = _files(home / "data")
    name = min((name for name, _ in recorded.items() ^ present.items()), default=None)
    return None if name is None else _difference(f"data/{name}", recorded.get(name), present.get(name))


def _difference(name: str, was: tuple[int, int] | None, now: tuple[int, int] | None) -> str:
    if now is None:
        return f"{name} is missing"
    if was is None:
        return f"{name} is a file that does not belong to it"
    if was[0] != now[0]:
        return f"{name} has {now[0]:,} bytes instead of {was[0]:,}"
    return f"{name} was changed after the template was made"


def _record(home: Path) -> TemplateRecord | None:
    with suppress(OSError, ValidationError):
        return TemplateRecord.model_validate_json((home / _RECORD).read_bytes())
    return None


def _files(directory: Path) -> _Files:
    """Returns all files and directories below a directory. The paths of directories end in a slash."""
    files: _Files = {}
    for name, status in entries(directory):
        is_folder = stat.S_ISDIR(status.st_mode)
        files[f"{name}/" if is_folder else name] = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
    return files


def _contents(record: TemplateRecord) -> str:
    key = record.key
    parts = [record.label]
    if key.fillfactor != 100:
        parts.append(f"fillfactor {key.fillfactor}")
    if key.foreign_keys:
        parts.append("foreign keys")
    if options := key.kind.partition(" initdb ")[2]:
        parts.append(f"initdb {options}")
    return ", ".join(parts)


def _note_use(home: Path, study: str) -> None:
    """Records that a study uses a template now. The caller holds the lock of the template's name."""
    uses = [*((name, moment) for name, moment in _uses(home).items() if name != study), (study, _now())]
    temporary = home / f".{_USES}"
    temporary.write_text(_Uses(by_study=dict(uses[-_MOST_STUDIES:])).model_dump_json(indent=1))
    temporary.chmod(0o644)
    temporary.replace(home / _USES)


def _uses(home: Path) -> dict[str, datetime]:
    with suppress(OSError, ValidationError):
        return _Uses.model_validate_json((home / _USES).read_bytes()).by_study
    return {}


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
