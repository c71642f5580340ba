"""The one place through which commands print: what strangers wrote reaches a terminal as text, never as commands."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from pgtrial.machines.interrupt import Interrupted
from pgtrial.model.printable import printable, printable_json


def line(text: object) -> None:
    """Print text on stdout, at once."""
    sys.stdout.write(f"{printable(str(text))}\n")
    sys.stdout.flush()


def json_line(content: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> None:
    """Print a value as JSON on stdout, at once."""
    json_text(json.dumps(content, indent=indent, ensure_ascii=False, default=default))


def json_text(text: str) -> None:
    """Print what is JSON already."""
    sys.stdout.write(f"{printable_json(text)}\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line of progress on stderr."""
    sys.stderr.write(f"pgtrial: {printable(text)}\n")


def warn(text: str) -> None:
    """Print a warning, one sentence, on stderr."""
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
    """Print where an error comes from on stderr."""
    sys.stderr.write(printable("".join(traceback.format_exception(error))))
