"""A host with Windows: it is only looked at, by scripts of PowerShell, and speaks JSON; nothing is changed there."""

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
"""Characters of a command line of cmd.exe, the shell of OpenSSH for Windows unless somebody chose another one."""

_COMMAND = "powershell -NoProfile -NonInteractive -OutputFormat Text -EncodedCommand "
_REPLY_SCRIPT = resource("reply.ps1", __package__)
"""What is not ASCII is escaped: a console without a code page of its own would spoil it. What may not be asked is null,
and the errors about that, which are in the language of the host, stay there."""

_DRIVE = re.compile(r"([A-Za-z]):[\\/]")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")


class WindowsHost(abc.ABC):
    """A host that answers to PowerShell."""

    label: str
    """What people call it: user@host."""

    @abc.abstractmethod
    def powershell(self, script: str) -> str:
        """What a script that changes nothing prints; it may be repeated. Raises HostTrouble."""


AnyMachine = Machine | WindowsHost
"""A machine that can be looked at; only a Machine can be changed."""


def command_line(script: str) -> str:
    """What carries out a script, for cmd.exe, PowerShell and POSIX shells alike. Raises HostError if it is too long."""
    lines = "\n".join(line.strip() for line in script.splitlines() if line.strip())
    command = _COMMAND + base64.b64encode(lines.encode("utf-16-le")).decode()
    if len(command) > LONGEST_COMMAND:
        raise HostError(f"a command of {len(command)} characters is too long for Windows; move the data directory")
    return command


def reply_script(parts: Mapping[str, str], before: str = "") -> str:
    """The script that prints, as one JSON object, what expressions give; `before` are statements that they need."""
    lines = "\n".join(f"{name} = {what}" for name, what in parts.items())
    return filled(_REPLY_SCRIPT, before=before, parts=lines)


def parts_in(text: str) -> dict[str, str]:
    """The parts of a reply in a file of PowerShell, each on a line of its own: `name = expression`."""
    lines = (line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))
    return dict(lines)


def quoted(text: str | Path) -> str:
    """A literal string of PowerShell."""
    return "'" + str(text).replace("'", "''") + "'"


def drive_of(directory: Path | None) -> str | None:
    """`D:` of a directory as PostgreSQL names it (`D:/pgdata`); None where it has no letter."""
    match = _DRIVE.match(str(directory or ""))
    return None if match is None else f"{match[1].upper()}:"


def parse_reply(text: str | None) -> Reply:
    """The JSON object in what was printed, whatever a shell said before and after it; {} where there is none."""
    text = (text or "").replace("\0", "")
    start, end = text.find("{"), text.rfind("}")
    try:
        reply = json.loads(text[start : end + 1], strict=False) if start >= 0 else {}
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}


def part(reply: Reply, name: str) -> Reply:
    """One object; {} where the reply lacks it."""
    return next(iter(rows(reply, name)), {})


def rows(reply: Reply, name: str) -> list[Reply]:
    """All objects of a list, of which ConvertTo-Json may have made one object; without nulls."""
    value = reply.get(name)
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]


def number(value: Any) -> float | None:
    """A number, also as text and with a decimal comma; None for anything else, a flag included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < float("inf") else None
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[0].replace(",", ".")) if match else None


def whole(value: Any) -> int | None:
    """A whole number, by the rules of `number`."""
    parsed = number(value)
    return None if parsed is None else int(parsed)
