"""Files that are complete or absent: written under a temporary name, flushed to the disk, renamed."""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterator
from pathlib import Path

from pgtrial.model.errors import StoreError


def write_atomically(path: Path, data: str | bytes) -> None:
    """Replace `path` by `data` so that a crash leaves the old file or the new one. Raises StoreError."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def sync_tree(directory: Path) -> None:
    """Flush every file of a directory, and the directory, to the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Flush a directory's entries to the disk, where the system lets one open a directory."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> StoreError:
    """The sentence for a results directory that cannot be written."""
    return StoreError(
        f"cannot write {path}: {error.strerror or error}; choose a writable place with --results, or free some space"
    )


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yields a hidden path to write to, which becomes `path` at the end. Raises StoreError if `path` is another file.

    A file with the same bytes may be there already. Nothing is left behind by an error.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if path.exists() and not filecmp.cmp(temporary, path, shallow=False):
            raise StoreError(f"{path} exists and is another file; remove it, or name another with -o")
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; name another place with -o") from error
    finally:
        temporary.unlink(missing_ok=True)
