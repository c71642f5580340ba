"""Writes keys and values as TOML has them."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Returns a key as TOML writes it, in quotes where it needs them."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """Returns a text, number, truth value, list or table as TOML writes it on one line."""
    match value:
        case float():
            return repr(value)
        case list():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            inner = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
            return f"{{ {inner} }}" if inner else "{}"
    # JSON's scalars are TOML's, save for DEL, which TOML forbids bare
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
