"""TOML texts of users: parsed, and their first error as one sentence that names the key and the nearest known one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from pgtrial.model.errors import StudyError
from pgtrial.model.records import Record
from pgtrial.model.units import nearest

_R = TypeVar("_R", bound=Record)

Location = tuple[int | str, ...]


def parsed(text: str, source: str) -> dict[str, Any]:
    """The keys of a TOML text. Raises StudyError, which begins with `source`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{source} is not valid TOML: {error}") from None


def manifest(text: str, kind: type[_R], source: str, tables: Mapping[str, type[Record]]) -> _R:
    """The record of a TOML text; `tables` has its tables with a type of their own. Raises StudyError."""
    try:
        return kind.model_validate(parsed(text, source))
    except ValidationError as error:
        raise StudyError(f"{source}: {_sentence(error, kind, tables)}") from None


def first_error(error: ValidationError) -> tuple[Location, str | None]:
    """Where the first error is, and what it says; None: the key is unknown, which is more often the cause of others.

    Inputs are not quoted: they may hold secrets.
    """
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    first = min(errors, key=lambda item: item["type"] != _UNKNOWN)
    message = first["msg"].removeprefix("Value error, ")
    return first["loc"], None if first["type"] == _UNKNOWN else f"{message[:1].lower()}{message[1:]}"


_UNKNOWN = "extra_forbidden"


def _sentence(error: ValidationError, kind: type[Record], tables: Mapping[str, type[Record]]) -> str:
    location, message = first_error(error)
    *path, key = [str(part) for part in location] or [""]
    if message is None:
        known = tables.get(path[0], kind) if path else kind
        where = f" in [{'.'.join(path)}]" if path else ""
        return f"unknown key {key!r}{where}; {nearest(key, known.model_fields, 'known are')}"
    where = ".".join([*path, key])
    return f"{where}: {message}" if where else message
