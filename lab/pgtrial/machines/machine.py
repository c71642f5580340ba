"""The interface of a machine that takes part in a study, be it the local one or a remote host: it runs commands and
handles files. The module also has the local machine, and the base class of changes of a machine, each of which can be
undone."""

from __future__ import annotations

import abc
import errno
import glob
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

from pgtrial.model.errors import PgtrialError
from pgtrial.model.records import Record

_REMOVED_AT_ONCE = 16
"""The number of files that are removed at the same time when a directory tree is removed."""

TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The directories of system tools. They are added to PATH, since the PATH of ordinary users may lack the directories of
the administrator's tools."""


Command = Sequence[str | Path]
"""A program and its arguments."""


class HostTrouble(PgtrialError):
    """The base class of errors of a machine: it refuses what pgtrial asks of it (HostError), or it is gone
    (HostLost)."""


class HostError(HostTrouble):
    """Raised when a machine that can be reached refuses a change or its undo, or cannot run a command."""


class ChangedMeanwhile(HostError):
    """Raised when somebody else has changed a value that pgtrial had changed before. The value stays as it is, and
    pgtrial has nothing left to undo."""


class HostLost(HostTrouble):
    """Raised when a machine is gone: it cannot be reached, or it was restarted and nothing that ran there is left.

    Not a HostError: code that handles a refused change must not catch a lost machine.
    """


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turns an OSError about a file into a HostError such as `cannot make /x: Permission denied`."""
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot {what}: {error.strerror}") from None


@dataclass(frozen=True)
class Entry:
    """A file, directory or link: its kind, written as the first letter of `ls -l` (`d`, `-`, `l`), its owner, and who
    may write to it."""

    kind: str
    owner: int
    group_writes: bool
    """True if a group other than root's may write to it."""
    others_write: bool
    sticky: bool
    """True if the entry is a directory with the sticky bit, in which each account can remove and rename only its own
    files."""

    @classmethod
    def of(cls, status: os.stat_result) -> Entry:
        """Returns the entry that a result of stat describes."""
        return cls.shown(stat.filemode(status.st_mode), status.st_uid, status.st_gid)

    @classmethod
    def shown(cls, mode: str, owner: int, group: int) -> Entry:
        """Returns the entry that a line of `ls -ln` describes. `mode` is a text such as `drwxr-xr-x`, followed by `+`
        if the file has an access control list; `owner` and `group` are numeric IDs."""
        group_writes = mode[5] == "w" and (group != 0 or mode[10:] == "+")
        return cls(mode[0], owner, group_writes, mode[8] == "w", mode[9] in "tT")


@dataclass(frozen=True)
class Done:
    """The result of a command that has ended. `status` is its exit status, or 128 + n if signal n ended it, as in a
    shell."""

    status: int
    stdout: str
    stderr: str


