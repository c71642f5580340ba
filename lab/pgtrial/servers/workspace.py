"""The lab's private directories: one run per process, held by a lock, and what a crashed lab left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker
from pgtrial.machines.alone import Leftover
from pgtrial.machines.journal import HostJournal, pending, undo_all
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError
from pgtrial.servers import private_installations, settings_journal
from pgtrial.servers.account import Account, find_account
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.processes import stop_servers_below
from pgtrial.servers.rooms import Rooms, pending_rooms, remove_rooms
from pgtrial.servers.templates import KeptCopy, Templates

_SOCKET_PATH_MAX = 107
_OF_A_LAB = "directories and servers of a lab that ended abruptly"
_SOCKET_NAME = "/99999/.s.PGSQL.65535"


class LeftOnHost(ArmError):
    """What a run made on another host could not be removed, since that host is gone; nothing else is wrong."""


class Workspace:
    """Directories of one lab process below the state root; a context manager that removes them on exit.

    Opening it stops the servers and removes the directories of labs that crashed. Raises ArmError when the state
    root cannot be written, or cannot be reached by the account that servers run as.
    """

    def __init__(self, state: Path | None = None) -> None:
        self.state = (state or state_root()).absolute()
        self.account: Account = find_account()
        _make_state(self.state, self.account)
        self.notices: list[str] = clean(self.state)
        self.run, self._lock = _claim(self.state)
        self._count = 0
        self.kept: dict[KeptCopy, Path] = {}
        self.maker: DataMaker = ENGINE_HERE
        """Who makes data on servers elsewhere."""
        self.rooms = Rooms(self.run)
        self.load_from: Callable[[], Sequence[str]] = tuple
        """Addresses that load comes from now, beside this machine's; servers elsewhere are opened to them."""
        self._sockets = _socket_directory(self.run)
        self._private(self._sockets)
        self.templates = Templates(self.state / "templates")

    def directory(self, name: str) -> Path:
        """A fresh path for a private directory in this run, not yet made, on the file system of the templates."""
        self._count += 1
        return self.run / f"{self._count:03}-{name}"

    def socket_directory(self) -> Path:
        """A new directory for one server's Unix socket: short, and open to root and the run's account alone."""
        self._count += 1
        return self._private(self._sockets / str(self._count))

    def journal(self) -> settings_journal.Journal:
        """Where a change to a given server is written down before it is made."""
        return settings_journal.Journal(self.run)

    def changes(self) -> HostJournal:
        """Where a change of this machine is written down before it is made."""
        return HostJournal(self.run, LOCAL)

    def reachable(self, server: ServerBinaries) -> ServerBinaries:
        """The installation, or a copy of it below the state root when the account cannot run it where it is."""
        return private_installations.reachable(server, self.account, self.state / "installs", self.run)

    def close(self) -> None:
        """Stop every server that this run started and remove its directories. Raises ArmError, of hosts LeftOnHost.

        The directory stays while it has the journal of a change that could not be undone.
        """
        stop_servers_below(self.run)
        elsewhere, here = self.rooms.remove(), [*settings_journal.undo(self.run), *undo_all(self.run, LOCAL)]
        shutil.rmtree(self._sockets, ignore_errors=True)
        if elsewhere or here:
            self._lock.close()
            raise (ArmError if here else LeftOnHost)(" ".join([*elsewhere, *here]))
        with suppress(FileNotFoundError):  # somebody has removed it all
            _remove_own(self.state, self.run)
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What could not be removed is an error, or a note to the one that ended the work: that comes first."""
        try:
            self.close()
        except ArmError as left:
            if error is None:
                raise
            error.add_note(str(left))

    def _private(self, path: Path) -> Path:
        path.mkdir(mode=0o700)
        self.account.own(path)
        return path


def _claim(state: Path) -> tuple[Path, IO[bytes]]:
    """A run's directory that nobody has, and the lock that says whose it is."""
    with _registry(state):
        run = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=state / "runs"))
        run.chmod(0o711)
        lock = (run / "lock").open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return run, lock


