"""The builds of this machine. Each build is made once, kept in the state directory, and shared by all studies.

The directory `NAME/` has the installation and, once that is complete, its record. A lab holds the lock `NAME.lock`
while it makes, removes or looks for a build. Each lab that uses a build holds a shared lock on `NAME/lock` until the
lab ends.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NoReturn

from pydantic import AwareDatetime, ValidationError

from pgtrial import __version__
from pgtrial.files.locks import IN_USE, holding_name, is_held, is_name_held, open_lock, take, wait_for
from pgtrial.model.errors import ArmError, StoreError, StudyError
from pgtrial.model.records import Record
from pgtrial.servers.trees import bytes_below
from pgtrial.store.files import write_atomically
from pgtrial.store.state import is_own, own_directory

_RECORD = "build.json"


class BuildError(StudyError):
    """Raised when a server or an extension cannot be built from its source."""


class BuildInUse(ArmError):
    """Raised when a running lab uses, makes or removes the build, so that it cannot be removed now."""


@dataclass(frozen=True)
class Made:
    """The description of a finished build, which the function that made the build returns."""

    programs: str
    """The directory of the server's programs, relative to the build's directory."""
    facts: dict[str, Any]
    """The facts about the build, which become a part of the facts of each arm that uses it."""
    created: list[str]
    """The names of the extensions that the build installed, and that pgtrial creates in the database."""
    steps: int
    """The number of steps that the build took, counted as lines of its output that show a compilation; 0 if it is
    unknown."""


class BuildRecord(Record):
    """The record of a build: its contents, and how it was made."""

    label: str
    origin: str
    """The repository or directory of the source. The time that this build took is the estimate for later builds of the
    same origin."""
    programs: str
    facts: dict[str, Any]
    created: list[str]
    steps: int
    took_s: float
    bytes_on_disk: int
    pgtrial: str
    made: AwareDatetime


@dataclass(frozen=True)
class Order:
    """A build that a study needs, and the function that makes it."""

    name: str
    """The name of the build's directory. It ends in a digest of everything on which the build depends."""
    label: str
    """A description of the build for messages."""
    origin: str
    make: Callable[[Path, Path, BuildRecord | None], Made]
    """The function that makes the build. Its arguments are the directory for the build, the file for the output of the
    commands, and the record of an earlier build of the same origin, by which it estimates its progress. Raises
    BuildError."""


@dataclass(frozen=True)
class Kept:
    """A complete build on this machine."""

    home: Path
    record: BuildRecord

    @property
    def programs(self) -> Path:
        """The bin directory of the build."""
        return self.home / self.record.programs


@dataclass(frozen=True)
class KeptBuild:
    """A build as `pgtrial list` shows it."""

    name: str
    contents: str
    bytes_on_disk: int
    made: datetime
    last_used: datetime
    in_use: bool


