"""Finds out if another account could exchange a file of this machine, or a directory on the way to it.

If pgtrial runs as root, it executes and writes nothing that another account could exchange between this check and the
use: that account would choose what root executes, and where root writes. Trusted are root, the own account, the owner
of pgtrial's code, which runs already, and the account that has called sudo, which could have called anything else. Git
trusts the same repositories.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PARTS = re.compile(r"""[\s=;,:'"()<>|&]+""")
"""The characters that divide the names of files in a word of a command."""
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_MOST_LINKS = 40
_ACCESS_LIST = "system.posix_acl_access"


@dataclass(frozen=True)
class Weakness:
    """A file or directory that another account can write or replace."""

    path: Path
    owner: int | None
    """The account that it belongs to; None: to a trusted one, and others have the right to write it."""

    def __str__(self) -> str:
        if self.owner is None:
            return f"{self.path} can be written by other accounts"
        return f"{self.path} belongs to the account {self.name}"

    @property
    def name(self) -> str:
        """The name of the account, or its number where it has no name."""
        with suppress(KeyError):
            return pwd.getpwuid(self.owner).pw_name if self.owner is not None else "another account"
        return f"number {self.owner}"

    @property
    def cure(self) -> str:
        """Returns what the user can do about it, for the end of a sentence."""
        if self.owner is None:
            return f"take that right away (chmod go-w {self.path})"
        return f"run pgtrial as {self.name}"


class ExchangeableError(PermissionError):
    """Raised where root does not use a file or a directory that another account could exchange."""

    def __init__(self, path: Path, weakness: Weakness) -> None:
        super().__init__(errno.EPERM, f"{weakness}, which could exchange it while root uses it", str(path))
        self.weakness = weakness


def check_exchangeable(path: Path) -> None:
    """Raise ExchangeableError if this is root, and another account could exchange what is at a path.

    What is not there yet is judged by the directory in which it would be made. Raises OSError for a path that cannot be
    followed.
    """
    if os.geteuid() == 0 and (weakness := weakness_of(path)) is not None:
        raise ExchangeableError(path, weakness)


def weakness_of(path: Path) -> Weakness | None:
    """Return the first file, link or directory on the way to a path that an untrusted account could exchange.

    In a directory with the sticky bit, such as /tmp, an account exchanges only what is its own.
    """
    current, waiting, links = Path("/"), [*reversed(_absolute(path).parts[1:])], 0
    if (weakness := _weakness(current, current.lstat())) is not None:
        return weakness
    while waiting:
        name = waiting.pop()
        if name == "..":
            current = current.parent
            continue
        step = current / name
        try:
            found = step.lstat()
        except FileNotFoundError:
            return None
        if (weakness := _weakness(step, found)) is not None:
            return weakness
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = Path(os.readlink(step))
            if target.is_absolute():
                current = Path("/")
            waiting += [part for part in reversed(target.parts) if part != "/"]
        else:
            current = step
    return None


def refusal_to_run(path: Path) -> str | None:
    """Return why root runs no program at a path, or of a directory, as a sentence without its point; None: it may."""
    try:
        check_exchangeable(path)
    except ExchangeableError as error:
        return (
            f"root runs nothing of {path}: {error.strerror}; {error.weakness.cure}, or give it to root, with all "
            "above it"
        )
    except OSError as error:
        return f"{path} cannot be followed: {error.strerror}; correct it"
    return None


def refusal_to_run_command(words: Sequence[str], directory: Path, program: Path | None) -> str | None:
    """Return why root does not run a command in a directory, as `refusal_to_run`; None: it may.

    Whatever a word names that is there may be executed, as a script is.
    """
    named = (directory / part for word in words[1:] for part in _PARTS.split(word) if part)
    files = (path for path in named if _is_there(path))
    first = [program] if program is not None else []
    return next(filter(None, map(refusal_to_run, [*first, directory, *files])), None)


def paths_in(options: Sequence[str]) -> list[Path]:
    """Return the paths from the root on that options name: `--with-x=/a`, `CC=/b -O2`."""
    return [Path(part) for option in options for part in _PARTS.split(option) if part.startswith("/")]


def without_weak_folders() -> list[str]:
    """Removes the directories that another account could exchange from this process's PATH and TMPDIR. Returns a
    sentence without its full stop for each."""
    said = []
    kept = []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if why := refusal_to_run(Path(folder)):
            said.append(f"PATH: {why}")
        else:
            kept.append(folder)
    if said:
        os.environ["PATH"] = os.pathsep.join(kept)
    for name in _TEMPORARY:
        if (chosen := os.environ.get(name)) and (why := refusal_to_run(Path(chosen))):
            said.append(f"{name}: {why}")
            del os.environ[name]
    return said


def trusted_accounts() -> frozenset[int]:
    """Return the numbers of the accounts that may exchange what this process uses."""
    caller = os.environ.get("SUDO_UID", "")
    return frozenset({0, os.geteuid(), _owner_of_code(), *([int(caller)] if caller.isdecimal() else [])})


@lru_cache
def _owner_of_code() -> int:
    return Path(__file__).stat().st_uid


def _is_there(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.exists()
    return False


def _absolute(path: Path) -> Path:
    return path if path.is_absolute() else Path.cwd() / path


def _weakness(path: Path, found: os.stat_result) -> Weakness | None:
    trusted = trusted_accounts()
    if found.st_uid not in trusted:
        return Weakness(path, found.st_uid)
    is_exchanged_by_writing = stat.S_ISREG(found.st_mode) or (
        stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_ISVTX
    )
    if not is_exchanged_by_writing:
        return None
    by_group = found.st_mode & stat.S_IWGRP and not _is_trusted_group(path, found.st_gid, trusted)
    return Weakness(path, None) if found.st_mode & stat.S_IWOTH or by_group else None


def _is_trusted_group(path: Path, group: int, trusted: frozenset[int]) -> bool:
    """True if only trusted accounts are in a group, and no access list gives its right to others."""
    with suppress(OSError, AttributeError):  # no such list, or a system that has none
        os.getxattr(path, _ACCESS_LIST, follow_symlinks=False)
        return False
    return group == 0 or _members(group) <= trusted


@lru_cache
def _members(group: int) -> frozenset[int]:
    """Return the accounts in a group: -1 for a name that is no account, or a group that is not known."""
    accounts = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    members = {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == group}
    with suppress(KeyError):
        return frozenset(members | {accounts.get(name, -1) for name in grp.getgrgid(group).gr_mem})
    return frozenset(members | {-1})
