"""Outputs of other systems' tools; lines of # at a file's head say where its form comes from."""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path


def recorded(name: str) -> str:
    """Returns the recorded output of this name, without the comment lines at its top."""
    lines = (Path(__file__).parent / "recorded" / name).read_text().splitlines()
    return "\n".join(dropwhile(lambda line: line.startswith("#"), lines)) + "\n"
