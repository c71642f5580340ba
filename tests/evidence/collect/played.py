"""A host that plays back what other systems' tools say, behind a Machine that has nothing of Linux."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pgtrial.machines.machine import Done


class PlayedMachine:
    """Answers a command by the name of the tool in it; what is not recorded is not installed there.

    `uname` are its lines for -s -r -v -m -p.
    """

    label = "somebody@elsewhere"
    root = False
    way_to_root = "log in as root"

    def __init__(self, said: Mapping[str, str], uname: str):
        self._said = said
        self._uname = uname
        self.asked: list[str] = []

    def looked(self, command: Sequence[str | Path], user: str | None = None) -> Done:
        """Returns the recorded output of a command, or a shell's exit status for an unknown command if none is
        recorded.
        """
        del user
        words = [str(word) for word in command]
        if words[0] == "sh":
            if "uname" in words[2]:
                self.asked.append("uname")
                return Done(0, f"\x1euname\n{self._uname}\n\x1epaths\n", "")
            words = words[4:]
        # the names of sysctl come to a loop of the shell's
        tool = "sysctl" if words[0] == "sh" else words[0]
        self.asked.append(tool)
        return Done(0, self._said[tool], "") if tool in self._said else Done(127, "", f"{tool}: not found")

    def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Returns an empty dictionary, since the played host has no files."""
        del paths
        return {}

    def exists(self, path: Path) -> bool:
        """Returns False, since the played host has no files."""
        del path
        return False

    def resolve(self, path: Path) -> Path:
        """Returns the path unchanged, since the played host has no links."""
        return path

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a collector changed something, or asked in a way that was not expected: {name}")
