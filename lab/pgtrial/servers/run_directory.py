"""The run directory: the directory of one run of the lab on a machine, be it the local one or another host. The run
makes its servers in it."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from pgtrial.machines.host_changes import HostJournal
from pgtrial.machines.machine import LOCAL, Command, Done, HostError, Machine
from pgtrial.model.errors import ArmError
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.templates import KeptCopy, StrippedCopy

_ACCOUNTS = ("postgres", "nobody")


class RunDirectory:
    """The directories of one run on a machine, the journal of its changes, and the account that servers run as.

    The run directory itself belongs to the lab's account, or to root. The servers' account owns only the directories of
    the servers' data, sockets and logs, and can neither replace nor write anything else in the run directory.
    """

    def __init__(self, machine: Machine, root: Path, label: str, account: str | None, sockets: Path) -> None:
        self.machine = machine
        self.label = label
        """The name of the run directory in messages about free space."""
        self.root = root
        self.account = account
        """The operating system account as which servers run. None stands for the account as which the lab runs or, on
        another host, logs in."""
        self.kept: dict[KeptCopy, Path] = {}
        self.stripped: dict[tuple[Path, int], list[StrippedCopy]] = {}
        """The remains of copies that trials have used, by the path and the inode number of their template
        (used_copies.py)."""
        self.changes = HostJournal(root, machine)
        """Makes and undoes changes of the machine, and records each change in the journal of undo of the run directory
        before it is made."""
        self.settled = 0
        """The number of times that the machine was lost and could be reached again."""
        self._sockets = sockets
        self._count = 0

    @property
    def larger(self) -> str:
        """The advice how to get more space, as the end of a sentence for the user."""
        return "name another folder as data"

    def hurry(self) -> None:
        """Stops waiting for a machine that does not answer, since the user has interrupted the lab and waits for its
        end."""

    def directory(self, name: str) -> Path:
        """Returns an unused path for a directory in the run directory, without making the directory. It is on the same
        file system as the templates."""
        self._count += 1
        return self.root / f"{self._count:03}-{name}"

    def socket_directory(self) -> Path:
        """Makes a new directory with a short path for the Unix socket of one server. Only root and the servers' account
        can enter it."""
        self._count += 1
        return self.private_directory(self._sockets / str(self._count))

    def private_directory(self, path: Path) -> Path:
        """Makes a directory that belongs to the servers' account and that only this account and root can enter. Its
        parent directory must not belong to that account."""
        self.machine.mkdir(path, 0o700)
        self.own(path)
        return path

    def own(self, path: Path) -> None:
        """Makes the servers' account the owner of a path."""
        if self.account is not None:
            self.machine.chown(path, self.account)

    def run(self, command: Command, text_in: str | None = None) -> Done:
        """Runs a command as the servers' account, and waits for its end. Raises HostTrouble."""
        return self.machine.run(command, text_in=text_in, user=self.account)

    def shell(self, script: str, *words: str | Path, text_in: str | None = None) -> str:
        """Runs a shell script as the servers' account, with `words` as its arguments, and returns its standard output.
        If it fails, raises HostError with its error message."""
        done = self.run(["sh", "-c", script, "sh", *words], text_in)
        if done.status != 0:
            words_of_failure = " ".join((done.stderr or done.stdout).split())[:400] or f"status {done.status}"
            raise HostError(f"{self.machine.label}: {words_of_failure}")
        return done.stdout

    def write(self, path: Path, text: str) -> None:
        """Writes a file that only the servers' account can read."""
        self.shell('umask 077; cat > "$1"', path, text_in=text)

    def name_of(self, server: ServerBinaries) -> str:
        """Returns the name of a server for messages: `PostgreSQL 18.6`, followed by the host if it is on another
        machine."""
        where = "" if self.machine is LOCAL else f" on {self.machine.label}"
        return f"PostgreSQL {server.version}{where}"


def servers_account(machine: Machine) -> str | None:
    """Returns the account as which servers run if the lab is root on the machine: `postgres` or `nobody`. Returns None
    if the lab is not root, so that servers run as the lab's own account. Raises ArmError if neither account exists."""
    if not machine.root:
        return None
    for name in _ACCOUNTS:
        if machine.looked(["id", "-u", name]).status == 0:
            return name
    raise ArmError(
        f"PostgreSQL refuses to run as root, and {machine.label} has neither a user postgres nor a user nobody: "
        "create one (useradd --system postgres), or do not use root"
    )