def _remove_own(state: Path, run: Path) -> None:
    """The lock goes last, and while nobody looks: without one the run would be taken for that of a killed lab."""
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    with _registry(state):
        shutil.rmtree(run, ignore_errors=True)


def state_root() -> Path:
    """$PGTRIAL_STATE, else /var/lib/pgtrial for root, else the user's XDG state directory."""
    if chosen := os.environ.get("PGTRIAL_STATE"):
        return Path(chosen).expanduser()
    if os.geteuid() == 0:
        return Path("/var/lib/pgtrial")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "pgtrial"


def leftovers(state: Path | None = None) -> list[Leftover]:
    """What crashed labs left: run directories (with servers that may still run) and damaged templates."""
    root = state or state_root()
    if not root.is_dir():
        return []
    with _registry(root):
        return [
            *(
                Leftover(path, what)
                for path in _abandoned(root)
                for what in (*pending_rooms(path), *settings_journal.pending(path), *pending(path, LOCAL), _OF_A_LAB)
            ),
            *(Leftover(path, "template without its mark") for path in Templates(root / "templates").unmarked()),
        ]


def clean(state: Path | None = None, *, templates: bool = False) -> list[str]:
    """Stop and remove what crashed labs left; with `templates` also loaded data. Returns sentences on what was done.

    Raises ArmError when the templates are asked for while another lab runs.
    """
    root = state or state_root()
    if not root.is_dir():
        return []
    with _registry(root):
        notices = [notice for path in _abandoned(root) for notice in _remove_run(path)]
        store = Templates(root / "templates")
        for path in store.unmarked():
            shutil.rmtree(path, ignore_errors=True)
            notices.append(f"Removed the unfinished template {path}.")
        if templates:
            if any((root / "runs").iterdir()):
                raise ArmError(
                    f"the templates in {store.root} are in use by a running pgtrial; try again when it has ended"
                )
            for path in store.present():
                shutil.rmtree(path, ignore_errors=True)
                notices.append(f"Removed the template {path}.")
    return notices


def _abandoned(root: Path) -> list[Path]:
    return [path for path in sorted((root / "runs").glob("*")) if path.is_dir() and not _locked(path / "lock")]


def _locked(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass  # killed between making the directory and locking it
    return False


def _remove_run(path: Path) -> list[str]:
    stopped = stop_servers_below(path)
    servers = f" and stopped {stopped} of its processes" if stopped else ""
    notices, kept = remove_rooms(path)
    kept += [*settings_journal.undo(path), *undo_all(path, LOCAL)]
    if kept:
        return [*notices, *kept]
    sockets = _socket_directory(path)
    if sockets.is_dir() and not sockets.is_symlink() and sockets.stat().st_uid in (os.geteuid(), find_account().uid):
        shutil.rmtree(sockets, ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)
    return [*notices, f"Removed {path}, left by a pgtrial that ended abruptly{servers}."]


def _socket_directory(run: Path) -> Path:
    inside = run / "s"
    fits = len(os.fsencode(inside)) + len(_SOCKET_NAME) <= _SOCKET_PATH_MAX
    return inside if fits else Path("/tmp") / f"pgtrial-{run.name}"


@contextmanager
def _registry(root: Path) -> Iterator[None]:
    """Hold off other labs while runs are claimed or cleaned."""
    with (root / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make_state(root: Path, account: Account) -> None:
    try:
        for directory in (root, root / "runs", root / "templates", root / "installs"):
            directory.mkdir(parents=True, exist_ok=True)
        (root / "lock").touch()
    except OSError as error:
        raise ArmError(
            f"cannot write to pgtrial's state directory {root}: {error.strerror}; "
            "set PGTRIAL_STATE to a directory that you own"
        ) from None
    if account.run(["test", "-x", root / "runs"]).returncode != 0:
        raise ArmError(
            f"servers run as the user {account.name}, who cannot reach the state directory {root}: "
            "set PGTRIAL_STATE to a directory that everyone may enter (mode 755, and all above it)"
        )
