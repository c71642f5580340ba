"""A fresh copy of a data directory, with blocks that are shared where the file system can (reflink)."""

from __future__ import annotations

from pathlib import Path

from pgtrial.machines.machine import HostError
from pgtrial.model.errors import ArmError
from pgtrial.servers.room import Room

_COPY = """
if cp --reflink=auto --help >/dev/null 2>&1
then exec cp --reflink=auto --sparse=never -a "$1" "$2"
else exec cp -Rp "$1" "$2"
fi
"""
"""GNU's cp shares blocks; the others copy. WAL files keep the blocks that they have in advance."""

_FULL = ("No space left", "quota exceeded")


def copy_directory(room: Room, source: Path, destination: Path, *, flush: bool = True) -> None:
    """Copy a tree with owners and modes. Raises ArmError, leaving nothing behind.

    With `flush` this and all else that is dirty on the machine is on disk when it returns: neither the write-back of
    the copy nor what the trial before left behind may fall into the trial that follows.
    """
    machine = room.machine
    done = machine.run(["sh", "-c", _COPY, "sh", source, destination])
    if done.status != 0:
        free = machine.free_bytes(destination.parent) / 1e6
        machine.remove_tree(destination)
        if is_full(done.stderr):
            raise ArmError(
                f"the disk is full: copying {source} to {destination.parent} failed with {free:,.0f} MB free; "
                f"free some space, lower the scale, or {room.larger}"
            )
        # cp says the same of each file
        said = " ".join(done.stderr.splitlines()[:1])
        raise ArmError(f"cannot copy {source} to {destination}: {said}; check the permissions and the disk")
    if flush:
        machine.tool(["sync"])


def is_full(said: str) -> bool:
    """Whether a program complains of a full disk."""
    return any(words in said for words in _FULL)


def move_wal(room: Room, data: Path, wal: Path, *, flush: bool) -> None:
    """Move the WAL of a cluster that is at rest to a directory of its own, and link to it. Raises ArmError."""
    own = data / "pg_wal"
    copy_directory(room, own, wal, flush=flush)
    room.machine.remove_tree(own)
    try:
        room.machine.tool(["ln", "-s", wal, own])
    except HostError as error:
        raise ArmError(f"cannot move the WAL to {wal}: {error}") from None
