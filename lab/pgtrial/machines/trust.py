"""Checks that a file or program was put in its place by root or by the lab's own account, and not by another account.
pgtrial obeys no other files, and as root runs no other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgtrial.files.trust import refusal_to_run
from pgtrial.machines.machine import HostError, Machine, refused


def check_own(machine: Machine, paths: Sequence[Path], kind: str = "d") -> None:
    """Raises HostError, with a sentence for the user, unless each path is a directory to which no other account can
    write.

    With another `kind`, a letter as `ls -l` prints it, each path has to be a file of that kind instead. A symbolic link
    is refused. Raises FileNotFoundError if a path does not exist.
    """
    for path, entry in zip(paths, machine.entries(paths), strict=True):
        if entry.kind == "l":
            raise HostError(f"{path} is a symbolic link, which pgtrial does not follow")
        if entry.kind != kind:
            raise HostError(f"{path} is not what pgtrial made there")
        if entry.owner not in machine.trusted:
            raise HostError(f"{path} belongs to another account (number {entry.owner}), so pgtrial does not trust it")
        if entry.group_writes or entry.others_write:
            raise HostError(f"{path} can be written by other accounts, so pgtrial does not trust it")


def check_way(machine: Machine, path: Path) -> None:
    """Raises HostError, with a sentence for the user, if another account could replace the directory at a path, or a
    directory above it, by another one.

    In a directory with the sticky bit, such as /tmp, only the owner of a file can replace it.
    """
    with refused(f"see whose {path} is"):
        resolved = machine.resolve(path)
        way = list(dict.fromkeys([*reversed(path.parents), path, *reversed(resolved.parents), resolved]))
        for above, entry in zip(way, machine.entries(way), strict=True):
            exchanged = (entry.group_writes or entry.others_write) and not entry.sticky and entry.kind == "d"
            if entry.owner not in machine.trusted or exchanged:
                whose = "can be written by other accounts" if exchanged else "belongs to another account"
                raise HostError(
                    f"{above} {whose}, which could exchange what root keeps below it; name a directory that root owns "
                    "and all of "
                    "whose parent directories root owns, or run pgtrial as that account instead of root"
                )


def check_program(program: Path) -> None:
    """Raises HostError, with a sentence for the user, if the lab runs as root and another account could replace this
    program of this machine."""
    if (why := refusal_to_run(program)) is not None:
        raise HostError(why)
