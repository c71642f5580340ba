"""Reads and writes quantities as people do: durations ("90s"), shares ("1%"), sizes ("8GB"), counts, and policies
("wait 60s"). Also finds the known name that is nearest to a mistyped one, and makes names that any file system accepts.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator
from pydantic_core import PydanticKnownError

from pgtrial.model.quoting import quoted

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_DURATION_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0}
_DURATION_UNITS |= {"second": 1.0, "seconds": 1.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0}
_DURATION_UNITS |= {"h": 3600.0, "hour": 3600.0, "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0}


def as_list(value: Any) -> Any:
    """Returns a single value as a list with one item; None and lists are returned unchanged."""
    return value if value is None or isinstance(value, list) else [value]


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Returns the values of each key. Keys, and the values of each key, are in the order of the pairs."""
    values: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def as_arguments(options: Mapping[str, object]) -> list[str]:
    """Returns options as arguments of a command line, `--name=value`. Options whose value is None are left out."""
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def variables(values: dict[str, str]) -> dict[str, str]:
    """Returns the values unchanged. Raises ValueError if a key is not a valid name for a variable."""
    for name in values:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{quoted(name)} is not the name of a variable; use letters, digits and _")
    return values


def _as_setting(value: Any) -> Any:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


Setting = Annotated[str, BeforeValidator(_as_setting)]
"""A value for postgresql.conf, or for an option of a program. Booleans and numbers of TOML become the text that
PostgreSQL would print for them."""


def parse_duration(value: object) -> float:
    """Returns a duration in seconds from a number of seconds or a text such as `500ms`, `90s` or `1h 30min`. Raises
    ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = value.strip().lower() if isinstance(value, str) else ""
    parts = _QUANTITY.findall(text)
    if not parts or _QUANTITY.sub("", text).strip() or any(unit not in _DURATION_UNITS for _, unit in parts):
        raise ValueError(f"{quoted(value)} is not a duration; write for example 10s, 5min or 1h")
    return sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)


def parse_share(value: object) -> float:
    """Returns a share as a fraction of 1, from a number such as 0.01 or a text with a percent sign such as `1%`. Raises
    ValueError."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"{quoted(value)} is not a share; write for example 1% or 0.01") from None
    if text.endswith("%"):
        return number * 0.01
    if number > 1:
        form = f"{number:g}%" if isinstance(value, str) else f"{number:g}% in quotes"
        raise ValueError(f"{quoted(value)} is more than the whole, which is 1; write {form} for {number:g} per cent")
    return number


_SIZE_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_SIZE_UNITS |= {"k": 1024, "kib": 1024, "m": 1024**2, "mib": 1024**2, "g": 1024**3, "gib": 1024**3, "t": 1024**4}


def parse_size(value: object) -> int:
    """Returns a size in bytes, from a number or from a text such as `8GB` (powers of 1000), `512MiB` or `4G` (powers of
    1024). Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _QUANTITY.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError(f"{quoted(value)} is not a size; write for example 8GB or 512MiB")
    return int(float(match[1]) * _SIZE_UNITS[match[2]])


SETTING_UNITS = {
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
"""The units of PostgreSQL's settings: for each whether it measures memory or time, and how many bytes or microseconds
it has (guc.c)."""

_SETTING = re.compile(r"(\d+)([kMGT]?B)")


def setting_bytes(setting: str | None) -> float | None:
    """Returns the bytes of a size as PostgreSQL's SHOW prints it, such as `128MB` (powers of 1024); None for any other
    text."""
    match = _SETTING.fullmatch(setting or "")
    return float(match[1]) * SETTING_UNITS[match[2]][1] if match else None


def format_duration(seconds: float) -> str:
    """Returns a duration for people: `850ms`, `1.25s`, `12s`, `3min 20s`, `1h 50min`, and `37d 1h` from two days on.

    Seconds that are not whole have one decimal. Quarters of a second, such as the lengths of warm-ups that pgtrial
    chooses, have two decimals, so that they are exact.
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    if hours >= 48:
        return f"{hours // 24}d {hours % 24}h" if hours % 24 else f"{hours // 24}d"
    if hours:
        return f"{hours}h {minutes}min" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}min {rest}s" if rest else f"{minutes}min"
    if seconds == whole:
        return f"{seconds:.0f}s"
    return f"{seconds:.2f}s" if seconds % 0.5 == 0.25 else f"{seconds:.1f}s"


def format_size(size: int) -> str:
    """Returns a size in bytes for people: `48 MB`, `1.3 GB`, `1,250 GB`."""
    if size < 1e9:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:,.{0 if size >= 1e11 else 1}f} GB"


def percent(share: float, decimals: int | None = None, *, sign: bool = False) -> str:
    """Returns a share for people: `41%`, `4.1%`, `0.25%`; with `sign`, `+4.1%`. Without `decimals`, a share that is not
    zero is never rounded to 0%."""
    decimals = decimals_for([share]) if decimals is None else decimals
    return f"{share * 100:{'+' if sign else ''}.{decimals}f}%" if share else "0%"


TWICE = 1.0
"""The relative difference from which reports print a comparison as a ratio: few readers see at once that 4776% faster
means 49 times as fast."""


