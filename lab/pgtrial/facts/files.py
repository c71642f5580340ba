"""Reading the kernel's small text files and the words of system tools; what is not there is None."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from pgtrial.host.kernel import in_force

_TOOL_TIMEOUT_S = 10.0
_TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where system tools are, also for users whose PATH leaves out those of the administrator."""


def read(path: str | Path) -> str | None:
    """The text without surrounding space, or None."""
    try:
        return Path(path).read_text(errors="replace").strip() or None
    except OSError:
        return None


def number(text: str | None) -> int | None:
    """The whole number that a text starts with (`2048 kB`), or None."""
    found = re.match(r"-?\d+(?=\s|$)", text or "")
    return int(found[0]) if found else None


def chosen(path: str | Path) -> str | None:
    """What is in force of a kernel switch, or None."""
    text = read(path)
    return None if text is None else in_force(text)


def fields(path: str | Path) -> dict[str, str]:
    """`name: value` lines of a file; of a repeated name the first."""
    return parse_fields(read(path) or "")


def parse_fields(text: str, separator: str = ":") -> dict[str, str]:
    """`name: value` lines; of a repeated name the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, parted, value = line.partition(separator)
        if parted:
            found.setdefault(name.strip(), value.strip())
    return found


def output(*command: str | Path) -> str | None:
    """What a tool prints, in English; None where it is absent, fails, or takes too long."""
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}{os.pathsep}{_TOOLS}"}
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            check=True,
            errors="replace",
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_TOOL_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
