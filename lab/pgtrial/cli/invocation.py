"""Stores how the user called pgtrial. The command line writes it here once, before the command begins."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


class Invocation:
    """The arguments of this process. `words` are the arguments after `pgtrial`, without --debug. `tracebacks` is true
    if --debug was among the arguments."""

    words: Sequence[str] = ()
    tracebacks = False


def same_command(results: Path) -> str:
    """Returns the command as the user typed it. If it does not name the directory of its study, `--results` with the
    directory is added."""
    named = any(word == "--results" or word.startswith("--results=") for word in Invocation.words)
    return shlex.join(["pgtrial", *Invocation.words, *([] if named else ["--results", str(results)])])
