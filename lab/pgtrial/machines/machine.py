"""The interface of a machine that takes part, this one or another: it runs commands and handles files. Also the base
class of changes, each with its undo."""

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
"""The number of files of a tree that are removed at the same time."""

TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The directories of system tools, also for users whose PATH leaves out those of the administrator."""


Command = Sequence[str | Path]
"""A program and its arguments."""


class HostTrouble(PgtrialError):
    """A machine does not do what it is asked to: it refuses, or it is gone."""


class HostError(HostTrouble):
    """A machine that is there refused a change or the way back, or cannot run a command."""


class ChangedMeanwhile(HostError):
    """Somebody else has changed what pgtrial had changed, so it stays as it is, and there is nothing left to undo."""


class HostLost(HostTrouble):
    """A machine is gone: it cannot be reached, or it was restarted and nothing that ran there is left.

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
    """A file, directory or link: its kind as the first letter of `ls -l` (`d`, `-`, `l`), its owner, and who may write
    it."""

    kind: str
    owner: int
    group_writes: bool
    """True if a group other than root's may write it."""
    others_write: bool
    sticky: bool
    """True if in this directory each account can remove and rename only its own files."""

    @classmethod
    def of(cls, status: os.stat_result) -> Entry:
        """Returns the entry that the system's answer to stat describes."""
        return cls.shown(stat.filemode(status.st_mode), status.st_uid, status.st_gid)

    @classmethod
    def shown(cls, mode: str, owner: int, group: int) -> Entry:
        """Returns the entry that `ls -ln` describes: a mode such as `drwxr-xr-x`, with a `+` behind it if there is an
        access list, and the IDs of user and group."""
        group_writes = mode[5] == "w" and (group != 0 or mode[10:] == "+")
        return cls(mode[0], owner, group_writes, mode[8] == "w", mode[9] in "tT")


@dataclass(frozen=True)
class Done:
    """The result of a command. `status` is 128 + n if signal n ended it, as in a shell."""

    status: int
    stdout: str
    stderr: str


class Machine(Protocol):
    """A machine on which commands run and files lie. Paths are absolute, and are that machine's own.

    Tools speak English (LC_ALL=C) and are found in the administrator's directories too. Methods on files raise OSError
    with its subclasses, as those of Path do, and HostLost when the machine is gone.
    """

    label: str
    """The name in messages: `this machine`, or user@host."""
    way_to_root: str
    """The end of a sentence that says how the user gets `root` to be true: `run pgtrial as root`."""

    def __hash__(self) -> int:
        """Returns a hash of the object's identity: two machines are the same only if they are the same object."""
        return id(self)

    @property
    def root(self) -> bool:
        """True if commands and methods may change the system."""

    def run(
        self, command: Command, *, text_in: str | None = None, user: str | None = None, timeout_s: float | None = None
    ) -> Done:
        """Runs a command to its end in `/`, as root if `root` is true, or as another `user` of the machine. Without
        `text_in` its standard input is empty. Raises HostError only if it cannot be started or does not end in time,
        and HostLost."""

    def run_at_once(self, commands: Sequence[Command], user: str | None = None) -> list[Done]:
        """Runs commands that do not depend on each other, at the same time where the machine can, and returns how each
        ended. Raises what `run` raises."""
        return [self.run(command, user=user) for command in commands]

    def looked(self, command: Command, user: str | None = None) -> Done:
        """Runs a command that changes nothing, so that it can be repeated."""
        return self.run(command, user=user)

    def tool(self, command: Command) -> str:
        """Runs a system tool and returns what it prints. Raises HostError with the tool's message, or if it is not
        installed."""
        done = self.run(command)
        if done.status != 0:
            words = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            reason = "; ".join(words[:3]) or f"it ended with status {done.status} and said nothing"
            where = "" if self is LOCAL else f" on {self.label}"
            raise HostError(f"`{shlex.join(str(word) for word in command)}` failed{where}: {reason}")
        return done.stdout

    def read_text(self, path: Path) -> str:
        """Returns the text of a file. Bytes that are not UTF-8 are replaced."""

    def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Returns the texts of those files that exist and can be read, all with one request."""

    def read_from(self, path: Path, begin: int, user: str | None = None) -> bytes:
        """Returns the content of a file from byte `begin` on, as far as `user` may read it; empty if it cannot be
        read."""

    def write_text(self, path: Path, text: str, *, mode: int | None = None, durable: bool = False) -> None:
        """Writes a file: in place, as the kernel's files require, or `durable`, so that it is on disk as a whole or not
        at all."""

    def allocate(self, path: Path, size: int, *, sparse: bool = False) -> None:
        """Makes a new file of `size` bytes, with its blocks allocated or `sparse`."""

    def exists(self, path: Path) -> bool:
        """True if something exists at the path."""

    def mkdir(self, path: Path, mode: int = 0o755, *, parents: bool = False) -> None:
        """Makes a directory with exactly this mode. With `parents` those above it are made too, and it may exist
        already."""

    def rmdir(self, path: Path) -> None:
        """Removes an empty directory."""

    def remove_tree(self, path: Path) -> None:
        """Removes a directory with all that is in it, as far as possible. It need not exist."""

    def unlink(self, path: Path) -> None:
        """Removes a file. It need not exist."""

    def glob(self, pattern: str) -> list[Path]:
        """Returns the paths that match a pattern of `*`, `?` and `[...]`, sorted. A name that begins with a dot matches
        only a pattern with that dot."""

    def resolve(self, path: Path) -> Path:
        """Returns the path without symbolic links."""

    def free_bytes(self, path: Path) -> int:
        """Returns how many bytes an ordinary user can still write to the file system of a path."""

    def chown(self, path: Path, user: str) -> None:
        """Gives a path to a user and the user's group; a symbolic link itself, not its target."""

    def entries(self, paths: Sequence[Path]) -> list[Entry]:
        """Returns what is at each path, without following symbolic links. Raises OSError if a path does not exist."""

    @property
    def trusted(self) -> frozenset[int]:
        """The user IDs of the accounts whose files this machine's account trusts: root's and its own."""


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
        """Starts a child process that goes on, in a session of its own, so that Ctrl-C in the terminal reaches only the
        lab.

        The child gets only those variables of the lab's environment that a server needs. Raises OSError if it cannot be
        started, and HostError if the user does not exist.
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
        # where removing a file waits for the disk or the kernel, a thousand files in turn take seconds of each trial
        with suppress(OSError, RuntimeError), ThreadPoolExecutor(_REMOVED_AT_ONCE) as pool:  # or no thread can start
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
    """Returns the beginning of a file that the servers' account may have exchanged.

    Raises OSError, also for a link, a pipe or a device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)


