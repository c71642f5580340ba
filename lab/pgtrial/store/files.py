"""Writes files so that they are either complete or absent: under a temporary name, flushed to the disk, then renamed.
Also reads files, and turns errors into sentences for the user."""

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
    """Reads a record of the type `kind` from its file. `cure` is the remedy in the message if the file is damaged.
    Raises StoreError if the file is missing or damaged."""
    with intact(path, cure):
        return parse_record(path, read_bytes(path).decode(), kind, cure)


def record_at(path: Path, kind: type[_R], cure: str) -> _R | None:
    """Reads a record of the type `kind` from its file; None if the file does not exist. Raises StoreError if the file
    is damaged. `cure` is the remedy in the message for this case."""
    return read_record(path, kind, cure) if path.exists() else None


def parse_record(path: Path, text: str, kind: type[_R], cure: str) -> _R:
    """Returns the record of the type `kind` that is in the text of a file. Raises StoreError if the text is not a valid
    record; `cure` is the remedy in the message."""
    try:
        record = kind.model_validate_json(text)
    except ValidationError as error:
        refuse_newer(path)
        raise damaged(path, error, cure) from error
    _check_format(path, getattr(record, "format", FORMAT))
    return record


def refuse_newer(path: Path) -> None:
    """Raises StoreError if this file contains a record of a newer format. A file that cannot be read does not count as
    newer."""
    with contextlib.suppress(OSError, ValueError):
        content = from_json(read_bytes(path))
        _check_format(path, content.get("format") if isinstance(content, dict) else None)


def _check_format(path: Path, version: object) -> None:
    if isinstance(version, int) and version > FORMAT:
        raise StoreError(f"{path} was written by a newer pgtrial (format {version}); upgrade pgtrial")


def check_readable(study: Path) -> None:
    """Raises StoreError if this account has no right to read a study's directory, or a directory in it."""
    check_listed(study)
    for folder in study.iterdir():
        if folder.is_dir():
            check_listed(folder)


def check_listed(folder: Path) -> None:
    """Raises StoreError if this account has no right to list a directory. Without this check, the directory would look
    empty."""
    try:
        os.scandir(folder).close()
        os.stat(os.path.join(folder, "."))  # a Path would remove the "."
    except PermissionError as error:
        raise _forbidden(folder) from error


def _forbidden(path: Path) -> StoreError:
    return StoreError(
        f"{path} cannot be read by this account; run pgtrial as its owner, or give this account the right to read it"
    )


def damaged(path: Path, error: Exception, cure: str) -> StoreError:
    """Returns the error for a file that cannot be read or has invalid content. `cure` is the remedy for the user, which
    ends the message."""
    if isinstance(error, PermissionError):
        return _forbidden(path)
    return StoreError(f"{path} is damaged or missing ({first_line(error)}); {cure}")


