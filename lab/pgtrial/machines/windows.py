"""Reads the state of a host with Windows, by PowerShell scripts that print JSON. pgtrial changes nothing on such a
host."""

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
"""The longest command line of cmd.exe, in characters. OpenSSH for Windows passes commands to cmd.exe unless an
administrator has chosen another shell."""

_COMMAND = "powershell -NoProfile -NonInteractive -OutputFormat Text -EncodedCommand "
_REPLY_SCRIPT = resource("reply.ps1", __package__)
"""The script that prints the values of expressions as JSON. It escapes characters that are not ASCII, since some
consoles would garble them. If the account is not permitted to read a value, the value is null, and the error message,
which would be in the language of the host, is not printed."""

_DRIVE = re.compile(r"([A-Za-z]):[\\/]")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")


class WindowsHost(abc.ABC):
    """A host with Windows, from which pgtrial reads by PowerShell scripts."""

    label: str
    """The host's name in messages: user@host."""

    @abc.abstractmethod
    def powershell(self, script: str) -> str:
        """Runs a script that changes nothing, and returns its standard output. The script may run twice if the
        connection is lost. Raises HostTrouble."""


AnyMachine = Machine | WindowsHost
"""A machine whose state pgtrial can read. pgtrial can make changes only to a Machine, not to a WindowsHost."""


def command_line(script: str) -> str:
    """Returns the command line by which PowerShell runs a script. It works in cmd.exe, PowerShell and POSIX shells
    alike. Raises HostError if the command line is too long."""
    lines = "\n".join(line.strip() for line in script.splitlines() if line.strip())
    command = _COMMAND + base64.b64encode(lines.encode("utf-16-le")).decode()
    if len(command) > LONGEST_COMMAND:
        raise HostError(
            f"a command of {len(command)} characters is too long for Windows; move the data directory to a shorter path"
        )
    return command


def reply_script(parts: Mapping[str, str], before: str = "") -> str:
    """Returns the PowerShell script that prints the values of named expressions as one JSON object. `before` has
    statements that run before the expressions."""
    lines = "\n".join(f"{name} = {what}" for name, what in parts.items())
    return filled(_REPLY_SCRIPT, before=before, parts=lines)


def parts_in(text: str) -> dict[str, str]:
    """Returns the PowerShell expressions in the text of a file, by their names. The file has a line `name = expression`
    for each of them."""
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
    """Returns the JSON object in the output of a script, ignoring what a shell printed before and after it; {} if there
    is none."""
    text = (text or "").replace("\0", "")
    start, end = text.find("{"), text.rfind("}")
    try:
        reply = json.loads(text[start : end + 1], strict=False) if start >= 0 else {}
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) else {}


def part(reply: Reply, name: str) -> Reply:
    """Returns the value with this name in a reply, if it is an object; the first object if it is a list; otherwise
    {}."""
    return next(iter(rows(reply, name)), {})


def rows(reply: Reply, name: str) -> list[Reply]:
    """Returns all objects of the list with this name in a reply, without nulls. A single object counts as a list of
    one, since ConvertTo-Json writes a list with one element so."""
    value = reply.get(name)
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]


def number(value: Any) -> float | None:
    """Returns a JSON value as a number: a number itself, or a text with a number, whose decimal separator may be a
    comma. Returns None for all other values, including true and false."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < float("inf") else None
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[0].replace(",", ".")) if match else None


def whole(value: Any) -> int | None:
    """Returns a JSON value as a whole number, by the rules of `number` and without its fraction."""
    parsed = number(value)
    return None if parsed is None else int(parsed)
