"""A repository of PostgreSQL's source in which one commit is slower, for campaigns of gates and bisections."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.repositories import Repository

COMMITS = 30
PLANTED_AT = 17
"""The number of the commit of the branch `planted` that makes the server slower. The branch `clean` has a commit in its
place that only adds a comment.
"""

_SLOW = "src/backend/tcop/pquery.c"
_COMMENTED = ("access", "catalog", "commands", "executor", "optimizer", "parser", "storage", "utils")
"""Folders of the backend whose files get comments."""

_PORTAL_RUN = re.compile(r"(^PortalRun\(.*?)(^\tTRACE_POSTGRESQL_QUERY_EXECUTE_START\(\);\n)", re.MULTILINE | re.DOTALL)


def make_commits(path: Path, source: Path, rounds: int) -> None:
    """Make a repository of an unpacked source of PostgreSQL, unless it is there.

    Its branches `planted` and `clean` have tags `planted-0` to `planted-30` and `clean-17` to `clean-30`. The commit
    `planted-17` takes so many rounds of an empty loop more in each execution of a portal; all others add a comment to
    a file of the backend.
    """
    if path.exists():
        return
    repository = Repository(path)
    shutil.copytree(source, path, dirs_exist_ok=True)
    repository.git("switch", "--quiet", "-c", "planted")
    repository.git("add", "--all", "--force")  # what is generated in a published source is part of it
    _commit(repository, "planted-0", "The source as it was published")
    for number in range(1, COMMITS + 1):
        if number == PLANTED_AT:
            repository.git("branch", "clean")
            _plant(path / _SLOW, rounds)
            _commit(repository, f"planted-{number}", "Look at each portal more carefully")
        else:
            _comment(repository, number, "planted")
    repository.git("switch", "--quiet", "clean")
    for number in range(PLANTED_AT, COMMITS + 1):
        _comment(repository, number, "clean")


def commit_of(repository: Path, tag: str) -> str:
    """Returns a commit, as the key `postgres` of an arm takes it."""
    return f"git:{repository}@{tag}"


def _comment(repository: Repository, number: int, branch: str) -> None:
    folder = repository.path / "src" / "backend" / _COMMENTED[number % len(_COMMENTED)]
    files = sorted(folder.rglob("*.c"))
    file = files[number * 7 % len(files)]
    with file.open("a") as text:
        text.write(f"\n/* Read again, no change: {number}. */\n")
    _commit(repository, f"{branch}-{number}", f"Comment on {file.relative_to(repository.path)}")


def _plant(file: Path, rounds: int) -> None:
    loop = f"\tfor (volatile int round = 0; round < {rounds}; round++)\n\t\t;\n\n"
    text, number = _PORTAL_RUN.subn(lambda match: match[1] + loop + match[2], file.read_text(), count=1)
    if number == 0:
        raise SystemExit(f"{_SLOW} has no PortalRun with its probe; take the source of PostgreSQL 15")
    file.write_text(text)


def _commit(repository: Repository, tag: str, subject: str) -> None:
    repository.commit(subject, {})
    repository.git("tag", tag)
