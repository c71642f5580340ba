"""Files that lie beside the modules: scripts in other languages, and tables of what is known."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def resource(name: str, package: str) -> str:
    """The text of a file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def table(name: str, package: str) -> dict[str, Any]:
    """The keys of a TOML file of a package."""
    return tomllib.loads(resource(name, package))


def filled(text: str, /, **values: object) -> str:
    """The script with a value in place of each `@name@`; a value that may hold such names itself comes last."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
