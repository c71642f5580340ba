"""The unprivileged account that servers run as: PostgreSQL refuses root."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.model.errors import ArmError

_PREFERRED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An operating-system user; `switch` says whether processes must change to it (the lab is root)."""

    name: str
    uid: int
    gid: int
    switch: bool

    def own(self, path: Path) -> None:
        """Give a path to the account; does nothing when the lab runs as that account already."""
        if self.switch:
            os.chown(path, self.uid, self.gid)

    def popen_options(self) -> dict[str, Any]:
        """Keyword arguments of subprocess.Popen: this account, no PG* environment, a directory that it can enter."""
        identity = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}
        return {"env": server_environment(), "cwd": "/", "stdin": subprocess.DEVNULL, **identity}

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a short command as the account and hand back status and text. Raises OSError if it cannot be started."""
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, **self.popen_options()
        )


def find_account() -> Account:
    """The lab's own user, or, when that is root, `postgres` or `nobody`. Raises ArmError if neither exists."""
    if os.geteuid() != 0:
        return Account(_own_name(), os.geteuid(), os.getegid(), switch=False)
    for name in _PREFERRED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid, switch=True)
    raise ArmError(
        "PostgreSQL refuses to run as root and this machine has neither a user postgres nor nobody: "
        "create one (useradd --system postgres) or run pgtrial as an ordinary user"
    )


def server_environment() -> dict[str, str]:
    """The process environment without PG* variables and with C messages, so that a server never inherits the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's numeric user
        return str(os.geteuid())
