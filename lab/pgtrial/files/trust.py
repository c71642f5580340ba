"""Finds out whether another account could replace a file of this machine, or a directory in the path to it.

If pgtrial runs as root, it executes and writes no file that another account could replace between the check and the
use. Otherwise that account would decide what root executes, and where root writes. The following accounts are trusted:
root, the account that runs pgtrial, the owner of pgtrial's code, which is being executed anyway, and the account that
called sudo, which could have called any other program. Git trusts the same accounts as owners of repositories.
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
"""The characters that separate the names of files within one word of a command."""
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")
_MOST_LINKS = 40
_ACCESS_LIST = "system.posix_acl_access"


@dataclass(frozen=True)
class Weakness:
    """A file or directory that an untrusted account can write or replace."""

    path: Path
    owner: int | None
    """The user ID of the untrusted account that owns the file or directory; None if a trusted account owns it, but
    other accounts have the right to write it."""

    def __str__(self) -> str:
        if self.owner is None:
            return f"{self.path} can be written by other accounts"
        return f"{self.path} belongs to the account {self.name}"

    @property
    def name(self) -> str:
        """Returns the name of the account that owns the file or directory, or its user ID if it has no name."""
        with suppress(KeyError):
            return pwd.getpwuid(self.owner).pw_name if self.owner is not None else "another account"
        return f"number {self.owner}"

    @property
    def cure(self) -> str:
        """Returns what the user can do against the weakness, as the last clause of a message."""
        if self.owner is None:
            return f"take that right away (chmod go-w {self.path})"
        return f"run pgtrial as {self.name}"


class ExchangeableError(PermissionError):
    """Raised if pgtrial runs as root and another account could replace a file or directory that pgtrial is about to
    use."""

    def __init__(self, path: Path, weakness: Weakness) -> None:
        super().__init__(errno.EPERM, f"{weakness}, which could replace it while root uses it", str(path))
        self.weakness = weakness


def check_exchangeable(path: Path) -> None:
    """Raises ExchangeableError if pgtrial runs as root and another account could replace the file or directory at this
    path.

    If the path does not exist yet, the directory in which it would be made is checked. Raises OSError if the path
    cannot be resolved.
    """
    if os.geteuid() == 0 and (weakness := weakness_of(path)) is not None:
        raise ExchangeableError(path, weakness)


def weakness_of(path: Path) -> Weakness | None:
    """Returns the first file, link or directory in the path that an untrusted account could replace; None if there is
    none.

    In a directory with the sticky bit, such as /tmp, an account can replace only its own files.
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
    """Returns the reason why root does not run a program at this path, or in this directory, as a sentence without its
    full stop; None if root runs it."""
    try:
        check_exchangeable(path)
    except ExchangeableError as error:
        return (
            f"root runs no program from {path}: {error.strerror}; {error.weakness.cure}, or make root the owner of it "
            "and of all directories above it"
        )
    except OSError as error:
        return f"the path {path} cannot be resolved: {error.strerror}; correct it"
    return None


def refusal_to_run_command(words: Sequence[str], directory: Path, program: Path | None) -> str | None:
    """Returns the reason why root does not run a command in a directory, as `refusal_to_run` does; None if root runs
    it.

    Every existing file that a word of the command names is checked too, because the command may execute it, as a shell
    executes a script.
    """
    named = (directory / part for word in words[1:] for part in _PARTS.split(word) if part)
    files = (path for path in named if _is_there(path))
    first = [program] if program is not None else []
    return next(filter(None, map(refusal_to_run, [*first, directory, *files])), None)


def paths_in(options: Sequence[str]) -> list[Path]:
    """Returns the absolute paths that options contain, as in `--with-x=/a` and `CC=/b -O2`."""
    return [Path(part) for option in options for part in _PARTS.split(option) if part.startswith("/")]


def without_weak_folders() -> list[str]:
    """Removes the directories that an untrusted account could replace from this process's PATH, and removes variables
    such as TMPDIR that name such a directory from its environment. Returns a sentence without its full stop for each
    removal."""
    reasons = []
    kept = []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if why := refusal_to_run(Path(folder)):
            reasons.append(f"PATH: {why}")
        else:
            kept.append(folder)
    if reasons:
        os.environ["PATH"] = os.pathsep.join(kept)
    for name in _TEMPORARY:
        if (chosen := os.environ.get(name)) and (why := refusal_to_run(Path(chosen))):
            reasons.append(f"{name}: {why}")
            del os.environ[name]
    return reasons


def trusted_accounts() -> frozenset[int]:
    """Returns the user IDs of the accounts that are allowed to replace files which this process uses."""
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
    """True if only trusted accounts are in a group, and the file has no access list (POSIX ACL) that could give rights
    to others."""
    with suppress(OSError, AttributeError):  # the file has no access list, or the system does not support access lists
        os.getxattr(path, _ACCESS_LIST, follow_symlinks=False)
        return False
    return group == 0 or _members(group) <= trusted


@lru_cache
def _members(group: int) -> frozenset[int]:
    """Returns the user IDs of the members of a group. They include -1 if a member is not a known account, or if the
    group is not known."""
    accounts = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    members = {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == group}
    with suppress(KeyError):
        return frozenset(members | {accounts.get(name, -1) for name in grp.getgrgid(group).gr_mem})
    return frozenset(members | {-1})