@contextlib.contextmanager
def intact(path: Path, cure: str) -> Iterator[None]:
    """A context that turns errors about reading and parsing a file into a StoreError, whose message names `path` and
    ends with the remedy `cure`."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise damaged(path, error, cure) from error


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message. If the error is about an invalid record, the line begins with the
    path of keys to the invalid value."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        return f"{where}: {message}" if where else message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def texts_of(folder: Traversable, endings: tuple[str, ...], kind: str, name: str, source: str) -> dict[str, str]:
    """Returns the texts of the files in the folder of a pack or suite that have these endings, by file name. `kind` is
    the word `pack` or `suite`.

    Raises StudyError, whose message begins with `source`, if a file cannot be read.
    """
    texts = {}
    try:
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.is_file() and file.name.endswith(endings) and not file.name.startswith("."):
                # the bytes are decoded here, since reading the file as text would change line ends
                texts[file.name] = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(
            f"{source}: the file {file.name} of the {kind} {name} is not a text in UTF-8; save it in UTF-8"
        ) from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read the {kind} {folder}: {error.strerror or 'unreadable'}") from None
    return texts


def hidden(path: Path) -> Path:
    """Returns the hidden name under which a file or directory is written until it is complete."""
    return path.with_name(f".{path.name}.tmp")


def write_atomically(path: Path, data: str | bytes, option: str = "--results") -> None:
    """Writes `data` to `path` so that after a crash the file has either the old or the new content. Raises StoreError
    if the file cannot be written; `option` is the option with which the user can name another path."""
    with writing(path, option):
        replace_file(path, data.encode() if isinstance(data, str) else data)


def write_in_folder(path: Path, data: str | bytes) -> None:
    """Writes a file atomically, and creates its folder if that is missing. Raises StoreError if it cannot be
    written."""
    make_folder(path.parent)
    write_atomically(path, data)


def make_folder(path: Path, option: str = "--results", mode: int = 0o777) -> None:
    """Creates a directory, with all missing directories above it. Raises StoreError if it cannot be created; `option`
    is the option with which the user can name another path."""
    with writing(path, option):
        make_directory(path, mode)


def check_safe_to_write(path: Path, option: str = "--results") -> None:
    """Raises StoreError if pgtrial runs as root and is about to write into a directory in which another account could
    replace the files. `option` is the option with which the user can name another directory."""
    with writing(path, option):
        check_exchangeable(path)


def sync_tree(directory: Path) -> None:
    """Flushes all files in a directory, and the directory itself, to the disk."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


def take_name(written: Path, path: Path) -> None:
    """Flushes a file that another program has written to the disk, and then renames it from `written` to `path`."""
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
    """Returns the error for a file or directory that cannot be written. `option` is the option with which the user can
    name another one."""
    if isinstance(error, ExchangeableError):
        return StoreError(
            f"pgtrial runs as root and does not write {path}: {error.strerror}; {error.weakness.cure}, or use {option} "
            "to choose a directory that, like all directories above it, only root can write"
        )
    return StoreError(
        f"cannot write {path}: {error.strerror or error}; use {option} to choose a directory that you can write, or "
        "free some disk space"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """A context that turns an OSError into a StoreError, whose message says that `path` cannot be read."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def values_of(path: Path) -> Iterator[None]:
    """A context that turns an error in a computation with the stored values of a study into a StoreError, whose message
    says that `path` has values that pgtrial never writes.

    Records check the types of the values that they name. Facts are not checked in this way, so a forged study may have
    any value in them.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".removesuffix(": ")
        raise StoreError(
            f"{path} has values that pgtrial never writes ({what}); copy or download it again, or use --debug to see "
            "where the values are"
        ) from error


@contextlib.contextmanager
def writing(path: Path, option: str = "--results") -> Iterator[None]:
    """A context that turns an OSError into a StoreError, whose message says that `path` cannot be written. `option` is
    the option with which the user can name another path."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, option) from error


@contextlib.contextmanager
def new_file(path: Path, option: str = "-o", *, replace: bool = False) -> Iterator[NewFile]:
    """Yields a file to write to, which gets the name `path` at the end of the context. Raises StoreError if a different
    file has this name already, or if the file cannot be written.

    An existing file with the same content is no error, and with `replace` any existing file is replaced. If an error
    occurs, no file is left.
    """
    try:
        with new_beside(path) as new:
            yield new
            new.flush()
            if not replace and path.exists() and not _is_same(new, path):
                raise StoreError(f"{path} exists with different content; remove it, or name another file with {option}")
            new.take_name(path.name)
    except ExchangeableError as error:
        raise cannot_write(path, error, option) from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; name another file with {option}") from error


def _is_same(new: NewFile, path: Path) -> bool:
    """True if the file at `path` has the same content as the new file."""
    new.file.seek(0)
    with open_file(path) as there:
        while piece := new.file.read(_PIECE):
            if there.read(len(piece)) != piece:
                return False
        return not there.read(1)


_PIECE = 2**20
