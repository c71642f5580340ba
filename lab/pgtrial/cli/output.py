"""The functions by which all commands print. Control characters are made visible, so that text that other people wrote
cannot send commands to the terminal."""

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
    """Prints text and a newline on the standard output, and flushes it. Raises OSError."""
    _on_stdout(f"{printable(str(text))}\n")


def json_line(content: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> None:
    """Prints a value as JSON on the standard output, and flushes it."""
    json_text(json.dumps(content, indent=indent, ensure_ascii=False, default=default))


def json_text(text: str) -> None:
    """Prints text that is already JSON on the standard output. Raises OSError."""
    _on_stdout(f"{printable_json(text)}\n")


def _on_stdout(text: str) -> None:
    if sys.stdout is not None:  # Python sets sys.stdout to None if it was closed when the process began
        sys.stdout.write(text)
        sys.stdout.flush()


def print_message(text: str) -> None:
    """Prints a line of progress on the standard error."""
    _on_stderr(f"pgtrial: {printable(text)}\n")


def _on_stderr(text: str) -> None:
    """Prints on the standard error. If the standard error is closed, or is a file on a full disk, the text is lost and
    pgtrial goes on. Without this function, Python would exit with status 1, by which pgtrial reports a regression."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirects a stream to the null device after a write to it has failed. The text that is still in the stream's
    buffer is lost. Without this redirection Python would try to write the buffer once more at its exit, fail again, and
    replace pgtrial's exit status by its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def warn(text: str) -> None:
    """Prints a warning, which is one sentence, on the standard error. The word `warning:` is put before it."""
    print_message(f"warning: {text}")


def print_notes(error: BaseException) -> None:
    """Prints the notes of an error as warnings. Such notes say what could not be cleaned up when the command ended."""
    for note in getattr(error, "__notes__", ()):
        warn(note)


def stopped(interrupted: Interrupted, then: str = "") -> int:
    """Prints which signal ended the command and what was left behind. Returns the exit status."""
    print_message(f"stopped by {interrupted}{then}")
    print_notes(interrupted)
    return interrupted.exit_status


def print_traceback(error: BaseException) -> None:
    """Prints the traceback of an error on the standard error."""
    _on_stderr(printable("".join(traceback.format_exception(error))))
