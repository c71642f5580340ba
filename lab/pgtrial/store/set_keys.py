"""Adds single keys to a study file from the command line: `--set load.interleave=250ms`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import nearest
from pgtrial.store.study_file import Change

_EXAMPLE = "write for example --set load.interleave=250ms"


def with_keys(texts: Sequence[str]) -> Change:
    """Returns a function that adds keys to those of a study file. Each text is `PATH=VALUE`. PATH names the section and
    the key like a dotted key of TOML. VALUE is written as in TOML, or is a text without quotes.

    Raises StudyError for a text that is not of this form. The returned function raises StudyError if the study file
    already has the key.
    """
    given = [_read(text) for text in texts]
    paths = [path for path, _ in given]
    if (twice := next((path for path in paths if paths.count(path) > 1), None)) is not None:
        raise StudyError(f"--set has {'.'.join(twice)} more than once; leave one out")

    def change(data: dict[str, Any]) -> dict[str, Any]:
        for path, value in given:
            _check_arm(path, data.get("arms", {}))
            data = _with_key(data, path, value, path)
        return data

    return change


def toml_or_text(value: str) -> Any:
    """Returns the value of a text that is a TOML value, such as `8`, `true`, `[1, 2]` or `"a"`; any other text is
    returned unchanged."""
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return value
    return read["value"] if read.keys() == {"value"} else value


def _read(text: str) -> tuple[tuple[str, ...], Any]:
    """Returns the path of keys and the value in a text such as `load.interleave=250ms`."""
    for key, value in _divisions(text):
        if (path := _path_of(key)) is not None:
            if len(path) < 2:
                raise StudyError(
                    f"--set {key.strip()}: write the section and the key, with a period between them; {_EXAMPLE}"
                )
            return path, toml_or_text(value.strip())
    raise StudyError(f"--set {quoted(text)} is not of the form SECTION.KEY=VALUE; {_EXAMPLE}")


def _divisions(text: str) -> Iterator[tuple[str, str]]:
    """Yields the texts before and after each equals sign. A quoted name of an arm may contain equals signs, so the
    first equals sign is not always the one between path and value."""
    for index, sign in enumerate(text):
        if sign == "=":
            yield text[:index], text[index + 1 :]


def _path_of(key: str) -> tuple[str, ...] | None:
    """Returns the parts of a dotted key of TOML; None if the text is not such a key."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return None
    path = []
    while isinstance(table, dict) and len(table) == 1:
        ((part, table),) = table.items()
        path.append(part)
    return tuple(path) if table == 0 else None


def _check_arm(path: Sequence[str], arms: Mapping[str, Any]) -> None:
    if path[0] == "arms" and path[1] not in arms:
        raise StudyError(f"--set: no arm is called {quoted(path[1])}; {nearest(path[1], list(arms), 'the arms are')}")


def _with_key(table: Mapping[str, Any], path: Sequence[str], value: Any, whole: Sequence[str]) -> dict[str, Any]:
    """Returns a copy of the table with a new key at `path`, whose first keys may name tables in it. `whole` is the
    whole path, for messages. Raises StudyError if the table already has the key."""
    first, *rest = path
    within = table.get(first, {}) if rest else None
    if not isinstance(within, Mapping) if rest else first in table:
        given = marks.key(whole[0], ".".join(whole[1:]))
        raise StudyError(f"{given} is given by --set too; leave one of the two out")
    return {**table, first: value if within is None else _with_key(within, rest, value, whole)}