class Builds:
    """The builds below a directory. The object belongs to one lab and holds the locks of the builds that this lab
    uses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._held: dict[str, IO[bytes]] = {}

    def ensure(self, order: Order, on_wait: Callable[[str], None]) -> Kept:
        """Returns the build, and makes it first if it does not exist. From now on this lab uses the build, so that no
        other lab removes it.

        If two labs need the same build at the same time, one makes it, and the other calls `on_wait` and waits. Raises
        BuildError, and StoreError if the build cannot be stored.
        """
        home = self.root / order.name
        try:
            own_directory(self.root)
            with holding_name(home, lambda: on_wait(f"waiting for another pgtrial, which builds {order.label}")):
                record = _record(home)
                if record is None:
                    record = self._make(order, home)
                if order.name not in self._held:
                    self._held[order.name] = lock = open_lock(home / IN_USE)
                    wait_for(lock, shared=True)
                (home / IN_USE).touch()
        except OSError as error:
            where = error.filename or home
            raise StoreError(
                f"the build of {order.label} cannot be stored ({where}: {error.strerror}); free some space, or set "
                "PGTRIAL_STATE to a directory that you own"
            ) from None
        return Kept(home, record)

    def find(self, name: str) -> Kept | None:
        """Returns a build by the name of its directory; None if it does not exist or is not complete."""
        record = _record(self.root / name)
        return None if record is None else Kept(self.root / name, record)

    def kept(self) -> list[KeptBuild]:
        """Returns all complete builds, in the order of their names."""
        found = []
        for path in self._present():
            if (record := _record(path)) is not None:
                lock = path / IN_USE
                used = datetime.fromtimestamp(lock.stat().st_mtime, UTC) if lock.exists() else record.made
                size = record.bytes_on_disk
                found.append(KeptBuild(path.name, record.label, size, record.made, used, self._is_in_use(path)))
        return found

    def remove(self, name: str) -> None:
        """Removes a build, whether it is finished or not. Raises BuildInUse, and ArmError if it cannot be removed."""
        home = self.root / name
        in_use = f"the build {name} is in use by a running pgtrial; try again when that pgtrial has ended"
        try:
            with holding_name(home, lambda: _refuse(in_use)):
                if home.exists() and not is_own(home):
                    raise ArmError(
                        f"another account owns {home} or can write to it; see who owns it, and remove it yourself"
                    )
                with suppress(FileNotFoundError), open_lock(home / IN_USE, make=False) as lock:
                    if not take(lock):
                        _refuse(in_use)
                (home / _RECORD).unlink(missing_ok=True)
                shutil.rmtree(home, ignore_errors=False)
            self.log(name).unlink(missing_ok=True)
        except OSError as error:
            raise ArmError(
                f"the build {name} cannot be removed ({error.filename}: {error.strerror}); remove it yourself"
            ) from None

    def remove_unfinished(self) -> list[Path]:
        """Removes the unfinished builds that killed labs have left. Returns the directories that were removed."""
        removed = []
        for path in self.unfinished():
            with suppress(ArmError):
                self.remove(path.name)
                removed.append(path)
        return removed

    def unfinished(self) -> list[Path]:
        """Returns the directories of builds that have no record, since they are not complete, and on which no lab works
        now."""
        return [path for path in self._present() if not (path / _RECORD).is_file() and not is_name_held(path)]

    def log(self, name: str) -> Path:
        """Returns the file with the output of the last failed build of this name."""
        return self.root / f"{name}.log"

    def remove_logs(self) -> None:
        """Removes the output of failed builds."""
        for log in self.root.glob("*.log"):
            log.unlink(missing_ok=True)

    def close(self) -> None:
        """Ends this lab's use of all builds."""
        for name in list(self._held):
            self._held.pop(name).close()

    def _make(self, order: Order, home: Path) -> BuildRecord:
        if home.exists():
            shutil.rmtree(home)
        home.mkdir(mode=0o755)
        home.chmod(0o755)
        begun, log = time.monotonic(), self.log(order.name)
        log.unlink(missing_ok=True)
        try:
            made = order.make(home, log, self._earlier(order.origin))
            record = BuildRecord(
                label=order.label,
                origin=order.origin,
                programs=made.programs,
                facts=made.facts,
                created=made.created,
                steps=made.steps,
                took_s=round(time.monotonic() - begun, 1),
                bytes_on_disk=bytes_below(home),
                pgtrial=__version__,
                made=datetime.now(UTC).replace(microsecond=0),
            )
            write_atomically(home / _RECORD, record.model_dump_json(indent=1))
            (home / _RECORD).chmod(0o644)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        log.unlink(missing_ok=True)
        return record

    def _earlier(self, origin: str) -> BuildRecord | None:
        """Returns the latest build from the same repository or directory."""
        records = [record for path in self._present() if (record := _record(path)) and record.origin == origin]
        return max(records, key=lambda record: record.made, default=None)

    def _present(self) -> list[Path]:
        return sorted(path for path in self.root.glob("*") if path.is_dir() and is_own(path))

    def _is_in_use(self, home: Path) -> bool:
        return home.name in self._held or is_held(home / IN_USE)


def record_beside(programs: Path) -> BuildRecord | None:
    """Returns the record of the build to which a bin directory belongs; None if pgtrial has not built the programs
    there."""
    return next((record for parent in programs.parents if (record := _record(parent)) is not None), None)


def _record(home: Path) -> BuildRecord | None:
    with suppress(OSError, ValidationError):
        if is_own(home):
            return BuildRecord.model_validate_json((home / _RECORD).read_bytes())
    return None


def _refuse(what: str) -> NoReturn:
    raise BuildInUse(what)