class Machine(Protocol):
    """A machine on which pgtrial runs commands and handles files. All paths are absolute paths on that machine.

    System tools are called with LC_ALL=C, so that their messages are in English, and are also looked for in the
    directories of the administrator's tools. Methods on files raise OSError or a subclass, like the methods of
    pathlib.Path, and HostLost when the machine is gone.
    """

    label: str
    """The machine's name in messages: `this machine`, or user@host."""
    way_to_root: str
    """The advice on how the user can make `root` true, as the end of a sentence: `run pgtrial as root`."""

    def __hash__(self) -> int:
        """Returns a hash of the object's identity, since two machines are equal only if they are the same object."""
        return id(self)

    @property
    def root(self) -> bool:
        """True if commands and methods run with the rights of root, so that they can change the system."""

    def run(
        self, command: Command, *, text_in: str | None = None, user: str | None = None, timeout_s: float | None = None
    ) -> Done:
        """Runs a command in the directory `/`, and waits for its end. The command runs as root if `root` is true, or as
        another `user` of the machine. Without `text_in` its standard input is empty.

        A command that fails raises no error: see the status. Raises HostError if the command cannot be started or does
        not end within `timeout_s`, and HostLost.
        """

    def run_at_once(self, commands: Sequence[Command], user: str | None = None) -> list[Done]:
        """Runs commands that do not depend on each other, all at the same time if the machine supports that, and
        returns the result of each. Raises the same errors as `run`."""
        return [self.run(command, user=user) for command in commands]

    def looked(self, command: Command, user: str | None = None) -> Done:
        """Runs a command that changes nothing on the machine, so that it can be repeated after a lost connection."""
        return self.run(command, user=user)

    def tool(self, command: Command) -> str:
        """Runs a system tool and returns its standard output. Raises HostError with the tool's message if the tool
        fails, or if it is not installed."""
        done = self.run(command)
        if done.status != 0:
            words = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            reason = "; ".join(words[:3]) or f"it exited with status {done.status} and printed nothing"
            where = "" if self is LOCAL else f" on {self.label}"
            raise HostError(f"`{shlex.join(str(word) for word in command)}` failed{where}: {reason}")
        return done.stdout

    def read_text(self, path: Path) -> str:
        """Returns the text of a file. Bytes that are not UTF-8 are replaced."""

    def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Returns the texts of all files among `paths` that exist and can be read. On a remote machine this takes one
        request for all files."""

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        """Returns the content of a file from byte `begin` on, read with the rights of `user`. Returns no bytes if the
        file cannot be read."""

    def write_text(self, path: Path, text: str, *, mode: int | None = None, durable: bool = False) -> None:
        """Writes a file in place, as the kernel's files require. With `durable`, writes a new file, flushes it and
        renames it, so that after a crash either the whole text is on disk or the former file."""

    def allocate(self, path: Path, size: int, *, sparse: bool = False) -> None:
        """Makes a new file of `size` bytes. Its disk blocks are allocated at once, unless it is `sparse`."""

    def exists(self, path: Path) -> bool:
        """True if something exists at the path."""

    def mkdir(self, path: Path, mode: int = 0o755, *, parents: bool = False) -> None:
        """Makes a directory with exactly this mode, whatever the umask is. With `parents`, missing parent directories
        are made too, and the directory itself may exist already."""

    def rmdir(self, path: Path) -> None:
        """Removes an empty directory."""

    def remove_tree(self, path: Path) -> None:
        """Removes a directory with all files in it. Raises no error for files that cannot be removed, or if the
        directory does not exist."""

    def unlink(self, path: Path) -> None:
        """Removes a file, if it exists."""

    def glob(self, pattern: str) -> list[Path]:
        """Returns the sorted paths that match a pattern with the wildcards `*`, `?` and `[...]`. As in a shell, a name
        that begins with a dot matches only a pattern that begins with a dot."""

    def resolve(self, path: Path) -> Path:
        """Returns the path without symbolic links."""

    def free_bytes(self, path: Path) -> int:
        """Returns the free space for an ordinary user on the file system of a path, in bytes."""

    def chown(self, path: Path, user: str) -> None:
        """Makes a user and the user's group the owners of a path. If the path is a symbolic link, the link changes its
        owner and not its target."""

    def entries(self, paths: Sequence[Path]) -> list[Entry]:
        """Returns kind, owner and rights of the file at each path, without following symbolic links. Raises OSError if
        a path does not exist."""

    @property
    def trusted(self) -> frozenset[int]:
        """The user IDs of the accounts whose files pgtrial trusts on this machine: root, and the account as which
        pgtrial works there."""


class Local(Machine):
    """The machine on which the lab runs."""

    label = "this machine"
    way_to_root = "run pgtrial as root"

    @property
    def root(self) -> bool:
        """True if the lab runs as root."""
        return os.geteuid() == 0

    def run(
        self, command: Command, *, text_in: str | None = None, user: str | None = None, timeout_s: float | None = None
    ) -> Done:
        with _running(command, user, subprocess.DEVNULL if text_in is None else subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(text_in, timeout_s)
            except subprocess.TimeoutExpired:
                words = shlex.join(map(str, command))
                raise HostError(f"`{words}` did not end within {timeout_s:g} s") from None
        return _done(command, user, process.returncode, output, errors)

    def run_at_once(self, commands: Sequence[Command], user: str | None = None) -> list[Done]:
        with ExitStack() as stack:
            running = [stack.enter_context(_running(command, user)) for command in commands]
            printed = [process.communicate() for process in running]
        return [
            _done(command, user, process.returncode, output, errors)
            for command, process, (output, errors) in zip(commands, running, printed, strict=True)
        ]

    def begin(self, command: Command, output: IO[bytes] | int, user: str | None = None) -> subprocess.Popen[bytes]:
        """Starts a child process and returns without waiting for its end. The child has a session of its own, so that
        Ctrl-C in the terminal reaches only the lab.

        The child gets only those variables of the lab's environment that a server needs. Raises OSError if the program
        cannot be started, and HostError if the user does not exist.
        """
        return subprocess.Popen(
            [*_as(user), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
            env=_environment_of_servers(),
        )

    def read_text(self, path: Path) -> str:
        return path.read_text(encoding="utf-8", errors="replace")

    def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
        texts = {}
        for path in paths:
            with suppress(OSError):
                texts[path] = self.read_text(path)
        return texts

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        words = ["tail", "-c", f"+{begin + 1}", str(path)]
        return subprocess.run([*_as(user), *words], capture_output=True, check=False, cwd="/").stdout

    def write_text(self, path: Path, text: str, *, mode: int | None = None, durable: bool = False) -> None:
        target = path.with_name(f".{path.name}.new") if durable else path
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666 if mode is None else 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(text)
            file.flush()
            if durable:
                os.fsync(descriptor)
        if durable:
            target.replace(path)
            _sync(path.parent)

    def allocate(self, path: Path, size: int, *, sparse: bool = False) -> None:
        with path.open("xb") as file:
            if sparse:
                file.truncate(size)
            else:
                os.posix_fallocate(file.fileno(), 0, size)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def mkdir(self, path: Path, mode: int = 0o755, *, parents: bool = False) -> None:
        if parents and path.is_dir():
            return
        path.mkdir(mode=mode, parents=parents)
        path.chmod(mode)  # mkdir's mode is limited by the umask

    def rmdir(self, path: Path) -> None:
        path.rmdir()

    def remove_tree(self, path: Path) -> None:
        # removing a file can wait for the disk or the kernel, so removing a thousand files one by one takes seconds of
        # each trial
        with (
            suppress(OSError, RuntimeError),
            ThreadPoolExecutor(_REMOVED_AT_ONCE) as pool,
        ):  # RuntimeError: no thread can start
            for _, _, files, descriptor in os.fwalk(path, topdown=False):
                list(pool.map(partial(_remove_file, descriptor), files))
        shutil.rmtree(path, ignore_errors=True)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def glob(self, pattern: str) -> list[Path]:
        return sorted(Path(name) for name in glob.glob(pattern))

    def resolve(self, path: Path) -> Path:
        return Path(os.path.realpath(path))

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free

    def chown(self, path: Path, user: str) -> None:
        entry = _entry(user)
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)

    def entries(self, paths: Sequence[Path]) -> list[Entry]:
        return [Entry.of(path.lstat()) for path in paths]

    @property
    def trusted(self) -> frozenset[int]:
        return frozenset({0, os.geteuid()})


LOCAL = Local()


_MOST_BYTES = 65536


def read_of_others(path: Path) -> str:
    """Returns the beginning of a file that the servers' account could have replaced by something else.

    Raises OSError if the file cannot be read, or if it is a symbolic link, a pipe or a device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)