GNU_COPY = "cp --reflink=auto --sparse=never -a"
"""The command of GNU's cp that copies files with all their attributes. It shares the blocks of the files if the file
system supports that. WAL files keep their preallocated blocks (--sparse=never)."""

_COPY = f"""
if cp --reflink=auto --help >/dev/null 2>&1
then exec {GNU_COPY} "$@"
else exec cp -Rp "$@"
fi
"""
"""The script that copies files and directories to the last of its arguments, by GNU's cp or by another cp program."""

_MAKE = 'chmod "$1" "$4" && mkdir -m "$2" "$4/base" && ls -A "$3" && echo && ls -A "$3/base"'
"""The script that sets the mode of a cluster's copy, makes the directory `base` for its databases, and prints the names
in both directories of the original. It runs as the servers' account, since root must not follow symbolic links that
this account could have put there."""

_FULL = ("No space left", "quota exceeded", "the disk is full")


def copy_directory(run_directory: RunDirectory, source: Path, destination: Path) -> None:
    """Copies a directory tree of the servers' account, with the modes of its files. If that fails, removes the partial
    copy and raises ArmError.

    The copying runs as the servers' account, so that root does not follow symbolic links which this account could have
    put into the tree.
    """
    run_directory.private_directory(destination)
    check_copied(run_directory, source, destination, [run_directory.run(_copying(f"{source}/.", to=destination))])


def copy_cluster(run_directory: RunDirectory, source: Path, destination: Path) -> None:
    """Copies the data directory of a stopped cluster, with the same result as `copy_directory`. On this machine several
    processes share the work: one for each database and one for all other files. With two processors this halves the
    time for the thousand files of a cluster."""
    if run_directory.machine is not LOCAL or not (source / "base").is_dir():
        copy_directory(run_directory, source, destination)
        return
    run_directory.private_directory(destination)
    modes = [f"{stat.S_IMODE(path.lstat().st_mode):o}" for path in (source, source / "base")]
    made = run_directory.run(["sh", "-c", _MAKE, "sh", *modes, source, destination])
    check_copied(run_directory, source, destination, [made])
    others, databases = (names.splitlines() for names in made.stdout.split("\n\n"))
    parts = [_copying(*(source / name for name in others if name != "base"), to=destination)]
    parts += [_copying(source / "base" / name, to=destination / "base") for name in databases]
    check_copied(run_directory, source, destination, run_directory.machine.run_at_once(parts, run_directory.account))


def _copying(*sources: str | Path, to: Path) -> Command:
    return ["sh", "-c", _COPY, "sh", *sources, to]


def check_copied(run_directory: RunDirectory, source: Path, destination: Path, copies: Sequence[Done]) -> None:
    """Raises ArmError if one of the processes that made a copy has failed, after removing the incomplete copy."""
    if not (failed := [done for done in copies if done.status != 0]):
        return
    machine = run_directory.machine
    free = machine.free_bytes(destination.parent) / 1e6
    machine.remove_tree(destination)
    if any(is_full(done.stderr) for done in failed):
        raise ArmError(
            f"the disk is full: copying {source} to {destination.parent} failed with {free:,.0f} MB free; "
            f"free some space, lower the scale, or {run_directory.larger}"
        )
    # cp prints the same message for each file
    words = " ".join(failed[0].stderr.splitlines()[:1])
    raise ArmError(f"cannot copy {source} to {destination}: {words}; check the permissions and the disk")


def is_full(complaint: str) -> bool:
    """True if the error message of a program, or of pgtrial, says that the disk is full."""
    return any(words in complaint for words in _FULL)


def move_wal(run_directory: RunDirectory, data: Path, wal: Path) -> None:
    """Moves the WAL of a stopped cluster to the directory `wal`, and replaces pg_wal by a symbolic link to it. Raises
    ArmError."""
    old = data / "pg_wal"
    copy_directory(run_directory, old, wal)
    try:
        run_directory.shell('rm -rf "$1" && ln -s "$2" "$1"', old, wal)
    except HostError as error:
        raise ArmError(f"cannot move the WAL to {wal}: {error}") from None
