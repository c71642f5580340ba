"""Handles values of PostgreSQL's settings that are given as text: splits lists in the same way as the server, and tells
whether two texts have the same meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgtrial.model.units import SETTING_UNITS

_IDENTIFIERS = frozenset(("search_path", "temp_tablespaces"))
LIBRARIES = frozenset(("session_preload_libraries", "local_preload_libraries", "shared_preload_libraries"))
_DIRECTORIES = "unix_socket_directories"
_DIRECTORIES_SINCE = 140000
"""The first server version in which ALTER SYSTEM accepts a list for unix_socket_directories. Up to PostgreSQL 13 the
setting is a single value."""

_SPACE = " \t\n\r\f\v"

_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\.))\s*([A-Za-z]*)\s*")
_HIDDEN_CHOICES = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", "debug"))
"""Values that some enumeration settings accept although the column enumvals of pg_settings does not list them."""

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def is_list(name: str, server_version: int) -> bool:
    """True if the setting is a list whose elements ALTER SYSTEM quotes one by one (GUC_LIST_QUOTE).

    Other lists, such as DateStyle and synchronous_standby_names, are stored exactly as they are given. Settings of
    extensions cannot be lists of this kind.
    """
    lowered = name.lower()
    quoted = _IDENTIFIERS | LIBRARIES
    return lowered in quoted or (lowered == _DIRECTORIES and server_version >= _DIRECTORIES_SINCE)


def elements(name: str, text: str) -> list[str]:
    """Returns the elements of a list setting, split by the same rules as PostgreSQL's SplitIdentifierString and
    SplitDirectoriesString.

    Raises ValueError if the text is not a valid list.
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
    """Returns the first element, which has no quotes, and the rest of the text. With `fold` the element is an
    identifier, which ends at a space and is converted to lower case; otherwise it is a file name, which may contain
    spaces."""
    match = re.match(r"[^,\s]+" if fold else r"[^,]+", rest)
    if match is None:
        raise ValueError(rest)
    element = match[0].rstrip(_SPACE)
    return fold(element) if fold else element, rest[match.end() :]


def _fold(identifier: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in identifier)


def same_value(name: str, kind: str, unit: str | None, shown: str, wanted: str) -> bool:
    """True if the text `wanted` has the same value as the text `shown`, which is the column `setting` of pg_settings.
    `kind` and `unit` are the columns vartype and unit.

    The result can be false for equal values if the server writes values of this setting in a form of its own, as for
    DateStyle.
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
    """The values that a setting can have, from the columns vartype, unit, min_val, max_val and enumvals of
    pg_settings."""

    kind: str
    unit: str | None
    lowest: str | None = None
    highest: str | None = None
    choices: Sequence[str] | None = None

    def may_have(self, wanted: str) -> bool:
        """True if the server may accept the text as a value. It is always true for strings, and for words that an
        enumeration may accept although pg_settings does not list them; only the server can judge these."""
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
    """Returns the value of a boolean by the rules of PostgreSQL's parse_bool, which accepts any unambiguous beginning
    of a word; None if the text is not a boolean."""
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
    """Returns the value of a number with or without a unit, converted to the setting's own unit; None if the text is
    not such a number."""
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
    """Converts a number from a unit to the setting's own unit, such as `8kB`. Rounds it to a whole number of the next
    smaller unit first, as guc.c does. Returns None if the units do not fit each other."""
    match = re.fullmatch(r"([0-9]*)([A-Za-z]+)", base or "")
    if match is None or unit not in SETTING_UNITS or match[2] not in SETTING_UNITS:
        return None
    (kind, size), (base_kind, base_size) = SETTING_UNITS[unit], SETTING_UNITS[match[2]]
    if kind != base_kind:
        return None
    smaller = max(
        (other for other_kind, other in SETTING_UNITS.values() if other_kind == kind and other < size), default=size
    )
    whole = round(number * size / smaller) * smaller
    return whole / (base_size * int(match[1] or 1))
