"""Finds the lines in a server's log that show why the server ended: PANIC, FATAL, and messages about processes that
ended.

Lines with statements and details are left out, because they may contain confidential data.
"""

from __future__ import annotations

import re
from pathlib import Path

_MOST_LINES = 8
_LONGEST = 300
_READ_BYTES = 4 * 1024 * 1024
_SPOKEN = re.compile(
    r"^(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]* \S+ )?.*?\b(?P<level>PANIC|FATAL|LOG): +(?P<words>.*)"
)
_ENDS = re.compile(
    r"was terminated by (signal|exception)|exited with exit code|received \w+ shutdown request|abnormal server process"
    r"|terminating any other active|all server processes terminated|could not (write|extend|open|fsync)|No space left"
)


def last_lines(log: Path, begin: int = 0) -> list[str]:
    """Returns the lines of a log, from byte `begin` on, that show why the server ended.

    Lines that differ only in numbers are combined into one line, which says how many lines there were and when the
    first of them was written.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(begin, log.stat().st_size - _READ_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return telling_lines(text)


def telling_lines(text: str) -> list[str]:
    """Returns the last lines of a log that show why a server ended. Only the last few such lines are returned, but
    lines with PANIC are always among them."""
    telling: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = _SPOKEN.match(line)
        if match is None or (match["level"] == "LOG" and not _ENDS.search(match["words"])):
            continue
        words = f"{match['level']}: {match['words'].strip()}"[:_LONGEST]
        telling.setdefault(re.sub(r"\d+", "0", words), []).append(f"{match['when'] or ''}{words}")
    lines = [f"{alike[0]} ({len(alike)} times)" if len(alike) > 1 else alike[0] for alike in telling.values()]
    panics = [line for line in lines if "PANIC: " in line]
    others = [line for line in lines if "PANIC: " not in line]
    kept = [*panics, *reversed(others)][:_MOST_LINES]
    return [line for line in lines if line in kept]


def panic(lines: list[str]) -> str | None:
    """Returns the first line with PANIC among these lines, without the time at its beginning; None if no line has the
    word."""
    line_of_panic = next((line for line in lines if "PANIC: " in line), None)
    return line_of_panic and line_of_panic[line_of_panic.index("PANIC: ") :]
