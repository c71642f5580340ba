"""Makes texts safe to show. Control characters become visible signs, so that no terminal or pager interprets them, and
passwords and tokens are cut."""

from __future__ import annotations

from itertools import chain

from pgtrial.model.marks import in_toml
from pgtrial.model.tokens import without_tokens

_REPLACEMENT = "\ufffd"

_UNPRINTABLE = (
    range(0x80, 0xA0),  # C1 controls: 0x9b begins a terminal command, like ESC [
    (0x061C, 0x200E, 0x200F),  # marks that change the direction of writing
    range(0x2028, 0x202F),  # line and paragraph separators; embeddings and overrides of the direction of writing
    range(0x2066, 0x206A),  # isolates of the direction of writing
    (0xFEFF,),  # byte order mark
    range(0xD800, 0xE000),  # lone surrogates: bytes of a file name that are not UTF-8
    range(0xE0000, 0xE0080),  # invisible tags
)

_SIGNS = (
    dict.fromkeys(chain(*_UNPRINTABLE), _REPLACEMENT)
    | {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: "\u2421"}
)
"""The replacement for each code point that must not be shown as it is. Each replacement is one column wide: the sign of
a control character (Unicode, Control Pictures), or U+FFFD."""

_ESCAPES = {code: f"\\u{code:04x}" for code in _SIGNS if 0x20 <= code < 0x10000}
_ESCAPES |= {code: f"\\udb40\\u{0xDC00 + (code & 0x3FF):04x}" for code in _SIGNS if code >= 0x10000}
"""The JSON escape for each code point of `_SIGNS` from 0x20 on. JSON allows these characters only within strings; every
JSON encoder escapes the characters below 0x20 already."""


def printable(text: str) -> str:
    """Returns the text with a visible sign for each character that a terminal interprets or that reorders text.
    Passwords and tokens are cut, and each mark, which is a placeholder for a key of the study file, is replaced by the
    key. Tabs and line ends stay."""
    return in_toml(without_tokens(text)).translate(_SIGNS)


def printable_json(text: str) -> str:
    """Returns a JSON text without passwords and tokens, in which every character that a terminal interprets or that
    reorders text is written as a JSON escape. The values must not contain marks, the placeholders for keys of the study
    file: the caller replaces them before it makes the JSON text."""
    return without_tokens(text).translate(_ESCAPES)
