"""A room: where the servers of one run of the lab are made on a machine, be it this one or another."""

from __future__ import annotations

from pathlib import Path

from pgtrial.machines.journal import HostJournal
from pgtrial.machines.machine import LOCAL, Command, Done, HostError, Machine
from pgtrial.model.errors import ArmError
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.templates import KeptCopy

_ACCOUNTS = ("postgres", "nobody")


class Room:
    """Directories of one run, the journal of its changes, and the user that servers run as.

    Its own directory is the lab's, or root's: the servers' account owns what is in the directories of its data, its
    sockets and its logs, and can neither exchange nor write anything beside them.
    """

    def __init__(self, machine: Machine, root: Path, label: str, account: str | None, sockets: Path) -> None:
        self.machine = machine
        self.label = label
        """What messages about its space call it."""
        self.root = root
        self.account = account
        """None: the user that the lab runs as, or logs in as."""
        self.kept: dict[KeptCopy, Path] = {}
        self.changes = HostJournal(root, machine)
        """Where a change of the machine is written down before it is made."""
        self.settled = 0
        """How often the machine was lost and came back."""
        self._sockets = sockets
        self._count = 0

    @property
    def larger(self) -> str:
        """What a user does where it is too small, for the end of a sentence."""
        return "name another folder as data"

    def hurry(self) -> None:
        """The user has interrupted the lab and waits for its end: a machine that does not answer is not waited for."""

    def directory(self, name: str) -> Path:
        """A fresh path, not yet made, on the file system of the templates."""
        self._count += 1
        return self.root / f"{self._count:03}-{name}"

    def socket_directory(self) -> Path:
        """A new directory for one server's Unix socket: short, and open to root and the servers' account alone."""
        self._count += 1
        return self.private_directory(self._sockets / str(self._count))

    def private_directory(self, path: Path) -> Path:
        """Make a directory that only the servers' account and root can enter, in one that is not the account's."""
        self.machine.mkdir(path, 0o700)
        self.own(path)
        return path

    def own(self, path: Path) -> None:
        """Give a path to the servers' account."""
        if self.account is not None:
            self.machine.chown(path, self.account)

    def run(self, command: Command, text_in: str | None = None) -> Done:
        """Run a command to its end as the servers' account. Raises HostTrouble."""
        return self.machine.run(command, text_in=text_in, user=self.account)

    def shell(self, script: str, *words: str | Path, text_in: str | None = None) -> str:
        """What a script prints that the servers' account runs. Raises HostError with the words of what failed."""
        done = self.run(["sh", "-c", script, "sh", *words], text_in)
        if done.status != 0:
            words_of_failure = " ".join((done.stderr or done.stdout).split())[:400] or f"status {done.status}"
            raise HostError(f"{self.machine.label}: {words_of_failure}")
        return done.stdout

    def write(self, path: Path, text: str) -> None:
        """Write a file that the servers' account alone can read."""
        self.shell('umask 077; cat > "$1"', path, text_in=text)

    def name_of(self, server: ServerBinaries) -> str:
        """What messages call a server: `PostgreSQL 18.6`, elsewhere with its host."""
        where = "" if self.machine is LOCAL else f" on {self.machine.label}"
        return f"PostgreSQL {server.version}{where}"


def servers_account(machine: Machine) -> str | None:
    """Where root would run servers, `postgres` or `nobody`; None: the own user. Raises ArmError if neither exists."""
    if not machine.root:
        return None
    for name in _ACCOUNTS:
        if machine.looked(["id", "-u", name]).status == 0:
            return name
    raise ArmError(
        f"PostgreSQL refuses to run as root and {machine.label} has neither a user postgres nor nobody: "
        "create one (useradd --system postgres) or use an ordinary user"
    )


_COPY = """
if cp --reflink=auto --help >/dev/null 2>&1
then exec cp --reflink=auto --sparse=never -a "$1" "$2"
else exec cp -Rp "$1" "$2"
fi
"""
"""GNU's cp shares blocks; the others copy. WAL files keep the blocks that they have in advance."""

_FULL = ("No space left", "quota exceeded")


def copy_directory(room: Room, source: Path, destination: Path, *, flush: bool = True) -> None:
    """Copy a tree of the servers' account with its modes. Raises ArmError, leaving nothing behind.

    The account copies it: whatever it exchanges before or meanwhile leads root nowhere.
    With `flush` this and all else that is dirty on the machine is on disk when it returns: neither the write-back of
    the copy nor what the trial before left behind may fall into the trial that follows.
    """
    machine = room.machine
    room.private_directory(destination)
    done = room.run(["sh", "-c", _COPY, "sh", f"{source}/.", destination])
    if done.status != 0:
        free = machine.free_bytes(destination.parent) / 1e6
        machine.remove_tree(destination)
        if is_full(done.stderr):
            raise ArmError(
                f"the disk is full: copying {source} to {destination.parent} failed with {free:,.0f} MB free; "
                f"free some space, lower the scale, or {room.larger}"
            )
        # cp says the same of each file
        words = " ".join(done.stderr.splitlines()[:1])
        raise ArmError(f"cannot copy {source} to {destination}: {words}; check the permissions and the disk")
    if flush:
        machine.tool(["sync"])


def is_full(complaint: str) -> bool:
    """Whether a program complains of a full disk."""
    return any(words in complaint for words in _FULL)


def move_wal(room: Room, data: Path, wal: Path, *, flush: bool) -> None:
    """Move the WAL of a cluster that is at rest to a directory of its own, and link to it. Raises ArmError."""
    old = data / "pg_wal"
    copy_directory(room, old, wal, flush=flush)
    try:
        room.shell('rm -rf "$1" && ln -s "$2" "$1"', old, wal)
    except HostError as error:
        raise ArmError(f"cannot move the WAL to {wal}: {error}") from None