def wait_or_kill(process: subprocess.Popen[Any], timeout_s: float) -> int:
    """Waits for a process to end, and kills it if it has not ended after `timeout_s` seconds. Returns its exit status;
    if a signal ended it, the negative number of the signal."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


_OWN_VARIABLES = ("PG", "OPENBLAS_", "POLARS_")


@contextmanager
def _running(
    command: Command, user: str | None, standard_input: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Starts a command and yields its process. On exit from the context the process is killed if it still runs. Raises
    HostError."""
    try:
        process = subprocess.Popen(
            [*_as(user), *map(str, command)],
            stdin=standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd="/",
            # another account can read the environment of its own processes, so it must hold no secrets
            env=_environment() if user is None else _environment_of_servers(),
        )
    except FileNotFoundError as error:
        raise HostError(
            f"the program {error.filename} is not installed on this machine; install the package that contains it"
        ) from None
    except OSError as error:
        raise HostError(f"{command[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            yield process
        finally:
            process.kill()  # has no effect if the process has ended


def _done(command: Command, user: str | None, returncode: int, output: str, errors: str) -> Done:
    """Returns the result of a command that has ended; if a signal ended it, the status is 128 plus the signal's number,
    as in a shell. Raises HostError if setpriv, which changes to `user`, could not execute the command."""
    if _as(user) and (failed := _NOT_EXECUTED.match(errors)):
        raise HostError(f"{command[0]} cannot be run: {failed[1]}")
    return Done(returncode if returncode >= 0 else 128 - returncode, output, errors)


def _remove_file(directory: int, name: str) -> None:
    """Removes a file of a directory, which is given as an open file descriptor. Ignores errors."""
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _environment() -> dict[str, str]:
    """Returns the lab's environment for a program that the lab starts, without variables that are meant for the lab
    alone.

    PostgreSQL's programs would obey the PG* variables, and PostgreSQL's extensions would obey the variables of
    libraries that the lab uses too, such as OpenBLAS.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    path = f"{os.environ.get('PATH', '')}{os.pathsep}{TOOLS}"
    return {**kept, "LC_ALL": "C", "PATH": path}


_FOR_SERVERS = ("LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""The variables of the lab's environment that a server gets, and programs that run as the servers' account. All others
are left out: such a process may run functions from somebody's dump or belong to another account, and must not see
tokens, keys and passwords of the caller. HOME is left out too, since libpq would look there for .pgpass."""


def _environment_of_servers() -> dict[str, str]:
    """Returns the environment for a server that the lab starts on this machine, and for programs that the lab runs as
    the servers' account."""
    return {name: value for name, value in _environment().items() if name in (*_FOR_SERVERS, "LC_ALL")}


_NOT_EXECUTED = re.compile(r"setpriv: failed to execute .*: (.*)\n$")


def _as(user: str | None) -> tuple[str, ...]:
    """Returns the words to put in front of a command that has to run as a user: a call of setpriv, or nothing for the
    lab's own account. Raises HostError.

    The argument `user` of subprocess is not used, since with it Python forks with a copy of its page tables, which
    takes milliseconds for each command.
    """
    entry = None if user is None else _entry(user)
    if entry is None or entry.pw_uid == os.geteuid():
        return ()
    if os.geteuid() != 0:
        raise HostError(f"only root may run commands as the user {user}; run pgtrial as root")
    return "setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"


def _entry(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise HostError(f"there is no user {user} on this machine") from None


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lies_in(path: Path, directory: Path) -> bool:
    """True if a path lies below a directory, judged by the names alone. A path that contains `..` does not count."""
    return ".." not in path.parts and path != directory and path.is_relative_to(directory)


class Change(Record, abc.ABC):
    """One change of a machine. Its fields contain everything that the undo needs, and can be written as JSON.

    Each kind of change is a subclass, and has a line in `KINDS` of host_changes.py.
    """

    survives_reboot: ClassVar[bool] = False
    """True if the change is still in effect after a restart of the machine. A file that was made is, a mount is not."""

    @abc.abstractmethod
    def make(self, machine: Machine) -> None:
        """Makes the change on the machine. If it raises HostError, a part of the change may have been made, so that the
        caller has to call `undo`."""

    @abc.abstractmethod
    def undo(self, machine: Machine) -> None:
        """Restores the state before the change. Also works if only a part of the change was made or nothing, and if it
        is called twice. Raises HostError."""

    def is_of(self, run: Path) -> bool:
        """True if the change touches only what a change of its kind may touch in a run of pgtrial whose directory is
        `run`. In this base class, these are paths below that directory."""
        return all(lies_in(path, run) for _, path in self if isinstance(path, Path))

    @abc.abstractmethod
    def __str__(self) -> str:
        """Returns a short description of the change for messages, such as `mount of ext4 at /x`."""
