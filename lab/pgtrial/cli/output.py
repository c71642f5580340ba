"""The one place through which commands print: what strangers wrote reaches a terminal as text, never as commands."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TextIO

from pgtrial.machines.interrupt import Interrupted
from pgtrial.model.printable import printable, printable_json


def line(text: object) -> None:
    """Prints text on the standard output, without a delay. Raises OSError."""
    _on_stdout(f"{printable(str(text))}\n")


def json_line(content: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> None:
    """Prints a value as JSON on the standard output, without a delay."""
    json_text(json.dumps(content, indent=indent, ensure_ascii=False, default=default))


def json_text(text: str) -> None:
    """Prints text that is JSON already on the standard output. Raises OSError."""
    _on_stdout(f"{printable_json(text)}\n")


def _on_stdout(text: str) -> None:
    if sys.stdout is not None:  # Python's name for a stdout that is closed
        sys.stdout.write(text)
        sys.stdout.flush()


def say(text: str) -> None:
    """Prints a line of progress on the standard error."""
    _on_stderr(f"pgtrial: {printable(text)}\n")


def _on_stderr(text: str) -> None:
    """Prints on stderr. Where stderr is closed, or its disk is full, the text is lost: the exit status of the command
    stays what it is, and never becomes Python's 1, which means a regression."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Sends what a stream could not write, and all that follows, nowhere: Python would try again at its end, and fail
    with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def warn(text: str) -> None:
    """Prints a warning, which is one sentence, on the standard error."""
    say(f"warning: {text}")


def print_notes(error: BaseException) -> None:
    """Prints the notes of an error. They name what could not be cleaned up when the command ended."""
    for note in getattr(error, "__notes__", ()):
        warn(note)


def stopped(interrupted: Interrupted, then: str = "") -> int:
    """Prints what a signal ended and what was left behind; returns the exit status."""
    say(f"stopped by {interrupted}{then}")
    print_notes(interrupted)
    return interrupted.exit_status


def print_traceback(error: BaseException) -> None:
    """Prints on the standard error where an error comes from."""
    _on_stderr(printable("".join(traceback.format_exception(error))))
