"""Checks that only root and the lab's own account could have put something where it is: nothing else is obeyed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgtrial.files.trust import refusal_to_run
from pgtrial.machines.machine import HostError, Machine, refused


def check_own(machine: Machine, paths: Sequence[Path], kind: str = "d") -> None:
    """Raises HostError, with a sentence, unless each path is a directory, or of another `kind`, that no other account
    can write.

    A symbolic link is refused. Raises FileNotFoundError if a path does not exist.
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
    """Raises HostError, with a sentence, if another account could exchange the directory at a path or one above it.

    In a directory with the sticky bit, such as /tmp, only the owner of a file can exchange it.
    """
    with refused(f"see whose {path} is"):
        resolved = machine.resolve(path)
        way = list(dict.fromkeys([*reversed(path.parents), path, *reversed(resolved.parents), resolved]))
        for above, entry in zip(way, machine.entries(way), strict=True):
            exchanged = (entry.group_writes or entry.others_write) and not entry.sticky and entry.kind == "d"
            if entry.owner not in machine.trusted or exchanged:
                whose = "can be written by other accounts" if exchanged else "belongs to another account"
                raise HostError(
                    f"{above} {whose}, which could exchange what root keeps below it; name a directory that root owns, "
                    "with all above it, or work as that account in place of root"
                )


def check_program(program: Path) -> None:
    """Raises HostError, with a sentence, if root would run a program here that another account could exchange."""
    if (why := refusal_to_run(program)) is not None:
        raise HostError(why)