def three_digits(value: float) -> str:
    """Returns a number with three significant digits and without an exponent: `0.000123`, `1.5`, `12.3`, `1,230`."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    decimals = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def times(ratio: float) -> str:
    """Returns a ratio as a number for people, rounded: `1.25`, `2.5`, `49`, `1,250`."""
    return f"{ratio:.3g}" if ratio < 2 else f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def times_between(low: float, value: float, high: float) -> tuple[str, str]:
    """Returns the bounds of a ratio as texts, with as many decimals as are needed to distinguish them from the ratio:
    `48` and `50`, or `4.96` and `5.04`."""
    for decimals in range(4):
        first, middle, last = (f"{ratio:,.{decimals}f}" for ratio in (low, value, high))
        if first != middle != last:
            break
    return first, last


def change(difference: float, decimals: int | None = None) -> str:
    """Returns a relative difference with its sign, `+41%`. From a doubling on, returns the ratio instead, `49
    times`."""
    return percent(difference, decimals, sign=True) if difference < TWICE else f"{times(1 + difference)} times"


def as_written(share: float) -> str:
    """Returns a share that the user chose, such as the margin, with the digits that the user gave: `1%`, `0.5%`."""
    return f"{share * 100:g}%"


def decimals_for(shares: Iterable[float]) -> int:
    """Returns the number of decimals for percentages that are read together: the fewest that distinguish them from each
    other and from zero."""
    values = list(shares)
    width = max(values, default=0.0) - min(values, default=0.0) or max((abs(value) for value in values), default=0.0)
    decimals = 0 if width >= 0.1 else 1 if width >= 0.005 else 2
    while decimals < 3 and any(_misread(value, decimals) for value in values):
        decimals += 1
    return decimals


def _misread(share: float, decimals: int) -> bool:
    rounded = round(share * 100, decimals)
    return (rounded == 0 and share != 0) or (rounded == -100 and share > -1)


def plural(number: int, noun: str) -> str:
    """Returns a number with its noun in singular or plural: `1 block`, `8 blocks`, `8 queries`, `8 studies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith(("ry", "dy")) else f"{number:,} {noun}s"


def and_more(named: Sequence[str], of: int) -> list[str]:
    """Returns the texts that name the first things of a list and, if the list has `of` things and not all are named, a
    further text such as `3 more`."""
    return [*named, f"{of - len(named)} more"] if of > len(named) else list(named)


def _no_truth_value(wanted: Literal["int_type", "float_type"], value: Any) -> Any:
    """Returns a value of the study file unchanged. If it is true or false, which pydantic would take for 1 or 0, raises
    pydantic's error for a value that is not of the type `wanted`."""
    if isinstance(value, bool):
        raise PydanticKnownError(wanted)
    return value


Whole = Annotated[int, BeforeValidator(partial(_no_truth_value, "int_type"))]
"""A whole number in a study file; true and false are no numbers."""

Number = Annotated[float, BeforeValidator(partial(_no_truth_value, "float_type"))]
"""A number in a study file; true and false are no numbers."""

Seconds = Annotated[float, BeforeValidator(parse_duration)]
"""A duration in seconds, written as a number or as `10s`, `5min`, `1h`."""

Bytes = Annotated[int, BeforeValidator(parse_size)]
"""A size in bytes, written as a number or as `8GB`, `512MiB`."""

Share = Annotated[float, BeforeValidator(parse_share)]
"""A fraction of 1, written as a number or as `1%`."""

_LONGEST_S = 86_400.0


def policy(value: Any, others: Sequence[str], example: str) -> str:
    """Returns a policy, which says in the study file what happens after the loss of a server or a machine, in its
    normal form: one of the words in `others`, or `wait 60s` with the duration in seconds. Raises ValueError, whose
    message shows the `example`."""
    words = value.split(maxsplit=1) if isinstance(value, str) else []
    if len(words) == 1 and words[0] in others:
        return str(words[0])
    if len(words) != 2 or words[0] != "wait":
        written = ", ".join(f'"{word}"' for word in others)
        raise ValueError(f'{quoted(value)} is not a valid policy; write {written}, or for example "{example}"')
    patience = parse_duration(words[1])
    if not 1 <= patience <= _LONGEST_S:
        raise ValueError(f"{quoted(value)} is out of range; write a time to wait from 1s to 24h")
    return f"wait {patience:g}s"


def patience_s(chosen: str) -> float | None:
    """Returns how many seconds a policy such as `wait 60s` (what happens after the loss of a server or a machine)
    waits; None for a policy that does not wait."""
    return parse_duration(chosen.removeprefix("wait ")) if chosen.startswith("wait ") else None


ServerLoss = Annotated[str, BeforeValidator(partial(policy, others=["fail"], example="wait 60s"))]
"""The reaction to the loss of a trial's server. `fail`: the trial has failed. `wait` and a duration: the clients try to
connect again for up to this time."""


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """Returns a hint for a mistyped word: `did you mean 'quick'?`, or, if no known word is similar, the text
    `otherwise` and all known words."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {quoted(near[0])}?" if near else f"{otherwise} {', '.join(names)}"


def numbered(name: str, taken: Collection[str], form: str = " ({})") -> str:
    """Returns the name, with a number after it if the name is already in `taken`: `18.6 (2)`, or `q07-2` with the form
    `-{}`."""
    names = itertools.chain([name], (f"{name}{form.format(number)}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


STATEMENT_LENGTH = 60
"""The length to which a message shortens a statement, in characters."""


def shortened(text: str, most: int) -> str:
    """Returns the text, shortened to at most `most` characters. A shortened text ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_statement(text: str) -> str:
    """Returns an SQL statement on one line, shortened for a message."""
    return shortened(" ".join(text.split()), STATEMENT_LENGTH)


def slug(text: str) -> str:
    """Returns a text as a name that any file system accepts: letters, digits, `.`, `_`, `=` and `-`, at most 40
    characters."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-.")[:40] or "arm"
