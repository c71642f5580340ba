"""The runs of the lab in a state directory: one directory for each process, which holds a lock on it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from pgtrial.files.locks import IN_USE, open_lock, take, wait_for
from pgtrial.machines.machine import LOCAL, HostError
from pgtrial.machines.trust import check_way
from pgtrial.model.errors import ArmError, StoreError
from pgtrial.store.state import check_state, is_own, state_root

_SOCKET_PATH_MAX = 107
_SOCKET_NAME = "/99999/.s.PGSQL.65535"


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


def claim(state: Path) -> tuple[Path, IO[bytes]]:
    """Makes a new run directory, and returns it with the lock that marks it as this lab's."""
    with registry(state):
        run = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=state / "runs"))
        run.chmod(0o711)
        lock = open_lock(run / IN_USE)
        wait_for(lock)
    return run, lock


def remove_own(state: Path, run: Path) -> None:
    """Removes a run directory, its lock last and while no other lab looks: without a lock the run would be taken for
    that of a killed lab."""
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    with registry(state):
        shutil.rmtree(run, ignore_errors=True)


def abandoned_runs(root: Path) -> list[Path]:
    """Returns the run directories of this account whose labs have ended. The caller holds the lock of all run
    directories."""
    return [path for path in all_runs(root) if is_own(path) and not is_held(path)]


def all_runs(root: Path) -> list[Path]:
    """Returns all run directories, also those that other accounts have made."""
    return [path for path in sorted((root / "runs").glob("*")) if path.is_dir()]


def taken(run: Path, held: ExitStack) -> IO[bytes] | None:
    """Takes the lock of a run that its lab has left, until `held` ends. Returns None if somebody else has it now."""
    lock = held.enter_context(open_lock(run / IN_USE))
    return lock if take(lock) else None


def is_held(run: Path) -> bool:
    """True if the lab of a run still lives."""
    with suppress(FileNotFoundError), open_lock(run / IN_USE, make=False) as file:
        return not take(file)
    return False  # the lab was killed between making the directory and locking it


def socket_directory(run: Path) -> Path:
    """Returns the directory for the sockets of a run: inside the run, unless their paths would be too long."""
    inside = run / "s"
    fits = len(os.fsencode(inside)) + len(_SOCKET_NAME) <= _SOCKET_PATH_MAX
    return inside if fits else Path("/tmp") / f"pgtrial-{run.name}"


def check_records(root: Path) -> None:
    """Raises ArmError unless only root and this account can write what is read and removed in a state directory."""
    try:
        check_state(root)
        if LOCAL.root:
            check_way(LOCAL, root)
    except (StoreError, HostError) as error:
        raise ArmError(f"the state directory {root}: {error}") from None
    except OSError as error:
        raise ArmError(f"{error.filename or root} cannot be read ({error.strerror})") from None
