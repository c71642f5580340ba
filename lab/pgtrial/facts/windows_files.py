"""A host with Windows as collectors see it: it has none of the files of a Unix, and no tool but PowerShell."""

from __future__ import annotations

from pathlib import Path

from pgtrial.facts.files import Files, Uname
from pgtrial.host.windows import WindowsHost

POWERSHELL = ("powershell", "-NoProfile", "-NonInteractive", "-Command")
"""The words of a command before its script."""


class WindowsFiles(Files):
    """Raises HostTrouble where the host is gone or refuses. Only a script of PowerShell costs a round trip."""

    local = False

    def __init__(self, host: WindowsHost) -> None:
        super().__init__()
        self._host = host

    @property
    def uname(self) -> Uname:
        """Known without a look; the rest is said by CIM."""
        return Uname("Windows")

    def read(self, path: str | Path) -> str | None:
        """Nothing."""
        del path
        return None

    def exists(self, path: str | Path) -> bool:
        """Nothing is there."""
        del path
        return False

    def glob(self, pattern: str | Path) -> list[Path]:
        """Nothing matches."""
        del pattern
        return []

    def resolve(self, path: str | Path) -> Path:
        """The path as it is."""
        return Path(path)

    def fetch(self, *patterns: str | Path) -> None:
        """Nothing is to be had."""

    def _run(self, command: tuple[str, ...]) -> str | None:
        return self._host.powershell(command[-1]).strip() or None if command[:-1] == POWERSHELL else None