def wait_or_kill(process: subprocess.Popen[Any], timeout_s: float) -> int:
    """Waits for the end of a process, and kills it after `timeout_s` seconds. Returns its status, negative for a
    signal."""
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
    """Starts a command and yields its process, which is killed if it has not ended by then. Raises HostError."""
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
        raise HostError(f"{error.filename} is not installed here; install the package that holds it") from None
    except OSError as error:
        raise HostError(f"{command[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            yield process
        finally:
            process.kill()  # nothing where it has ended


def _done(command: Command, user: str | None, returncode: int, output: str, errors: str) -> Done:
    """Returns how a command ended; a signal is 128 and its number, as in shells. Raises HostError if the program that
    changes to the user could not execute it."""
    if _as(user) and (failed := _NOT_EXECUTED.match(errors)):
        raise HostError(f"{command[0]} cannot be run: {failed[1]}")
    return Done(returncode if returncode >= 0 else 128 - returncode, output, errors)


def _remove_file(directory: int, name: str) -> None:
    """Removes a file of an open directory if that is possible."""
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _environment() -> dict[str, str]:
    """Returns the lab's environment for a program, without variables that are meant for the lab alone.

    PostgreSQL's programs would obey PG* variables, and its extensions those of libraries that the lab uses as well.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    path = f"{os.environ.get('PATH', '')}{os.pathsep}{TOOLS}"
    return {**kept, "LC_ALL": "C", "PATH": path}


_FOR_SERVERS = ("LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""The variables of the lab's environment that a server and programs of its account get. Tokens, keys and passwords of
the caller stay out of the environment of processes that run the functions of a dump or are another account's, and so
does HOME, where libpq would look for .pgpass."""


def _environment_of_servers() -> dict[str, str]:
    """Returns the environment of a server, and of programs of its account, that the lab starts on this machine."""
    return {name: value for name, value in _environment().items() if name in (*_FOR_SERVERS, "LC_ALL")}


_NOT_EXECUTED = re.compile(r"setpriv: failed to execute .*: (.*)\n$")


def _as(user: str | None) -> tuple[str, ...]:
    """Returns the words in front of a command that has to run as a user; none for the lab's own account. Raises
    HostError.

    If subprocess is given a user, Python copies its memory's page tables at each start, which takes milliseconds.
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
        raise HostError(f"there is no user {user} here") from None


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lies_in(path: Path, directory: Path) -> bool:
    """True if a path lies below a directory by its name, without `..`."""
    return ".." not in path.parts and path != directory and path.is_relative_to(directory)


class Change(Record, abc.ABC):
    """One change of a machine. Its fields are all that the undo needs, and can be written as JSON.

    A kind of change is a subclass and a line in the journal's list of kinds.
    """

    survives_reboot: ClassVar[bool] = False
    """True if the change is still there after a restart of the machine: a file is, a mount is not."""

    @abc.abstractmethod
    def make(self, machine: Machine) -> None:
        """Makes the change on the machine. Raises HostError, and may leave a part of the change for the undo."""

    @abc.abstractmethod
    def undo(self, machine: Machine) -> None:
        """Restores the state before the change. Also works if only a part of the change was made, or nothing, and if
        called twice. Raises HostError."""

    def is_of(self, run: Path) -> bool:
        """True if the change touches only what its kind may touch for a run with this directory: here, paths below
        it."""
        return all(lies_in(path, run) for _, path in self if isinstance(path, Path))

    @abc.abstractmethod
    def __str__(self) -> str:
        """Returns a few words for what is changed, such as `mount of ext4 at /x`."""
