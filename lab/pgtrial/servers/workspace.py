"""The lab's private directories on this machine, in which one process of the lab makes its servers, and copies of
installations.

If the servers' account cannot run an installation where it is, such as a Python wheel below /root, pgtrial keeps a copy
of the installation in the state directory.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from pgtrial.files.locks import open_lock, wait_for
from pgtrial.machines.journal import Occasion
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.model.errors import ArmError
from pgtrial.model.units import format_size
from pgtrial.servers import undo
from pgtrial.servers.host_run_directory import HostRunDirectories
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.installed_code import digest_of_code
from pgtrial.servers.leftovers import clean
from pgtrial.servers.postmaster import stop_servers_below
from pgtrial.servers.run_directory import RunDirectory, servers_account
from pgtrial.servers.runs import check_records, claim, registry, remove_own, socket_directory
from pgtrial.servers.state_limit import builds_of, templates_of, trim, use_of_install
from pgtrial.servers.templates import RunTemplates
from pgtrial.servers.trees import open_to_all
from pgtrial.store.state import own_directory, state_limit, state_root

_LITTLE = 0.1
"""The share of the disk that has to be free. If less is free, a study warns and says how much space unused templates
take."""


class LeftOnHost(ArmError):
    """Raised when a run could not remove what it had made on another host, since that host cannot be reached. Nothing
    else has failed."""


class Workspace(RunDirectory):
    """The run directory of one lab process on this machine, below the state directory. As a context manager it removes
    the run directory on exit.

    Making a Workspace also stops the servers and removes the directories that killed labs have left. Raises ArmError if
    the state directory cannot be written to, or if the servers' account cannot reach it.
    """

    def __init__(self, state: Path | None = None, study: str = "") -> None:
        """`study` is the directory of the study that runs in the workspace."""
        self.state = (state or state_root()).absolute()
        account = servers_account(LOCAL)
        _make_state(self.state, account)
        self.study = study
        self.notices: list[str] = clean(self.state, Occasion(study=study))
        run, self._lock = claim(self.state)
        super().__init__(LOCAL, run, str(self.state), account, socket_directory(run))
        self.host_directories = HostRunDirectories(self.root)
        LOCAL.mkdir(self._sockets, 0o711)
        self.templates = templates_of(self.state, study)
        self.builds = builds_of(self.state)
        self.own_templates = RunTemplates(LOCAL)
        """The templates that no other run can use."""
        self._reachable: dict[ServerBinaries, ServerBinaries] = {}
        self._copies = ExitStack()
        """Holds the locks on the copies of installations that this run uses."""
        if (trimmed := trim(self.templates, self.builds, self.state / "installs", state_limit(self.state))) is not None:
            self.notices.append(trimmed)

    @property
    def larger(self) -> str:
        larger = "set PGTRIAL_STATE to a directory on a larger disk"
        if not (idle := self.templates.idle_bytes()):
            return larger
        return f"remove templates that no study uses now ({format_size(idle)}, see `pgtrial list`), or {larger}"

    def shortage(self) -> str | None:
        """Returns a warning if the disk is nearly full and templates that no study uses take some of its space;
        otherwise None."""
        disk, idle = shutil.disk_usage(self.state), self.templates.idle_bytes()
        if disk.free > _LITTLE * disk.total or not idle:
            return None
        return (
            f"{format_size(disk.free)} of {format_size(disk.total)} are free in {self.state}; templates that no study "
            f"uses now take {format_size(idle)}: `pgtrial list` shows them, `pgtrial cleanup --unused 30d` removes "
            "those that were not used for 30 days"
        )

    def reachable(self, server: ServerBinaries) -> ServerBinaries:
        """Returns the installation, or a copy of it in the state directory if the servers' account cannot run it where
        it is."""
        if server not in self._reachable:  # remember the result, since `runnable` reads every file of the installation
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
        """Stops every server that this run has started, undoes its changes, and removes its directories.

        Raises ArmError if a change could not be undone; the run directory then stays, since it has the journal. Raises
        LeftOnHost if that is true only for changes on other hosts.
        """
        stop_servers_below(self.root)
        self.templates.close()
        self.builds.close()
        self._copies.close()
        here, elsewhere = undo.of_run_here(self.root).undo().failures, self.host_directories.remove()
        shutil.rmtree(self._sockets, ignore_errors=True)
        if elsewhere or here:
            self._lock.close()
            raise (ArmError if here else LeftOnHost)(" ".join([*elsewhere, *here]))
        with suppress(FileNotFoundError):  # if somebody has removed the whole run directory
            remove_own(self.state, self.root)
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Removes the workspace. If that fails, raises ArmError or, if another error has ended the context, adds the
        message to that error as a note."""
        try:
            self.close()
        except ArmError as left:
            if error is None:
                raise
            error.add_note(str(left))


def _make_state(root: Path, account: str | None) -> None:
    try:
        own_directory(root)
        check_records(root)
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
            "set PGTRIAL_STATE to a directory that everyone may enter, together with all its parent directories (mode "
            "755)"
        )


def runnable(
    run_directory: RunDirectory, server: ServerBinaries, installs: Path, hold: Callable[[Path], None]
) -> ServerBinaries:
    """Returns the installation itself if the servers' account can run it; otherwise its copy below `installs`, which is
    made if it does not exist. Raises ArmError if the account can run neither.

    `hold` locks the copy, so that other labs do not remove it. It is called before this function looks for the copy.

    In the copy, libraries have the same path relative to the programs as in the original: programs in Python wheels
    look for libraries in `../lib` or in a directory `PACKAGE.libs` beside the package (RPATH relative to $ORIGIN).
    """
    if _trouble(server.bin, run_directory) is None:
        return server
    prefix = server.bin.parent
    package = prefix.parent
    home = installs / f"pg{server.version}-{digest_of_code(prefix)[:8]}"
    hold(home)
    if not home.is_dir():
        staged = run_directory.root / f"install-{home.name}"
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
    if (trouble := _trouble(copied.bin, run_directory)) is not None:
        user = run_directory.account or os.geteuid()
        raise ArmError(
            f"PostgreSQL {server.version} in {server.bin} cannot be run by the user {user}, nor can "
            f"its copy in {copied.bin} ({trouble}): install it where everyone can read it"
        )
    return copied


_CATALOG = re.compile(r"^POSTGRES_BKI=(.+)$", re.MULTILINE)


def _trouble(directory: Path, run_directory: RunDirectory) -> str | None:
    """Returns the reason why the servers' account cannot run the programs in a bin directory, or cannot read the files
    that initdb needs; None if it can.

    initdb prints the path of these files. pg_config is not used, since not every installation has it.
    """
    try:
        shown = run_directory.run([directory / "initdb", "--show", "--pgdata", "/nonexistent"])
        postgres = run_directory.run([directory / "postgres", "--version"])
    except HostError as error:
        return str(error)
    for done in (postgres, shown):
        if done.status != 0:
            return " ".join(done.stderr.split()) or f"a program in {directory} exits with status {done.status}"
    catalog = _CATALOG.search(shown.stderr)
    if catalog is None:
        return f"{directory / 'initdb'} does not print the path of postgres.bki"
    if run_directory.run(["test", "-r", catalog[1]]).status != 0:
        return f"{catalog[1]} cannot be read"
    return None


def _copy_tree(source: Path, destination: Path) -> None:
    try:
        shutil.copytree(source, destination, symlinks=True, ignore=shutil.ignore_patterns("include", "__pycache__"))
    except (OSError, shutil.Error) as error:
        raise ArmError(f"cannot copy the installation {source} to {destination}: {error}") from None
