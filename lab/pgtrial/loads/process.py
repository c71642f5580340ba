"""Finds the engine's binary, starts it as a process, and explains in one sentence why a process of the engine
failed."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgtrial.files.trust import refusal_to_run
from pgtrial.model.errors import StudyError

_NAME = "pgtrial-engine"
TAIL_LINES = 40
"""The number of an engine's last output lines that are kept, to explain a failure."""


def engine_path() -> Path:
    """Returns the path of the engine's binary: $PGTRIAL_ENGINE, or else the binary in the directory of this Python, or
    else the one on PATH. Raises StudyError if there is none, or if pgtrial cannot or must not run the one that the
    variable names."""
    if chosen := os.environ.get("PGTRIAL_ENGINE"):
        if not os.access(chosen, os.X_OK):
            raise StudyError(
                f"PGTRIAL_ENGINE names {chosen}, which is not an executable file; correct or unset the variable"
            )
        if (why := refusal_to_run(Path(chosen))) is not None:
            raise StudyError(f"PGTRIAL_ENGINE: {why}")
        return Path(chosen)
    beside = Path(sys.executable).with_name(_NAME)
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which(_NAME)
    if path is None:
        raise StudyError(
            f"the load engine {_NAME} is neither in the directory of {sys.executable} nor on PATH; reinstall pgtrial, "
            "or set PGTRIAL_ENGINE to the binary"
        )
    return Path(path)


@contextmanager
def starting() -> Iterator[str]:
    """Yields the path of the engine's binary, which the caller starts within the context. An error at the start becomes
    a message for the user.

    Raises StudyError if there is no engine, or if the operating system cannot run it because it is built for another
    processor or C library.
    """
    engine = engine_path()
    try:
        yield str(engine)
    except OSError as error:
        # ENOENT: the file exists, but the dynamic loader that it names does not
        if error.errno not in (errno.ENOEXEC, errno.ENOENT):
            raise
        raise StudyError(
            f"the load engine {engine} is built for another platform and does not start here ({error.strerror}); "
            f"install pgtrial's wheel for {platform.system()} {platform.machine()}, or set PGTRIAL_ENGINE to a binary "
            "that runs"
        ) from error


def begun(
    command: Sequence[str], target: Mapping[str, str], *, stdin: int = subprocess.DEVNULL, stderr: int, **options: Any
) -> subprocess.Popen[str]:
    """Starts an engine with these arguments, and with the PG* variables of its server.

    The engine does not get Ctrl-C from the terminal. The lab gets it, and then ends the engine.
    """
    with starting() as engine:
        return subprocess.Popen(
            [engine, *command],
            env=environment(target),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
            errors="replace",
            process_group=0,
            **options,
        )


def finished(
    command: Sequence[str | Path], target: Mapping[str, str], *, stderr: int = subprocess.PIPE, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program until it ends, without input and with the PG* variables of its server. Returns its output and exit
    status."""
    return subprocess.run(
        command,
        env=environment(target),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        check=False,
        **options,
    )


def environment(target: Mapping[str, str]) -> dict[str, str]:
    """Returns the engine's environment: that of this process without its PG* variables (except PGPASSFILE), and the PG*
    variables in `target`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG") or key == "PGPASSFILE"}
    return kept | dict(target)


def lua_environment(folder: Path) -> dict[str, str]:
    """Returns the environment variables that make the engine look for Lua modules first in the folder of the script,
    and then where sysbench looks for them."""
    return {"LUA_PATH": f"{folder}/?.lua;;"}


def lines_of(stream: Iterable[str] | None) -> Iterator[str]:
    """Yields the lines of an engine's output without blank ones."""
    # in text mode, a carriage return ends a line too: the engine redraws its progress with it
    yield from (line.strip() for line in stream or () if line.strip())


def last_words(tail: Sequence[str], status: int | None) -> str:
    """Returns why an engine ended, in one sentence: its last error message, or else its last line, or the signal that
    killed it."""
    if status is not None and status < 0:
        return f"the engine was killed by {signal.Signals(-status).name}"
    return last_complaint(tail) or f"the engine ended with status {status} and without a message"


def last_complaint(tail: Sequence[str]) -> str | None:
    """Returns, of the last lines that a process printed, the last one that mentions an error, or else the last one;
    None if there are no lines."""
    spoken = [line for line in tail if "error" in line.lower() or "fatal" in line.lower()] or list(tail)
    return spoken[-1] if spoken else None
