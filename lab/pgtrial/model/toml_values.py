"""Writes keys and values in the syntax of TOML."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Returns a key as TOML writes it, in quotes if it needs them."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """Returns a text, number, boolean, list or table as TOML writes it on one line."""
    match value:
        case float():
            return repr(value)
        case list():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            inner = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
            return f"{{ {inner} }}" if inner else "{}"
    # JSON and TOML write scalars alike, except for the character DEL, which TOML requires to be escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
