"""The templates of this machine: each is made once, kept, and shared by all studies.

`NAME/` holds the data directory, the record of how it was made, and who used it. The directory gets its name when all
of that is on the disk, so that it is there as a whole or not at all. A lab that looks at a template, makes or removes
it holds `NAME.lock` meanwhile; each lab that uses it holds a shared lock on `NAME/lock` until it ends, however it ends.
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
"""The number of studies that a template remembers as its users: the latest ones."""

_Files = dict[str, tuple[int, int]]
"""The size of each file in bytes and the time when it was written, in ns since 1970, by path in the data directory."""

_FILES_TYPE = TypeAdapter(_Files)


class TemplateInUse(ArmError):
    """A running lab uses the template, makes it or removes it."""


class _Uses(Record):
    """The time when each study last used a template, the latest use last; "" stands for uses outside of any study."""

    by_study: dict[str, AwareDatetime]


class TemplateRecord(Record):
    """The record of a template: its contents, and how it was made."""

    key: TemplateKey
    label: str
    settings: dict[str, str]
    """The settings of the server while it loaded the data."""
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
    """A description of the data: `scale 20, fillfactor 90`."""
    postgres: str
    bytes_on_disk: int
    made: datetime
    last_used: datetime
    studies: list[str]
    """The directories of the latest studies that used the template, the latest one first."""
    in_use: bool
    fault: str | None
    """The reason why no study will use the template, in a few words; None if it can be used."""


class Templates:
    """The templates below a directory, as one lab sees them."""

    def __init__(
        self, root: Path, study: str = "", make_room: Callable[[Templates], str | None] = lambda templates: None
    ) -> None:
        """`study` is the directory of the study that uses the templates, for `pgtrial list`. `make_room` is called when
        a new template has been made; it returns a sentence on the templates that it removed for that, or None."""
        self.root = root
        self._make_room = make_room
        self._study = study
        self._held: dict[str, IO[bytes]] = {}
        """The shared lock on each template that this lab uses, by name."""

    def find(self, key: TemplateKey) -> Path | None:
        """Returns the data directory of a template if it can be used, else None."""
        home = self.root / key.name
        return home / "data" if _fault(home) is None else None

    def rows_file(self, key: TemplateKey) -> Path | None:
        """Returns the file in which the digests of a template's rows are kept; None for a template that this lab does
        not use."""
        return self.root / key.name / _ROWS if key.name in self._held else None

    def ensure(self, order: TemplateOrder, staging: Path, on_wait: Callable[[str], None], notes: list[str]) -> Path:
        """Returns the data directory of the template, which is in use by this lab from now on.

        If there is none, it is made in `staging`, on the same file system. If two labs want the same template, one
        makes it, and the other one calls `on_wait` before it waits. A damaged template is replaced by a new one.
        `notes` receives a sentence on that, and one on templates that were removed to make space. Raises ArmError if
        another lab uses a damaged template.
        """
        name, made = order.key.name, False
        home = self.root / name
        if name in self._held and _fault(home) is None:
            return home / "data"
        waiting = f"waiting for another pgtrial, which makes or checks the template {name} ({order.label})"
        with _on_disk(f"the template {name} cannot be kept"), self._alone(name, lambda: on_wait(waiting)):
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
        """Removes a template, finished or not. Raises TemplateInUse, and ArmError if it cannot be removed."""
        in_use = f"the template {name} is in use by a running pgtrial"
        with _on_disk(f"the template {name} cannot be removed"), self._alone(name, lambda: _refuse(in_use)):
            self._remove(name, in_use)

    def remove_unfinished(self) -> list[Path]:
        """Removes what labs left that were killed while they made or removed a template. Returns the directories."""
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
        """Returns the directories without a record that no lab makes or removes now."""
        return [path for path in self._present() if not (path / _RECORD).is_file() and not is_name_held(path)]

    def kept(self) -> list[KeptTemplate]:
        """Returns all templates, by name."""
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
        """Holds the lock of a template's name. If another lab holds it, `wait` is called first; it may raise an error
        so that this lab does not wait."""
        return holding_name(self.root / name, wait)

    def _remove(self, name: str, in_use: str) -> None:
        """Removes a template while its name is locked. Its record is removed first: without it every lab takes the
        template for unfinished."""
        home = self.root / name
        if home.exists() and not is_own(home):
            _refuse(f"the template {name} is not this account's alone: look whose {home} is, and remove it")
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
    except BrokenPipeError:  # the pipe of a program that reads the progress was closed
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ArmError(
            f"{what} ({where}{error.strerror}); free some space, or set PGTRIAL_STATE to a directory that you own"
        ) from None


def _refuse(what: str) -> NoReturn:
    raise TemplateInUse(f"{what}; try again when that has ended")


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
        os.sync()  # the template outlives this process; it is on disk before it gets its name
        staging.rename(home)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _fault(home: Path) -> str | None:
    """Returns why a template cannot be used, in a few words; None if it can.

    The files are compared by name, size and time of change, which takes some milliseconds. Changes by a faulty disk are
    left to the checksums of PostgreSQL's pages.
    """
    if not home.is_dir():
        return "it is not there"
    if not is_own(home):
        return "other accounts can write it"
    record = _record(home)
    if record is None:
        return f"{_RECORD} is missing or of another pgtrial"
    if record.key.name != home.name:
        return "it was made by another pgtrial, or before an upgrade of the C library"
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
        return f"{name} is no part of it"
    if was[0] != now[0]:
        return f"{name} has {now[0]:,} bytes in place of {was[0]:,}"
    return f"{name} was written to after it was made"


def _record(home: Path) -> TemplateRecord | None:
    with suppress(OSError, ValidationError):
        return TemplateRecord.model_validate_json((home / _RECORD).read_bytes())
    return None


def _files(directory: Path) -> _Files:
    """Returns the files below a directory, and its directories, whose names end in a slash."""
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
    """Writes down that a study uses a template now. Only the holder of the lock of its name does so."""
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
