"""Makes the copies of a template that trials use. To save time, a new copy uses those small files of an earlier trial's
copy again that were not changed.

A cluster has about a thousand files. Most of them belong to catalogs and never change in a trial. On ext4, making a new
file is slow if many files were deleted within the last minutes, since the kernel does not reuse their inodes so soon
and skips them one by one (`recently_deleted` in fs/ext4/ialloc.c). Making all files again for each trial would take
longer than copying the data.

Therefore a copy is stripped at the end of its trial: everything is removed except for directories and small unchanged
files. The next trial with the same template completes the copy. All files that can affect a measurement are copied
again: large files, and files that were written to.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pgtrial.machines.machine import Command
from pgtrial.servers.run_directory import GNU_COPY, RunDirectory, check_copied, copy_cluster
from pgtrial.servers.templates import StrippedCopy

_LARGE = 1024 * 1024
"""The size in bytes from which a file is always copied again. Each trial then has the file in other disk blocks and in
other pages of the page cache."""

_AT_ONCE = 4
"""The number of processes that copy the missing files at the same time."""

_CLOCK_STEP_S = 0.01
"""The longest step, in seconds, of the clock by which Linux sets the ctime of a file (one tick of a kernel with 100
ticks a second). If a file is copied and written to within the same step, the write does not change its ctime, so that
pgtrial would not notice it."""

_LONGEST = 100_000
"""The largest total length of the paths of missing files, in characters. If they are longer, the whole template is
copied instead. The limit keeps the command line short; Linux permits one that is twenty times as long."""

_LIST = 'cd "$1" && exec find . -mindepth 1 -printf "%y %C@ %s %P\\0"'
"""The script that prints the type, the time of the last change (ctime), the size and the path of each file. It needs
GNU's find; without that, no files are used again."""

_REMOVE = 'cd "$1" && exec xargs -0 -r rm -rf --'

_COMPLETE = f"""
from=$1 to=$2
shift 2
cd "$from" && exec {GNU_COPY} --parents -t "$to" -- "$@"
"""


@contextmanager
def copy_for_trial(run_directory: RunDirectory, template: Path, name: str, *, copies: int = 1) -> Iterator[Path]:
    """Provides a data directory on this machine with all files of a template.

    If at least `copies` stripped copies of earlier trials exist, completes one of them; otherwise makes a new copy with
    `name` in its path. Raises ArmError.
    """
    stripped = run_directory.stripped.setdefault((template, template.lstat().st_ino), [])
    if len(stripped) >= copies:
        last = stripped.pop()
        data = last.path
        _complete(run_directory, template, last)
    else:
        data = run_directory.directory(name)
        copy_cluster(run_directory, template, data)
    try:
        begun = _files(run_directory, data)
        time.sleep(_CLOCK_STEP_S)
        yield data
    except BaseException:
        run_directory.machine.remove_tree(data)
        raise
    if (kept := _strip(run_directory, data, begun)) is not None:
        stripped.append(kept)
    else:
        run_directory.machine.remove_tree(data)


@dataclass(frozen=True, slots=True)
class _File:
    """The state of a file, as `find` prints it. Two states of a file are equal only if nobody has written to the file
    in between, since each write sets the ctime, which no program can set back."""

    kind: str
    """The file's type, as `find` prints it: `f` for a regular file, `d` for a directory."""
    changed: str
    """The ctime in seconds since 1970, with nanoseconds."""
    size: int

    @classmethod
    def of(cls, words: str) -> tuple[str, Self]:
        """Returns the path and the state of a file from what `find` has printed about it."""
        kind, changed, size, path = words.split(" ", 3)
        return path, cls(kind, changed, int(size))


def _files(run_directory: RunDirectory, data: Path) -> Mapping[str, _File]:
    """Returns the states of all files of a copy, by their paths; an empty result if they cannot be listed."""
    listed = run_directory.run(["sh", "-c", _LIST, "sh", data])
    if listed.status != 0 or "\N{REPLACEMENT CHARACTER}" in listed.stdout:  # a path is not valid UTF-8
        return {}
    return dict(map(_File.of, listed.stdout.split("\0")[:-1]))


def _strip(run_directory: RunDirectory, data: Path, begun: Mapping[str, _File]) -> StrippedCopy | None:
    """Removes all files of a used copy, except for small files that have not changed since the trial began. Returns
    None if that is not possible or saves no time."""
    now = _files(run_directory, data)
    kept = {path for path, file in now.items() if file.kind == "f" and file.size < _LARGE and begun.get(path) == file}
    directories = {path for path, file in begun.items() if file.kind == "d"}
    missing = {path: file.size for path, file in begun.items() if path not in kept | directories}
    if not kept or not directories <= now.keys() or sum(map(len, missing)) > _LONGEST:
        return None
    removed = "".join(f"{path}\0" for path in now if path not in kept | directories)
    done = run_directory.run(["sh", "-c", _REMOVE, "sh", data], removed)
    return StrippedCopy(data, missing) if done.status == 0 else None


def _complete(run_directory: RunDirectory, template: Path, copy: StrippedCopy) -> None:
    """Copies the files that a stripped copy lacks from the template. If that fails, removes the copy and raises
    ArmError."""
    command: Command = ["sh", "-c", _COMPLETE, "sh", template, copy.path]
    commands = [[*command, *paths] for paths in _shared_out(copy.missing.items()) if paths]
    check_copied(run_directory, template, copy.path, run_directory.machine.run_at_once(commands, run_directory.account))


def _shared_out(files: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Divides files, given by path and size, into shares with about the same number of bytes. Returns the paths of each
    share."""
    shares: list[list[str]] = [[] for _ in range(_AT_ONCE)]
    sizes = [0] * _AT_ONCE
    for path, size in sorted(files, key=lambda file: -file[1]):
        least = sizes.index(min(sizes))
        shares[least].append(path)
        sizes[least] += size
    return shares
