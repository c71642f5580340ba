"""The servers' account as an enemy: it exchanges all that it can write, to have root touch what is another's."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ATTACKS = (
    "links in place of files",
    "pipes in place of files",
    "numbers of processes",
    "links in place of directories",
)

NEVER = frozenset({"changes", "rooms", "lock", "template.json", "files.json", "uses.json", "made-by-pgtrial"})
"""The names of files that root trusts. The servers' account must never be able to replace them."""


SECRET = "root's secret"
"""The content of the victim's files."""


@dataclass(frozen=True)
class Victim:
    """A directory of root's with files that a server's data has too, and a process that works in it."""

    directory: Path
    process: subprocess.Popen[bytes]

    def state(self) -> dict[str, tuple[object, ...]]:
        """Returns owner, mode and content of each file in the directory, and the exit status of the process (None while
        it runs).
        """
        seen: dict[str, tuple[object, ...]] = {"process": (self.process.poll(),)}
        for path in (self.directory, *self.directory.rglob("*")):
            found = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            seen[str(path)] = (found.st_uid, found.st_gid, found.st_mode, content)
        return seen


@contextmanager
def victim(directory: Path) -> Iterator[Victim]:
    """Yields a directory like a server's data directory, which belongs to root, with a process that runs as long as the
    context.
    """
    directory.mkdir(mode=0o700)
    for name in ("base/1/1259", "changes/000001.json", "pg_wal/1", "PG_VERSION", "pg_hba.conf", "secret", "data/x"):
        (directory / name).parent.mkdir(exist_ok=True, parents=True)
        (directory / name).write_text(SECRET)
        (directory / name).chmod(0o600)
    process = subprocess.Popen(["bash", "-c", "exec -a postgres sleep 600"], cwd=directory)
    (directory / "postmaster.pid").write_text(f"{process.pid}\n{directory}\n")
    try:
        yield Victim(directory, process)
    finally:
        process.kill()
        process.wait()


def as_account(account: str, act: Callable[[], int | None]) -> int:
    """Calls `act` in a child process of this account, which must succeed, and returns the number that `act`
    returned.
    """
    entry = pwd.getpwnam(account)
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgroups([])
            os.setgid(entry.pw_gid)
            os.setuid(entry.pw_uid)
            os.write(theirs, str(act() or 0).encode())
            status = 0
        except BaseException as error:  # noqa: BLE001
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(status)
    os.close(theirs)
    with open(ours, "rb") as answer:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "its words are above"
        return int(answer.read() or 0)


def exchange(paths: Sequence[Path], attack: str, target: Victim) -> int:
    """Replaces these files in the way that `attack` names, where this account may, and returns how many it replaced.

    It fails if it can replace a file that root trusts.
    """
    exchanged = 0
    for path in sorted(paths, reverse=True):
        with suppress(OSError):  # it is not the account's, or not there any more
            is_directory = stat.S_ISDIR(path.lstat().st_mode)
            if attack == "links in place of directories" and is_directory:
                path.rename(path.with_name(f"{path.name}.was"))
                path.symlink_to(target.directory)
            elif attack == "numbers of processes" and path.name == "postmaster.pid":
                path.write_text(f"{target.process.pid}\n{target.directory}\n")
            elif attack.startswith("links in place of files") and not is_directory:
                path.unlink()
                path.symlink_to(target.directory / path.name if path.name in _NAMES else target.directory / "secret")
            elif attack.startswith("pipes") and not is_directory:
                path.unlink()
                os.mkfifo(path)
            else:
                continue
            exchanged += 1
            assert path.name not in NEVER, f"{path} could be exchanged"
    return exchanged


_NAMES = ("postmaster.pid", "PG_VERSION", "pg_hba.conf")


def writable(paths: Sequence[Path]) -> set[Path]:
    """Returns the paths that this account can write and that lie in a directory that it cannot write."""
    found = {path for path in paths if os.access(path, os.W_OK) and not os.path.islink(path)}
    return {path for path in found if path.parent not in found}
