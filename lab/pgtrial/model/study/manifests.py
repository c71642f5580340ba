"""Parses TOML files of users. If a file has mistakes, a single message reports all of them, with the line and the key
of each, and with the nearest known key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.toml_lines import cure_of, declared_again, line_of, unclosed
from pgtrial.model.units import nearest, plural

_R = TypeVar("_R", bound=Record)

Location = tuple[int | str, ...]


def parsed(text: str, source: str) -> dict[str, Any]:
    """Returns the content of a TOML text. Raises StudyError, whose message begins with `source`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{source} has more nested brackets than can be read; remove some of them") from None
    except tomllib.TOMLDecodeError as error:
        if (known := declared_again(text, str(error)) or unclosed(text, str(error))) is not None:
            raise StudyError(f"{source} is not valid TOML: {known}") from None
        cure = cure_of(text, str(error))
        raise StudyError(f"{source} is not valid TOML: {error}{f'; {cure}' if cure is not None else ''}") from None


def manifest(text: str, kind: type[_R], source: str, tables: Mapping[str, type[Record]]) -> _R:
    """Returns the content of a TOML text as a record of the type `kind`. `tables` has the types of its tables, by name,
    so that messages can propose their known keys. Raises StudyError, whose message begins with `source`."""
    content = parsed(text, source)

    def sentence(location: Location, message: str | None) -> str:
        *path, key = [str(part) for part in location] or [""]
        if message is None:
            known = tables.get(path[0], kind) if path else kind
            where = f" in [{'.'.join(path)}]" if path else ""
            return f"unknown key {quoted(key)}{where}; {nearest(key, known.model_fields, 'known are')}"
        where = ".".join([*path, key])
        return f"{where}{'' if message.startswith(MUST) else ':'} {message}" if where else message

    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise StudyError(all_errors(error, sentence, source, text, content)) from None


def all_errors(
    error: ValidationError,
    sentence: Callable[[Location, str | None], str],
    source: str,
    text: str = "",
    content: Mapping[str, Any] | None = None,
) -> str:
    """Returns one message for all errors. It begins with `source` and names the line of each error in `text`.

    The function `sentence` makes a sentence from the location and the message of an error; the message is None for an
    unknown key. `content` is the content that was checked: if the user wrote a single value in place of a list, an
    error in it names no item of the list.
    """
    return in_one(
        source,
        [
            (line_of(text, location), sentence(_without_item(location, content), message))
            for location, message in _errors(error)
        ],
    )


def in_one(source: str, mistakes: Sequence[tuple[int | None, str]]) -> str:
    """Returns one message of several sentences, in the order of their lines. If there are several, they are numbered.

    If several keys of one table are unknown, only the first sentence about them lists the known keys.
    """
    listed: set[str] = set()
    sentences = []
    for line, sentence in sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake[0] or 0):
        head, separator, known = sentence.partition("; known ")
        text = head if separator and known in listed else sentence
        listed.add(known)
        sentences.append(f"line {line}: {text}" if line is not None else text)
    beginning = f"{source}: " if source else ""
    if len(sentences) == 1:
        return beginning + sentences[0]
    numbered = " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences, start=1))
    return f"{beginning}{len(sentences)} mistakes: {numbered}"


MUST = "must be "
"""The beginning of a message of which the key is the subject, as in `rate must be a number`."""

_UNKNOWN = "extra_forbidden"
_KINDS = {
    "int": "a whole number, such as 8",
    "float": "a number, such as 2.5",
    "bool": "true or false",
    "string": "a text (a string in quotes)",
    "dict": "a table of keys and values",
    "model": "a table of keys and values",
    "list": "a list",
}
"""For messages: a description of the values that are valid, by the first word of pydantic's name for the error."""
_LENGTH = re.compile(r"\w+ should have (?P<must>at (least|most) \d+ items?) after validation, not (?P<has>\d+)")
"""Matches pydantic's message about a list with too few or too many items."""
_WRONG_TYPES = ("_type", "_parsing", "_from_float")


def _errors(error: ValidationError) -> Iterator[tuple[Location, str | None]]:
    """Yields the location of each error and its message. None in place of the message means that the key is unknown.

    An unknown key is often a misspelt one; the error that the right key is missing is then left out. Values of the user
    are not quoted, because they may hold secrets.
    """
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    misspelt = {item["loc"][:-1] for item in errors if item["type"] == _UNKNOWN}
    for item in errors:
        if item["type"] == _UNKNOWN:
            yield item["loc"], None
        elif item["type"] != "missing" or item["loc"][:-1] not in misspelt:
            yield item["loc"], _message(item["type"], item["msg"])


def _message(kind: str, message: str) -> str:
    if kind == "missing":
        return f"{MUST}set"
    if kind.endswith(_WRONG_TYPES) and (text := _KINDS.get(kind.partition("_")[0])) is not None:
        return f"{MUST}{text}"
    if (length := _LENGTH.fullmatch(message)) is not None:
        return f"it has {plural(int(length['has']), 'item')} and must have {length['must']}"
    text = message.removeprefix("Value error, ").replace("Input should be ", MUST, 1)
    return f"{text[:1].lower()}{text[1:]}"


def _without_item(location: Location, content: Mapping[str, Any] | None) -> Location:
    """Returns the location without the number of a list item, if the user wrote a single value in place of a list."""
    value: Any = content
    for index, part in enumerate(location):
        if isinstance(part, int) and isinstance(value, str | int | float):
            return location[:index]
        if isinstance(part, str):
            value = value.get(part) if isinstance(value, Mapping) else None
        else:
            value = value[part] if isinstance(value, list) and part < len(value) else None
    return location
