"""Values of PostgreSQL's settings as text: splits lists as the server does, and compares the meaning of two texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_IDENTIFIERS = frozenset(("search_path", "temp_tablespaces"))
LIBRARIES = frozenset(("session_preload_libraries", "local_preload_libraries", "shared_preload_libraries"))
_DIRECTORIES = "unix_socket_directories"
_DIRECTORIES_SINCE = 140000
"""The first version in which ALTER SYSTEM takes a list for unix_socket_directories; up to PostgreSQL 13 it is a single
value."""

_SPACE = " \t\n\r\f\v"

_UNITS = {
    "B": ("memory", 1.0),
    "kB": ("memory", 2.0**10),
    "MB": ("memory", 2.0**20),
    "GB": ("memory", 2.0**30),
    "TB": ("memory", 2.0**40),
    "us": ("time", 1.0),
    "ms": ("time", 1e3),
    "s": ("time", 1e6),
    "min": ("time", 6e7),
    "h": ("time", 3.6e9),
    "d": ("time", 8.64e10),
}
"""The kind of each unit, and its size in the smallest unit of its kind (guc.c)."""

_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\.))\s*([A-Za-z]*)\s*")
_HIDDEN_CHOICES = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", "debug"))
"""Words that some enumerations accept and pg_settings does not show."""

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def is_list(name: str, server_version: int) -> bool:
    """True if ALTER SYSTEM quotes each element of the setting by itself (GUC_LIST_QUOTE).

    Other lists, such as DateStyle and synchronous_standby_names, are stored as they were given. Extensions cannot
    define settings of this kind.
    """
    lowered = name.lower()
    quoted = _IDENTIFIERS | LIBRARIES
    return lowered in quoted or (lowered == _DIRECTORIES and server_version >= _DIRECTORIES_SINCE)


def elements(name: str, text: str) -> list[str]:
    """Returns the elements of a list setting, as SplitIdentifierString and SplitDirectoriesString read them.

    Raises ValueError for a text that is no such list.
    """
    fold = _fold if name.lower() in _IDENTIFIERS else None
    listed: list[str] = []
    rest = text.strip(_SPACE)
    while rest:
        element, rest = _quoted(rest) if rest.startswith('"') else _plain(rest, fold)
        listed.append(element)
        rest = rest.lstrip(_SPACE)
        if rest and not rest.startswith(","):
            raise ValueError(text)
        if rest.startswith(","):
            rest = rest[1:].lstrip(_SPACE)
            if not rest:
                raise ValueError(text)
    return listed


def _quoted(rest: str) -> tuple[str, str]:
    match = re.match(r'"((?:[^"]|"")*)"', rest)
    if match is None:
        raise ValueError(rest)
    return match[1].replace('""', '"'), rest[match.end() :]


def _plain(rest: str, fold: Callable[[str], str] | None) -> tuple[str, str]:
    """Returns an element without quotes, and the rest. Identifiers end at a space and are folded; names of files may
    have spaces inside."""
    match = re.match(r"[^,\s]+" if fold else r"[^,]+", rest)
    if match is None:
        raise ValueError(rest)
    element = match[0].rstrip(_SPACE)
    return fold(element) if fold else element, rest[match.end() :]


def _fold(identifier: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in identifier)


def same_value(name: str, kind: str, unit: str | None, shown: str, wanted: str) -> bool:
    """True if `wanted` has the value that pg_settings shows as `setting`; `kind` and `unit` are its vartype and unit.

    False may also mean that the server writes a text in its own way, as for DateStyle.
    """
    match kind:
        case "bool":
            return _truth(wanted) is not None and _truth(wanted) == _truth(shown)
        case "integer" | "real":
            return _same_number(kind, unit, shown, wanted)
        case "enum":
            return shown.lower() == wanted.strip().lower()
    if name.lower() in _IDENTIFIERS | LIBRARIES | {_DIRECTORIES}:
        try:
            return [element for element in elements(name, shown) if element] == [
                element for element in elements(name, wanted) if element
            ]
        except ValueError:
            return False
    return shown.lower() == wanted.lower()


@dataclass(frozen=True)
class Domain:
    """The values that a setting can have, as pg_settings shows them: vartype, unit, min_val, max_val and enumvals."""

    kind: str
    unit: str | None
    lowest: str | None = None
    highest: str | None = None
    choices: Sequence[str] | None = None

    def may_have(self, wanted: str) -> bool:
        """True if the server may take the text. Strings, and words of an enumeration that pg_settings does not show,
        are left to the server's judgement."""
        match self.kind:
            case "bool":
                return _truth(wanted) is not None
            case "integer" | "real":
                return self._has_number(wanted)
            case "enum":
                word = wanted.strip().lower()
                return word in map(str.lower, self.choices or ()) or word in _HIDDEN_CHOICES
        return True

    def _has_number(self, wanted: str) -> bool:
        number = _in_unit(wanted, self.unit)
        if number is None or self.lowest is None or self.highest is None:
            return False
        if self.kind == "integer" and math.isfinite(number):
            number = round(number)
        return float(self.lowest) <= number <= float(self.highest)


def _truth(text: str) -> bool | None:
    """Returns the value that parse_bool reads, from any unambiguous beginning of a word; None if it reads none."""
    lowered = text.strip().lower()
    for words, truth in ((_TRUE, True), (_FALSE, False)):
        if lowered and any(word.startswith(lowered) for word in words) and lowered != "o":
            return truth
    return None


def _same_number(kind: str, unit: str | None, shown: str, wanted: str) -> bool:
    if _NUMBER.fullmatch(wanted) is None:
        return shown.strip().lower() == wanted.strip().lower()  # some integers have words as values
    number = _in_unit(wanted, unit)
    if number is None:
        return False
    present = float(shown)
    if kind == "integer":
        return round(number) == round(present)
    return abs(number - present) <= 1e-6 * max(abs(number), abs(present))


def _in_unit(text: str, unit: str | None) -> float | None:
    """Returns a number, with a unit or without, in the setting's own unit; None if the text is no such number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number = _number(match[1])
    return _converted(number, match[2], unit) if match[2] else number


def _number(text: str) -> float:
    unsigned = text.lstrip("+-")
    if unsigned.lower().startswith("0x"):
        return float(int(text, 16))
    if re.fullmatch("0[0-7]+", unsigned):
        return float(int(text, 8))
    return float(text)


def _converted(number: float, unit: str, base: str | None) -> float | None:
    """Returns the number in the setting's own unit, such as `8kB`, rounded to whole smaller units as guc.c does; None
    if it cannot be converted."""
    match = re.fullmatch(r"([0-9]*)([A-Za-z]+)", base or "")
    if match is None or unit not in _UNITS or match[2] not in _UNITS:
        return None
    (kind, size), (base_kind, base_size) = _UNITS[unit], _UNITS[match[2]]
    if kind != base_kind:
        return None
    smaller = max(
        (unit_size for unit_kind, unit_size in _UNITS.values() if unit_kind == kind and unit_size < size), default=size
    )
    whole = round(number * size / smaller) * smaller
    return whole / (base_size * int(match[1] or 1))
