"""Reads the files that lie beside the modules: scripts in other languages, and TOML tables of known facts."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def resource(name: str, package: str) -> str:
    """Returns the text of a file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def table(name: str, package: str) -> dict[str, Any]:
    """Returns the keys of a TOML file of a package."""
    return tomllib.loads(resource(name, package))


def filled(text: str, /, **values: object) -> str:
    """Returns the script with a value in place of each `@name@`. A value that may itself contain such names must come
    last."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
