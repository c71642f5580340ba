"""Finds the numbers in the output of the user's programs, by a regular expression or by a path in JSON.

It is an error if a number is missing, is found twice or has another unit, so that no trial gets a number that the user
did not mean.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pgtrial.model.errors import TrialError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.own_metrics import Printed
from pgtrial.model.units import plural, shortened

_SHOWN = 60
"""The length to which quoted texts are cut, in characters."""

_MOST_NAMED = 3
"""A message lists at most this many of the numbers that were found."""

_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?")
_UNIT = re.compile(r"\s?([A-Za-zµμ]+|%)")

_SPELLINGS = {
    **{unit: unit for unit in ("ns", "us", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB")},
    **{unit: unit for unit in ("KiB", "MiB", "GiB", "TiB", "%")},
    **dict.fromkeys(("µs", "μs", "usec"), "us"),
    **dict.fromkeys(("msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("byte", "bytes"), "B"),
    "KB": "kB",
}
"""Units of time and size, and the percent sign, by each of their spellings. Any other text behind a number is a word of
the program's output and says nothing about the unit."""


def number_in(text: str, printed: Printed, what: str, who: str) -> float:
    """Returns the number in a text that the description `printed` selects.

    In messages, `what` is the name of the number, and `who` is the program or file that the text is from, such as `the
    job`. Raises TrialError if there is not exactly one number, or if it is negative, infinite or has another unit.
    """
    if printed.json_path is not None:
        return _in_json(text, printed.json_path, what, who)
    if printed.pattern is None:
        if not text.strip():
            raise TrialError(f"{who} printed nothing, but it must print one number, {what}")
        return _read(text.strip(), what, who)
    pattern = re.compile(printed.pattern, re.MULTILINE)
    found = list(pattern.finditer(text))
    how = f" that '{shortened(printed.pattern, _SHOWN)}' matches"
    if not found:
        raise TrialError(f"{who} printed no number for {what}{how}; {_last_line(text)}")
    texts = [match[1] if pattern.groups and match[1] is not None else match[0] for match in found]
    if len(found) > 1:
        listed = ", ".join(shortened(one, _SHOWN) for one in texts[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise TrialError(
            f"{who} printed {len(found)} numbers for {what}{how} ({listed}{more}), but the pattern must match only one"
        )
    number = _read(texts[0], what, who)
    _check_unit(text, found[0], printed.unit, what, who)
    return number


def _read(text: str, what: str, who: str) -> float:
    if not any(sign.isdigit() for sign in text) or not _NUMBER.fullmatch(text.strip()):
        raise TrialError(f"{who} printed {quoted(shortened(text, _SHOWN))} for {what}, which is not a number")
    return checked(float(text.replace(",", "")), what, who)


def checked(number: float, what: str, who: str) -> float:
    """Returns the number unchanged. Raises TrialError if it is infinite, not a number or negative, since arms could not
    be compared by it."""
    if not math.isfinite(number):
        raise TrialError(f"{who} printed {number} for {what}; arms cannot be compared by this value")
    if number < 0:
        raise TrialError(
            f"{who} printed {number:.10g} for {what}; arms are compared by the ratio of their numbers, which must not "
            "be negative"
        )
    return number


def _check_unit(text: str, found: re.Match[str], unit: str, what: str, who: str) -> None:
    """Raises TrialError if the text behind the number is another unit of time, size or share than the expected one, or
    if it is a unit although neither the study file nor the user's pattern for the number names one."""
    follows = _UNIT.match(text, found.end(found.re.groups))
    printed = _SPELLINGS.get(follows[1]) if follows is not None else None
    if follows is None or printed is None or (not unit and follows.end() <= found.end()):
        return
    if not unit:
        raise TrialError(
            f"{who} printed {what} in {follows[1]}; let the pattern end with {follows[1]}, or give {what} the unit "
            f"{follows[1]}, so that a trial in which it prints another unit is not taken for a difference"
        )
    if _SPELLINGS.get(unit, unit) != printed:
        raise TrialError(
            f"{who} printed {what} in {follows[1]}, but the study says that its unit is {unit}; make the program "
            f"always print {unit}"
        )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"its last line is {quoted(shortened(lines[-1], _SHOWN))}" if lines else "it printed nothing"


def _in_json(text: str, path: str, what: str, who: str) -> float:
    document = _document(text)
    if document is None:
        raise TrialError(
            f"{who} printed no JSON, although {what} is to be read from JSON at {path}; {_last_line(text)}"
        )
    found = list(_at(document, path.split(".")))
    if not found:
        raise TrialError(f"{who} printed JSON without {path}, from which {what} is read; {_keys_of(document)}")
    if len(found) > 1:
        raise TrialError(
            f"{who} printed JSON in which {path} leads to {len(found)} values, but {what} must be a single number"
        )
    match found[0]:
        case bool() | None:
            shown = json.dumps(found[0])
        case int() | float() as number:
            return checked(float(number), what, who)
        case list() as items:
            shown = f"a list of {plural(len(items), 'item')}"
        case dict():
            shown = "a table"
        case other:
            shown = f"the text {quoted(shortened(str(other), _SHOWN))}"
    raise TrialError(f"{who} printed JSON in which {path} is {shown}, but {what} must be a single number")


def _document(text: str) -> Any:
    """Returns the parsed JSON of a whole text, or else of the last of its lines that is JSON; None if there is no
    JSON."""
    for part in (text, *reversed(text.splitlines())):
        if part.strip().startswith(("{", "[")):
            try:
                return json.loads(part)
            except ValueError:
                continue
    return None


def _at(value: Any, parts: list[str]) -> Iterator[Any]:
    """Yields the values at a path in parsed JSON. A key may itself contain dots, such as `p(99.9)`, so several keys can
    match."""
    if not parts:
        yield value
    elif isinstance(value, list) and parts[0].isdecimal() and int(parts[0]) < len(value):
        yield from _at(value[int(parts[0])], parts[1:])
    elif isinstance(value, dict):
        for length in range(len(parts), 0, -1):
            key = ".".join(parts[:length])
            if key in value:
                yield from _at(value[key], parts[length:])


def _keys_of(document: Any) -> str:
    if not isinstance(document, dict):
        return f"it is a list of {plural(len(document), 'item')}"
    return f"its keys are {shortened(', '.join(map(str, document)), _SHOWN)}"
