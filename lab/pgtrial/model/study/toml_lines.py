"""Finds the line of a key in a TOML text, for messages, and explains what is wrong with a line that is not valid TOML.
Python's TOML parser does not keep the lines of keys, so this module reads the text a second time, and only after an
error."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

_TABLE = re.compile(r"\s*\[\[?(?P<key>[^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(
    r"""\s*(?P<key>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_LONG_TEXT = re.compile(r'"""|\'\'\'')


def line_of(text: str, location: Sequence[int | str]) -> int | None:
    """Returns the line of a key, counted from 1, or the line of the nearest table around the key; None if the text has
    neither.

    `location` has the names of the tables followed by the key. Numbers of list items in it are ignored.
    """
    path = tuple(part for part in location if isinstance(part, str))
    lines = _lines(text)
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Returns the lines of all tables and of all keys that are not in inline tables."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    in_long_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        begins_inside = in_long_text
        in_long_text ^= len(_LONG_TEXT.findall(line)) % 2 == 1
        if begins_inside:
            continue
        if match := _TABLE.fullmatch(line):
            table = _parts(match["key"])
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
        elif match := _KEY.match(line):
            found.setdefault((*table, *_parts(match["key"])), number)
    return found


def _parts(key: str) -> tuple[str, ...]:
    """Returns the names that a dotted key consists of; empty if the text is not a key."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    names = []
    while isinstance(value, Mapping):
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)


_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_OPEN_AT_LINE = re.compile(r"Illegal character '\\n'")
_WHOLE_TEXT = re.compile(r"""\"(?:[^\"\\]|\\.)*\"|'[^']*'""")
_CURLY = str.maketrans("“”„‘’‚«»", '"""' + "'''" + '""')
_BARE = r"""[^\s"'\[\]{},#=]+(?: [^\s"'\[\]{},#=]+)*"""
_TRUTHS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_ASSIGNED = r"(?P<key>[\w.-]+)\s*=\s*"
_REST = r"\s*(?:#.*)?"
_CURES = {
    r"(?P<key>[\w.-]+)\s*:\s*(?P<value>[^=]*?)" + _REST: "write = in place of the colon: {key} = {value}",
    rf"{_ASSIGNED}(?i:(?P<value>{'|'.join(_TRUTHS)})){_REST}": (
        'write {key} = {truth}, or {key} = "{value}" where a text is meant'
    ),
    rf"{_ASSIGNED}(?P<value>[\d.]+(?:\s*,\s*[\d.]+)+){_REST}": "a list is written in brackets: {key} = [{value}]",
    rf"{_ASSIGNED}(?P<value>{_BARE}){_REST}": 'a text is written in quotes: {key} = "{value}"',
    rf"{_ASSIGNED}(?P<value>[A-Za-z][^\"#]*?){_REST}": 'a text is written in quotes: {key} = "{value}"',
    rf".*[{{,]\s*{_ASSIGNED}(?!true\b|false\b)(?P<value>[\w.-]*[A-Za-z][\w.-]*)\s*[,}}].*": (
        'a text is written in quotes: {key} = "{value}"'
    ),
}
"""Patterns of lines that are not valid TOML, each with advice on how to write such a line. A message uses the advice of
the first pattern that matches."""


_ODD_SPACE = re.compile(r"[^\S \t\r\n\f\v]|[\u200b-\u200d\u2060\ufeff]")
"""Matches a space beyond ASCII, or a character without width, as texts from word processors and web pages have them."""
_OF_BACKSLASHES = ("Unescaped '\\'", "Invalid hex value", "Unicode scalar value")
_ASSIGNED_TEXT = re.compile(rf"{_ASSIGNED}\"(?P<value>[^\"']*)\"{_REST}")
_HEADER = re.compile(rf"\[(?P<table>[\w-]+\.)(?P<name>[^\[\]\"']+)\]{_REST}")


def declared_again(text: str, error: str) -> str | None:
    """Returns a message that a table is declared twice, with both lines; None if the parser's error is about something
    else."""
    match = _ERROR_LINE.search(error)
    lines = text.splitlines()
    if match is None or "Cannot declare" not in error or int(match[1]) > len(lines):
        return None
    number, header = int(match[1]), lines[int(match[1]) - 1].strip()
    first = next((earlier for earlier, line in enumerate(lines, start=1) if line.strip() == header), number)
    lines_of_both = f"lines {first} and {number}" if first < number else f"line {number}"
    return f"{header} occurs twice ({lines_of_both}); write each table once, with all of its keys"


