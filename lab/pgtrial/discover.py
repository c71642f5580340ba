"""Rooms whose parts register themselves: a new part is a new file, and no edit elsewhere."""

from __future__ import annotations

import importlib
import pkgutil


def load_modules(package: str) -> None:
    """Import every module of a package, so that what registers itself on import is registered."""
    paths = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(paths):
        importlib.import_module(f"{package}.{module.name}")
