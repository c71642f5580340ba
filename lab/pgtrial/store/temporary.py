"""Creates temporary folders, and removes temporary folders and files that killed processes have left.

The folders are in the state directory and not in /tmp, so that the next study and `pgtrial cleanup` find what a killed
process has left: server logs, scripts, and statements with values from the users' data.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pgtrial.files.held_folders import abandoned_folders, held_folder
from pgtrial.files.trust import check_exchangeable
from pgtrial.files.writing import TEMPORARY, abandoned_files
from pgtrial.model.errors import StoreError
from pgtrial.store.state import is_own, own_directory, state_root

_FOLDER = "temporary"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Creates a folder that only this account can access, and removes it at the end of the context.

    If the state directory cannot be written, the folder is created in TMPDIR, and stays if this process is killed.
    Raises StoreError if TMPDIR cannot be written either.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(held_folder(_made()))
        except OSError:
            try:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgtrial-")))
            except OSError as error:
                raise StoreError(
                    f"pgtrial cannot create a temporary folder in {state_root()}, nor in {error.filename or 'TMPDIR'} "
                    f"({error.strerror}); set PGTRIAL_STATE to a directory that you own, on a disk with free space"
                ) from error
        yield folder


def _made() -> Path:
    """Returns the folder that contains all temporary folders, and creates it if it does not exist. Raises OSError if it
    cannot be created."""
    path = state_root().absolute() / _FOLDER
    own_directory(path)
    if not is_own(path):
        raise PermissionError(f"{path} does not belong to this account alone")
    check_exchangeable(path)
    return path


def abandoned(state: Path) -> list[Path]:
    """Returns the temporary folders and files in a state directory whose processes were killed."""
    return list(_abandoned(state))


def remove_abandoned(state: Path) -> list[Path]:
    """Removes the temporary folders and files in a state directory whose processes were killed, and returns those that
    were removed."""
    removed = []
    for path in _abandoned(state):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            _remove_file(path)
        if not path.exists():
            removed.append(path)
    return removed


def remove_abandoned_files(folder: Path) -> None:
    """Removes the temporary files below a folder whose processes were killed."""
    for path in abandoned_files(sorted(folder.rglob(TEMPORARY))):
        _remove_file(path)


def _remove_file(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _abandoned(state: Path) -> Iterator[Path]:
    path = state / _FOLDER
    if is_own(path):
        yield from abandoned_folders(path)
    if is_own(state):
        # the data of templates and builds lie deeper, and nothing there is written in this way
        yield from abandoned_files(sorted((*state.glob(TEMPORARY), *state.glob(f"*/{TEMPORARY}"))))
