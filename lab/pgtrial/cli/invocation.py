"""How this process was called. The command line sets it before a command begins, once in each process."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


class Invocation:
    """The words after `pgtrial`, without --debug, and whether --debug was among them."""

    words: Sequence[str] = ()
    tracebacks = False


def same_command(results: Path) -> str:
    """Returns the command as it was typed, with the directory of its study."""
    named = any(word == "--results" or word.startswith("--results=") for word in Invocation.words)
    return shlex.join(["pgtrial", *Invocation.words, *([] if named else ["--results", str(results)])])
