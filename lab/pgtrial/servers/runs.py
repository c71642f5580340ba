"""The runs of the lab that are recorded in a state directory. Each process of the lab has a run directory and holds a
lock on it while it lives."""

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
    """Holds the lock of the state directory within the context, so that other labs wait. It is held while run
    directories are made, looked at or removed."""
    with open_lock(root / "lock") as lock:
        wait_for(lock)
        yield


@contextmanager
def shared_state() -> Iterator[Path]:
    """Yields the state directory, and makes other labs wait within the context, so that they do not write its records
    at the same time. Raises StoreError if the directory cannot be written to."""
    root = state_root()
    try:
        with registry(root):
            yield root
    except OSError as error:
        raise StoreError(
            f"pgtrial cannot write to its state directory {root} ({error.strerror}); set PGTRIAL_STATE to a directory "
            "that you own"
        ) from error


def claim(state: Path) -> tuple[Path, IO[bytes]]:
    """Makes a new run directory for this lab. Returns it, and the lock file that shows other labs that the run is
    alive."""
    with registry(state):
        run = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=state / "runs"))
        run.chmod(0o711)
        lock = open_lock(run / IN_USE)
        wait_for(lock)
    return run, lock


def remove_own(state: Path, run: Path) -> None:
    """Removes this lab's own run directory. The lock file goes last, and while other labs are locked out: without the
    lock file they would take the run for that of a killed lab, and remove it themselves."""
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    with registry(state):
        shutil.rmtree(run, ignore_errors=True)


def abandoned_runs(root: Path) -> list[Path]:
    """Returns the run directories of this account whose labs do not live any more. The caller has to hold the lock of
    the state directory (`registry`)."""
    return [path for path in all_runs(root) if is_own(path) and not is_held(path)]


def all_runs(root: Path) -> list[Path]:
    """Returns all run directories, also those that other accounts have made."""
    return [path for path in sorted((root / "runs").glob("*")) if path.is_dir()]


def taken(run: Path, held: ExitStack) -> IO[bytes] | None:
    """Takes the lock of a run whose lab does not live any more, and holds it until `held` is closed. Returns None if
    another process holds the lock."""
    lock = held.enter_context(open_lock(run / IN_USE))
    return lock if take(lock) else None


def is_held(run: Path) -> bool:
    """True if the lab to which a run directory belongs still lives, since then it holds the run's lock."""
    with suppress(FileNotFoundError), open_lock(run / IN_USE, make=False) as file:
        return not take(file)
    return False  # the lab was killed between making the directory and locking it


def socket_directory(run: Path) -> Path:
    """Returns the directory for the Unix sockets of a run. It is inside the run directory, or below /tmp if the
    sockets' paths would be too long there."""
    inside = run / "s"
    fits = len(os.fsencode(inside)) + len(_SOCKET_NAME) <= _SOCKET_PATH_MAX
    return inside if fits else Path("/tmp") / f"pgtrial-{run.name}"


def check_records(root: Path) -> None:
    """Raises ArmError if an account other than root and the lab's own could write to the state directory, whose records
    pgtrial obeys."""
    try:
        check_state(root)
        if LOCAL.root:
            check_way(LOCAL, root)
    except (StoreError, HostError) as error:
        raise ArmError(f"the state directory {root}: {error}") from None
    except OSError as error:
        raise ArmError(f"{error.filename or root} cannot be read ({error.strerror})") from None
