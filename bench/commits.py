"""A repository of PostgreSQL's source in which one commit is slower, for campaigns of gates and bisections."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

COMMITS = 30
PLANTED_AT = 17
"""Which commit of the branch `planted` is slower; the branch `clean` has another comment in its place."""

_SLOW = "src/backend/tcop/pquery.c"
_COMMENTED = ("access", "catalog", "commands", "executor", "optimizer", "parser", "storage", "utils")
"""Folders of the backend whose files get comments."""

_PORTAL_RUN = re.compile(r"^PortalRun\(.*?^\tTRACE_POSTGRESQL_QUERY_EXECUTE_START\(\);\n", re.MULTILINE | re.DOTALL)
_SOMEBODY = {
    "GIT_AUTHOR_NAME": "Campaign",
    "GIT_AUTHOR_EMAIL": "campaign@example.org",
    "GIT_COMMITTER_NAME": "Campaign",
    "GIT_COMMITTER_EMAIL": "campaign@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """Branches `planted` and `clean`, with tags `planted-0` to `planted-30` and `clean-17` to `clean-30`.

    The commit `planted-17` takes so many rounds of an empty loop more in each execution of a portal; all others add
    a comment to a file of the backend.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, source: Path, rounds: int) -> None:
        """Make it of an unpacked source of PostgreSQL, unless it is there."""
        if (self.path / ".git").is_dir():
            return
        shutil.copytree(source, self.path)
        self._git("init", "--quiet", "--initial-branch=planted")
        self._commit(0, "planted", "The source as it was published")
        for number in range(1, COMMITS + 1):
            if number == PLANTED_AT:
                self._git("branch", "clean")
                self._plant(rounds)
                self._commit(number, "planted", "Look at each portal more carefully")
            else:
                self._comment(number, "planted")
        self._git("switch", "--quiet", "clean")
        for number in range(PLANTED_AT, COMMITS + 1):
            self._comment(number, "clean")

    def source(self, tag: str) -> str:
        """A commit, as the key `postgres` of an arm takes it."""
        return f"git:{self.path}@{tag}"

    def _comment(self, number: int, branch: str) -> None:
        folder = self.path / "src" / "backend" / _COMMENTED[number % len(_COMMENTED)]
        files = sorted(folder.rglob("*.c"))
        file = files[number * 7 % len(files)]
        with file.open("a") as text:
            text.write(f"\n/* Read again, no change: {number}. */\n")
        self._commit(number, branch, f"Comment on {file.relative_to(self.path)}")

    def _plant(self, rounds: int) -> None:
        file = self.path / _SLOW
        loop = f"\tfor (volatile int round = 0; round < {rounds}; round++)\n\t\t;\n\n"
        text, number = _PORTAL_RUN.subn(lambda match: _before_last_line(match[0], loop), file.read_text(), count=1)
        if number == 0:
            raise SystemExit(f"{_SLOW} has no PortalRun with its probe; take the source of PostgreSQL 15")
        file.write_text(text)

    def _commit(self, number: int, branch: str, subject: str) -> None:
        self._git("add", "--all", "--force")
        self._git("commit", "--quiet", "--message", subject)
        self._git("tag", f"{branch}-{number}")

    def _git(self, *arguments: str) -> None:
        command = ["git", "-C", str(self.path), "-c", "core.hooksPath=/dev/null", *arguments]
        subprocess.run(command, check=True, env={**os.environ, **_SOMEBODY})


def _before_last_line(text: str, insertion: str) -> str:
    *before, last = text.splitlines(keepends=True)
    return "".join([*before, insertion, last])
