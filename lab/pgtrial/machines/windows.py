"""A host with Windows. Scripts of PowerShell read from it and print JSON; nothing is changed there."""

from __future__ import annotations

import abc
import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgtrial.machines.machine import HostError, Machine
from pgtrial.model.resources import filled, resource

Reply = dict[str, Any]

LONGEST_COMMAND = 8191
"""The longest command line of cmd.exe, in characters. It is the shell of OpenSSH for Windows unless somebody chose
another one."""

_COMMAND = "powershell -NoProfile -NonInteractive -OutputFormat Text -EncodedCommand "
_REPLY_SCRIPT = resource("reply.ps1", __package__)
"""The script that prints a reply. Characters that are not ASCII are escaped, since a console without a code page of its
own would spoil them. A value that may not be asked for is null, and the error message about it, which is in the
language of the host, is not printed."""

_DRIVE = re.compile(r"([A-Za-z]):[\\/]")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")


class WindowsHost(abc.ABC):
    """A host that answers to PowerShell."""

    label: str
    """The name in messages: user@host."""

    @abc.abstractmethod
    def powershell(self, script: str) -> str:
        """Runs a script that changes nothing, and returns what it prints. It may be repeated. Raises HostTrouble."""


AnyMachine = Machine | WindowsHost
"""A machine that can be read; only a Machine can be changed."""


def command_line(script: str) -> str:
    """Returns the command line that carries out a script, the same for cmd.exe, PowerShell and POSIX shells. Raises
    HostError if it is too long."""
    lines = "\n".join(line.strip() for line in script.splitlines() if line.strip())
    command = _COMMAND + base64.b64encode(lines.encode("utf-16-le")).decode()
    if len(command) > LONGEST_COMMAND:
        raise HostError(f"a command of {len(command)} characters is too long for Windows; move the data directory")
    return command


def reply_script(parts: Mapping[str, str], before: str = "") -> str:
    """Returns the script that prints the values of expressions as one JSON object; `before` has statements that they
    need."""
    lines = "\n".join(f"{name} = {what}" for name, what in parts.items())
    return filled(_REPLY_SCRIPT, before=before, parts=lines)


def parts_in(text: str) -> dict[str, str]:
    """Returns the PowerShell expressions in the text of a file by their names; the file has a line `name = expression`
    for each part of a reply."""
    lines = (line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))
    return dict(lines)


def quoted(text: str | Path) -> str:
    """Returns a text as a literal string of PowerShell."""
    return "'" + str(text).replace("'", "''") + "'"


def drive_of(directory: Path | None) -> str | None:
    """Returns the drive of a directory as PostgreSQL names it: `D:` for `D:/pgdata`; None if it has no letter."""
    match = _DRIVE.match(str(directory or ""))
    return None if match is None else f"{match[1].upper()}:"


def parse_reply(text: str | None) -> Reply:
    """Returns the JSON object in what was printed, whatever a shell said before and after it; {} if there is none."""
    text = (text or "").replace("\0", "")
    start, end = text.find("{"), text.rfind("}")
    try:
        reply = json.loads(text[start : end + 1], strict=False) if start >= 0 else {}
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}


def part(reply: Reply, name: str) -> Reply:
    """Returns the first object of this name; {} if the reply lacks it."""
    return next(iter(rows(reply, name)), {})


def rows(reply: Reply, name: str) -> list[Reply]:
    """Returns all objects of a list, without nulls. ConvertTo-Json may have made one object of the list."""
    value = reply.get(name)
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]


def number(value: Any) -> float | None:
    """Returns a number, also from text and with a decimal comma; None for anything else, true and false included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < float("inf") else None
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[0].replace(",", ".")) if match else None


def whole(value: Any) -> int | None:
    """Returns a value as a whole number, by the rules of `number`."""
    parsed = number(value)
    return None if parsed is None else int(parsed)
