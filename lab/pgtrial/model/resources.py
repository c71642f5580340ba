"""Reads files that are part of the package: scripts in other languages, and TOML tables of known facts."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def resource(name: str, package: str) -> str:
    """Returns the text of a file that belongs to a Python package, such as a script."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def table(name: str, package: str) -> dict[str, Any]:
    """Returns the content of a TOML file that belongs to a Python package."""
    return tomllib.loads(resource(name, package))


def filled(text: str, /, **values: object) -> str:
    """Returns the script with each placeholder `@name@` replaced by the value of that name. Values are inserted in the
    order of the arguments, so a value that may itself contain a placeholder must come last."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
