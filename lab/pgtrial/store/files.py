"""Writes files so that they are complete or absent: under a temporary name, flushed to the disk, then renamed. Reads
files, and turns errors into sentences for the user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from pgtrial.files.reading import open_file, read_bytes
from pgtrial.files.trust import ExchangeableError, check_exchangeable
from pgtrial.files.writing import NewFile, make_directory, new_beside, replace_file
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records import FORMAT, Record

_R = TypeVar("_R", bound=Record)


def read_record(path: Path, kind: type[_R], cure: str) -> _R:
    """Returns a record from its file. Raises StoreError."""
    with intact(path, cure):
        return parse_record(path, read_bytes(path).decode(), kind, cure)


def record_at(path: Path, kind: type[_R], cure: str) -> _R | None:
    """Returns a record from its file; None if there is no such file. Raises StoreError."""
    return read_record(path, kind, cure) if path.exists() else None


def parse_record(path: Path, text: str, kind: type[_R], cure: str) -> _R:
    """Returns a record from the text of its file. Raises StoreError."""
    try:
        record = kind.model_validate_json(text)
    except ValidationError as error:
        refuse_newer(path)
        raise damaged(path, error, cure) from error
    _check_format(path, getattr(record, "format", FORMAT))
    return record


def refuse_newer(path: Path) -> None:
    """Raises StoreError if this file holds a record of a newer format. A file that cannot be read counts as not
    newer."""
    with contextlib.suppress(OSError, ValueError):
        content = from_json(read_bytes(path))
        _check_format(path, content.get("format") if isinstance(content, dict) else None)


def _check_format(path: Path, version: object) -> None:
    if isinstance(version, int) and version > FORMAT:
        raise StoreError(f"{path} was written by a newer pgtrial (format {version}); upgrade")


def check_readable(study: Path) -> None:
    """Raises StoreError if this account may not read a study's directory, or a directory in it."""
    check_listed(study)
    for folder in study.iterdir():
        if folder.is_dir():
            check_listed(folder)


def check_listed(folder: Path) -> None:
    """Raises StoreError if this account may not read a directory, which would otherwise look empty."""
    try:
        os.scandir(folder).close()
        os.stat(os.path.join(folder, "."))  # a Path would drop the point
    except PermissionError as error:
        raise _forbidden(folder) from error


def _forbidden(path: Path) -> StoreError:
    return StoreError(f"{path} may not be read by this account; run pgtrial as its owner, or let this account read it")


def damaged(path: Path, error: Exception, cure: str) -> StoreError:
    """Returns the error for a file that cannot be read."""
    if isinstance(error, PermissionError):
        return _forbidden(path)
    return StoreError(f"{path} is damaged or missing ({first_line(error)}); {cure}")


@contextlib.contextmanager
def intact(path: Path, cure: str) -> Iterator[None]:
    """Turns every error inside that shows that a file cannot be read into a StoreError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise damaged(path, error, cure) from error


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message, with the place of the value where a record is invalid."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        return f"{where}: {message}" if where else message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def texts_of(folder: Traversable, endings: tuple[str, ...], kind: str, name: str, source: str) -> dict[str, str]:
    """Returns the texts of the files of a pack or a suite (`kind`) that have these endings, by file name.

    Raises StudyError, which begins with `source`.
    """
    texts = {}
    try:
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.is_file() and file.name.endswith(endings) and not file.name.startswith("."):
                # bytes, since reading text would change the line ends
                texts[file.name] = file.read_bytes().decode()
    except UnicodeDecodeError:
        raise StudyError(f"{source}: the file {file.name} of the {kind} {name} is not a text in UTF-8") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read the {kind} {folder}: {error.strerror or 'unreadable'}") from None
    return texts


def hidden(path: Path) -> Path:
    """Returns the hidden name that a file or directory has until it is complete."""
    return path.with_name(f".{path.name}.tmp")


def write_atomically(path: Path, data: str | bytes, option: str = "--results") -> None:
    """Replaces `path` by `data` so that a crash leaves the old file or the new one. Raises StoreError as `writing`
    does."""
    with writing(path, option):
        replace_file(path, data.encode() if isinstance(data, str) else data)


def write_in_folder(path: Path, data: str | bytes) -> None:
    """Writes a file atomically, and makes its folder if that is missing. Raises StoreError."""
    make_folder(path.parent)
    write_atomically(path, data)


def make_folder(path: Path, option: str = "--results", mode: int = 0o777) -> None:
    """Makes a directory and those above it that are missing. Raises StoreError as `writing` does."""
    with writing(path, option):
        make_directory(path, mode)


def check_place(path: Path, option: str = "--results") -> None:
    """Raises StoreError if pgtrial runs as root and is about to write into a directory in which another account could
    replace the files."""
    with writing(path, option):
        check_exchangeable(path)


def sync_tree(directory: Path) -> None:
    """Flushes every file of a directory, and the directory, to the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


def take_name(written: Path, path: Path) -> None:
    """Flushes a file that another program has written to the disk, then renames it to `path`."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    written.rename(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Flushes a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError, option: str = "--results") -> StoreError:
    """Returns the error for a file or directory that cannot be written; `option` is the option with which the user
    names another one."""
    if isinstance(error, ExchangeableError):
        return StoreError(
            f"root writes nothing to {path}: {error.strerror}; {error.weakness.cure}, or choose a directory that only "
            f"root can write, with all above it, with {option}"
        )
    return StoreError(
        f"cannot write {path}: {error.strerror or error}; choose a writable place with {option}, or free some space"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an OSError inside into a StoreError about `path`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def values_of(path: Path) -> Iterator[None]:
    """Turns an error in a computation with a study's stored values into a StoreError about `path`.

    Records check the types of the values that they name. Facts have no such types, so that a forged study may have
    anything there.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".removesuffix(": ")
        raise StoreError(
            f"{path} has values that no pgtrial writes ({what}); get it again, or see --debug for where they are"
        ) from error


@contextlib.contextmanager
def writing(path: Path, option: str = "--results") -> Iterator[None]:
    """Turns an OSError inside into a StoreError about `path`; `option` is the option with which the user names another
    path."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, option) from error


@contextlib.contextmanager
def new_file(path: Path, option: str = "-o", *, replace: bool = False) -> Iterator[NewFile]:
    """Yields a file to write to, which becomes `path` at the end. Raises StoreError if `path` is another file.

    A file with the same bytes may be there already; with `replace` any file. Nothing is left behind by an error.
    """
    try:
        with new_beside(path) as new:
            yield new
            new.flush()
            if not replace and path.exists() and not _is_same(new, path):
                raise StoreError(f"{path} exists and is another file; remove it, or name another with {option}")
            new.take_name(path.name)
    except ExchangeableError as error:
        raise cannot_write(path, error, option) from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; name another place with {option}") from error


def _is_same(new: NewFile, path: Path) -> bool:
    """True if the file at `path` has the content of the new one."""
    new.file.seek(0)
    with open_file(path) as there:
        while piece := new.file.read(_PIECE):
            if there.read(len(piece)) != piece:
                return False
        return not there.read(1)


_PIECE = 2**20