def unclosed(text: str, error: str) -> str | None:
    """Returns a message that names the line with a text that has no closing quote; None if the parser's error is about
    something else.

    The parser calls the end of such a line an illegal character. For texts in single quotes it names the end of the
    file instead.
    """
    if _OPEN_AT_LINE.search(error) is None and "at end of document" not in error:
        return None
    match = _ERROR_LINE.search(error)
    lines = list(enumerate(text.splitlines(), start=1))
    for number, line in lines[int(match[1]) - 1 : int(match[1])] if match is not None else lines[::-1]:
        if (begun := _left_open(line)) is not None:
            closed = _closed(line.strip(), begun)
            return f"line {number}: the text {begun} has no closing quote; write {closed}"
    return None


def _left_open(line: str) -> str | None:
    """Returns the text at the end of a line that has no closing quote, with its opening quote; None if all texts are
    closed."""
    rest = _WHOLE_TEXT.sub("", line)
    if rest.lstrip().startswith("#") or _LONG_TEXT.search(line):
        return None
    begun = re.search(r"""^[^#]*?(?P<text>["'].*)$""", rest)
    return begun["text"].rstrip() if begun is not None else None


def _closed(line: str, begun: str) -> str:
    """Returns a line with the closing quote added. The quote goes before brackets, braces and commas at the end, which
    are hardly part of the text.

    If the line begins with the open quote, as in `"key = 5`, the quote is removed instead.
    """
    if line == begun:
        return line[1:]
    ends = re.search(r"[\s\]},]*$", begun)
    tail = ends[0] if ends is not None else ""
    return f"{line[: len(line) - len(tail)]}{begun[0]}{tail}"


def cure_of(text: str, error: str) -> str | None:
    """Returns advice on how to write the line at which the parser stopped; None if the mistake is not one of the usual
    ones.

    `error` is the parser's message, which names the line.
    """
    match = _ERROR_LINE.search(error)
    lines = text.splitlines()
    if match is None or int(match[1]) > len(lines):
        return None
    line = lines[int(match[1]) - 1].strip()
    return next(filter(None, (find(line, error) for find in _MISTAKES)), None)


def _odd_space(line: str, _: str) -> str | None:
    if (odd := _ODD_SPACE.search(_WHOLE_TEXT.sub("", line))) is None:
        return None
    name = unicodedata.name(odd[0], "invisible character").lower()
    return f"the line has a {name} (U+{ord(odd[0]):04X}), which is no space to TOML; write plain spaces"


def _curly_quotes(line: str, _: str) -> str | None:
    return f"write plain quotes: {straight}" if line != (straight := line.translate(_CURLY)) else None


def _backslash(line: str, error: str) -> str | None:
    if not any(words in error for words in _OF_BACKSLASHES):
        return None
    why = "in double quotes a backslash begins an escape"
    if (match := _ASSIGNED_TEXT.fullmatch(line)) is not None:
        return f"{why}; write single quotes: {match['key']} = '{match['value']}'"
    return f"{why}; write each backslash twice, or the text in single quotes"


def _header_beyond_ascii(line: str, _: str) -> str | None:
    header = _HEADER.fullmatch(line)
    if header is None or header["name"].isascii():
        return None
    return f'a name with letters beyond ASCII is written in quotes: [{header["table"]}"{header["name"]}"]'


def _key_twice(line: str, error: str) -> str | None:
    if "Duplicate inline" in error:
        return "write each key once"
    if "overwrite" in error:
        return f"{line.partition('=')[0].strip()} has a value already: write each key once"
    return None


def _other_form(line: str, _: str) -> str | None:
    for pattern, cure in _CURES.items():
        if found := re.fullmatch(pattern, line):
            return cure.format(**found.groupdict(), truth=_TRUTHS.get(found["value"].lower()))
    return None


_MISTAKES = (_odd_space, _curly_quotes, _backslash, _header_beyond_ascii, _key_twice, _other_form)
"""The functions that look for the usual mistakes, the most certain ones first. Each takes a line and the parser's
message, and returns its advice, or None."""
