"""Records of the state directory, which all studies of a machine share. They hold no passwords."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic_core import from_json

from pgtrial.model.errors import StoreError
from pgtrial.model.records.certificate import Certificates
from pgtrial.model.records.noise import NoiseRecord
from pgtrial.store.files import first_line, write_atomically

_R = TypeVar("_R", NoiseRecord, Certificates)


class _NewerRecord(StoreError):
    """The record was written by a newer pgtrial, and must not be replaced."""


def read_shared(path: Path, kind: type[_R], writer: str) -> _R:
    """The record; an empty one if there is none. Raises StoreError if it is damaged or newer.

    `writer` is who begins a damaged record anew.
    """
    try:
        data = from_json(path.read_bytes())
        version = data.get("format") if isinstance(data, dict) else None
        if isinstance(version, int) and version > kind().format:
            raise _NewerRecord(f"{path} is ignored: a newer pgtrial wrote it (format {version}); upgrade to use it")
        return kind.model_validate(data)
    except FileNotFoundError:
        return kind()
    except OSError as error:
        raise StoreError(f"{path} is ignored: it cannot be read ({error.strerror})") from error
    except ValueError as error:
        why = first_line(error)
        raise StoreError(f"{path} is ignored: it is damaged ({why}); {writer} begins it anew") from error


def change_shared(path: Path, kind: type[_R], change: Callable[[_R], _R]) -> None:
    """Replace the record by what `change` makes of it. A damaged record is begun anew.

    Raises StoreError if the record is newer or cannot be written. The caller keeps other labs from writing.
    """
    try:
        before = read_shared(path, kind, "this")
    except _NewerRecord:
        raise
    except StoreError:
        before = kind()
    try:
        write_atomically(path, change(before).model_dump_json(indent=1))
    except StoreError as error:
        raise StoreError(f"{path} cannot be written ({getattr(error.__cause__, 'strerror', error)})") from error
