"""A machine that pgtrial drives through a POSIX shell: it runs commands and handles files by /bin/sh and the tools that
all Unix systems have.

The module also determines whether a machine was restarted between two moments.
"""

from __future__ import annotations

import abc
import errno
import os
import re
import secrets
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from pgtrial.machines.machine import TOOLS, Command, Done, Entry, HostError, Machine
from pgtrial.model.resources import filled, resource

_OURS = "pgtrial: "
"""The beginning of the error message of a script of pgtrial that cannot run a command. The script then exits with
status 127, as a shell does for an unknown command."""
_NOT_STARTED = 127

_REASONS = {
    **{os.strerror(number): number for number in errno.errorcode},
    # messages of shells about a redirection, and of tools that do not use the system's messages
    "Directory nonexistent": errno.ENOENT,
    "nonexistent": errno.ENOENT,
    "cannot overwrite existing file": errno.EEXIST,
    "is a directory": errno.EISDIR,
}
_REMOVE_TREE = resource("remove_tree.sh", __package__)
_WILD = re.compile(r"(\*|\?|\[[^]]+])")
_LISTED = re.compile(r"[-a-z]\S{9,10}\s+\d+\s+\d+\s+\d+\s")
_FREE = re.compile(r"\s\d+\s+-?\d+\s+(-?\d+)\s+(?:\d+%|-)\s+/")


class PosixMachine(Machine):
    """A machine on which pgtrial runs scripts by `/bin/sh`. With `sudo`, actions that need the rights of root are
    carried out by `sudo -n`.

    Scripts are passed on the shell's standard input. Therefore pgtrial need not quote them for the account's login
    shell, which may be of any kind, and their text does not appear in the list of processes.
    """

    way_to_root = "log in as root, or write sudo = true"

    def __init__(self, *, sudo: bool = False) -> None:
        self._sudo = sudo

    @abc.abstractmethod
    def sh(self, script: str, *, timeout_s: float | None = None) -> Done:
        """Runs `exec /bin/sh -s` as the account that is logged in, with the script on its standard input.

        Bytes of the output that are not UTF-8 are replaced. Raises HostLost, and HostError if the script does not end
        within `timeout_s`.
        """

    @property
    def root(self) -> bool:
        """True if commands run as root. With sudo, pgtrial assumes that they do; if sudo refuses, the command raises
        HostError."""
        return self._sudo or self._login[0] == "0"

    def run(
        self, command: Command, *, text_in: str | None = None, user: str | None = None, timeout_s: float | None = None
    ) -> Done:
        words = [str(word) for word in command]
        program = shlex.quote(words[0])
        there = f"command -v {program} >/dev/null 2>&1 || give_up {shlex.quote(f'{words[0]} is not installed')}"
        done = self._as(user, f"{there}\n{_fed(shlex.join(words), text_in)}", timeout_s)
        if done.status == _NOT_STARTED and _OURS in done.stderr:
            raise HostError(f"{done.stderr.rpartition(_OURS)[2].strip()} on {self.label}")
        return done

    def read_text(self, path: Path) -> str:
        """Returns the text of a file. The login's account reads it; only if that account is not permitted to, root
        reads it by sudo."""
        reading = f"cat {_quoted(path)}"
        try:
            return _checked(self.sh(_script(reading)), path)
        except PermissionError:
            if not self._sudo:
                raise
        return self._file(reading, path)

    def read_many(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Returns the texts of all files among `paths` that exist and can be read. This takes one round trip, or two if
        root has to read some of them."""
        mark = secrets.token_hex(8)
        reading = _reading(paths, mark)
        done = self.sh(_script(reading))
        texts = _parted(done.stdout, mark, paths)
        if self._sudo and "Permission denied" in done.stderr:
            denied = [path for path in paths if f"{path}: Permission denied" in done.stderr]
            texts |= _parted(self._as(None, _reading(denied, mark)).stdout, mark, denied)
        return texts

    def write_text(self, path: Path, text: str, *, mode: int | None = None, durable: bool = False) -> None:
        target = path.with_name(f".{path.name}.new") if durable else path
        at, steps, then = _quoted(target), [], ""
        if durable:
            steps.append(f"rm -f {at}")
            # some systems have a sync that ignores file names and flushes everything, which is sufficient too
            then = f" && sync {at} && mv -f {at} {_quoted(path)} && sync {_quoted(path.parent)}"
        if mode is not None:
            steps.append(f"(umask 077; : >> {at}) && chmod {mode:04o} {at} || exit")
        self._file("\n".join([*steps, _fed(f"tee {at} >/dev/null", text, then)]), path)

    def allocate(self, path: Path, size: int, *, sparse: bool = False) -> None:
        at = _quoted(path)
        fill = (
            f"dd if=/dev/null of={at} bs=1 count=0 seek={size}"
            if sparse
            else f"fallocate -l {size} {at} 2>/dev/null || head -c {size} /dev/zero > {at}"
        )
        self._file(f"(set -C; : > {at}) || exit\n{fill}", path)

    def exists(self, path: Path) -> bool:
        # the script prints its answer, since an exit status could also stem from a failure of the shell
        return self._file(f"[ -e {_quoted(path)} ] && echo yes || echo no", path) == "yes\n"

    def mkdir(self, path: Path, mode: int = 0o755, *, parents: bool = False) -> None:
        at = _quoted(path)
        make = f"[ -d {at} ] || mkdir -p -m {mode:04o} {at}" if parents else f"mkdir -m {mode:04o} {at}"
        self._file(make, path)

    def rmdir(self, path: Path) -> None:
        self._file(f"rmdir {_quoted(path)}", path)

    def remove_tree(self, path: Path) -> None:
        self._as(None, f"set -- {_quoted(path)}\n{_REMOVE_TREE}")

    def unlink(self, path: Path) -> None:
        self._file(f"rm -f {_quoted(path)}", path)

    def glob(self, pattern: str) -> list[Path]:
        parts = _WILD.split(pattern)
        words = "".join(part if number % 2 else shlex.quote(part) for number, part in enumerate(parts) if part)
        show = """if [ -e "$each" ] || [ -L "$each" ]; then printf '%s\\000' "$each"; fi"""
        listed = self._file(f"for each in {words}; do {show}; done", Path(pattern))
        return sorted(Path(name) for name in listed.split("\0") if name)

    def resolve(self, path: Path) -> Path:
        at, parent, name = _quoted(path), _quoted(path.parent), shlex.quote(path.name)
        absent = f"""{{ cd {parent} 2>/dev/null && here=$(pwd -P) && printf '%s/%s\\n' "${{here%/}}" {name}; }}"""
        file = f"realpath {at} 2>/dev/null || readlink -f {at} 2>/dev/null || {absent} || printf '%s\\n' {at}"
        return Path(self._file(f"if [ -d {at} ]; then cd {at} && pwd -P; else {file}; fi", path).removesuffix("\n"))

    def free_bytes(self, path: Path) -> int:
        listed = self._file(f"df -Pk {_quoted(path)}", path)
        free = _FREE.search(listed)
        if free is None:
            raise HostError(f"df on {self.label} does not print the free space at {path}: {' '.join(listed.split())}")
        return int(free[1]) * 1024

    def chown(self, path: Path, user: str) -> None:
        name = shlex.quote(user)
        self._file(f'chown -h {name}:"$(id -g {name})" {_quoted(path)}', path)

    def entries(self, paths: Sequence[Path]) -> list[Entry]:
        listed = self._file("\n".join(f"ls -ldn {_quoted(path)} || exit" for path in paths), paths[0])
        shown = [line.split(None, 4)[:4] for line in listed.splitlines() if _LISTED.match(line)]
        if len(shown) != len(paths):
            raise OSError(errno.EIO, f"ls on {self.label} does not print its owner", str(paths[0]))
        return [Entry.shown(mode, int(owner), int(group)) for mode, _, owner, group in shown]

    @property
    def trusted(self) -> frozenset[int]:
        return frozenset({0, int(self._login[0])})

    def _file(self, body: str, path: Path) -> str:
        """Runs shell commands that handle a file, as root if possible, and returns their standard output. Raises
        OSError with the file's path."""
        return _checked(self._as(None, body), path)

    def _as(self, user: str | None, body: str, timeout_s: float | None = None) -> Done:
        """Runs shell commands as a user; with None as root if possible, else as the login's account. Raises
        HostError."""
        done = self.sh(self.script_of(user, body), timeout_s=timeout_s)
        if done.status != 0 and self._sudo and "sudo" in done.stderr:
            self._check_sudo()
        return done

    def script_of(self, user: str | None, body: str) -> str:
        """Returns a script that runs shell commands as a user; with None as root if possible, else as the login's
        account. Raises HostError."""
        return _script(self._changed(user, body))

    def _changed(self, user: str | None, body: str) -> str:
        """Returns the shell text that runs these commands as the user, by sudo or su if another account is logged
        in."""
        if self._sudo:
            who = f" -u {shlex.quote(user)}" if user is not None else ""
            return _known(user) + _fed(f"sudo -n{who} /bin/sh -s", _script(body))
        if user is None or self._login[1] == user:
            return body
        if not self.root:
            raise HostError(f"only root may run commands as the user {user} on {self.label}; {self.way_to_root}")
        # root's own shell may be csh, so it gets only a command that every shell understands
        return _known(user) + _fed(f"SHELL=/bin/sh su -m {shlex.quote(user)} -c 'exec /bin/sh -s'", _script(body))

    @cached_property
    def _login(self) -> tuple[str, str]:
        """The user ID and the name of the account that is logged in."""
        number, name = _checked(self.sh(_script("id -u\nid -un")), Path("/")).split()
        return number, name

    def _check_sudo(self) -> None:
        tried = self.sh(_script("sudo -n true"))
        if tried.status != 0:
            words = " ".join(tried.stderr.split()) or "it said nothing"
            raise HostError(
                f"sudo on {self.label} does not make {self._login[1]} root without a password ({words}); allow that "
                "in its sudoers (NOPASSWD: ALL), or log in as root"
            )


def _script(body: str) -> str:
    """Returns the script that runs shell commands. They are one compound command `{ ... }`, so that a shell whose input
    is cut off in the middle runs none of them."""
    return (
        f'{{\nPATH="$PATH:{TOOLS}" LC_ALL=C\nexport PATH LC_ALL\n'
        f'give_up() {{ printf "{_OURS}%s\\n" "$1" >&2; exit {_NOT_STARTED}; }}\ncd /\n{body}\nexit\n}}\n'
    )


def _fed(command: str, text: str | None, then: str = "") -> str:
    """Returns the shell text that runs a command with `text` as its standard input; without `text` the input is empty.
    `then` is appended to the command line; it begins with `&&`, so that it runs only if the command succeeds."""
    if not text:
        return f"{command} </dev/null{then}"
    if not text.endswith("\n"):
        return f"printf %s {shlex.quote(text)} | {command}{then}"
    end = f"end-{secrets.token_hex(8)}"
    return f"{command} <<'{end}'{then}\n{text}{end}\n"


def _known(user: str | None) -> str:
    if user is None:
        return ""
    name = shlex.quote(user)
    return f"id -u {name} >/dev/null 2>&1 || give_up {shlex.quote(f'there is no user {user}')}\n"


def _reading(paths: Sequence[Path], mark: str) -> str:
    """Returns the shell commands that print each file between a line with its number and a line that ends it. The
    second line is missing if the file cannot be read."""
    return "\n".join(
        f"printf '\\n{mark} {number}\\n'; cat {_quoted(path)} && printf '\\n{mark} end\\n'"
        for number, path in enumerate(paths)
    )


def _parted(text: str, mark: str, paths: Sequence[Path]) -> dict[Path, str]:
    parts = [part.partition("\n") for part in text.split(f"\n{mark} ")[1:]]
    return {
        paths[int(name)]: content
        for (name, _, content), (following, _, _) in pairwise(parts)
        if name != "end" and following == "end"
    }


def _checked(done: Done, path: Path) -> str:
    """Returns the standard output of a command. If the command failed, raises an OSError about `path` with the error
    number that fits the command's message."""
    if done.status == 0:
        return done.stdout
    lines = done.stderr.strip().splitlines()
    words = lines[-1].rpartition(": ")[2] if lines else f"a shell ended with status {done.status}"
    raise OSError(_REASONS.get(words, errno.EIO), words, str(path))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""The file with the boot ID: a text that differs for each boot of a Linux kernel (random(4)), and is the same in all
containers."""

ASK_START = filled(resource("start.sh", __package__), tools=TOOLS, boot_id=BOOT_ID)
"""A script that prints an identification of the machine's present boot. Linux, newer FreeBSD (where only `sysctl -x`
prints it) and macOS have an ID for each boot. On other systems the script prints kern.boottime and the time of the day:
if the clock is set, both change by the same amount, so that their difference stays right."""

_SINCE = re.compile(r"\{ sec = (\d+),")
"""The boot time as FreeBSD and DragonFly print it: `{ sec = 1778631299, usec = 929665 } Wed May 13 02:14:59 2026`."""


def boot_id(machine: Machine) -> str | None:
    """Returns the ID of the machine's present boot, which changes with each restart; None if the system has no file
    with such an ID."""
    with suppress(OSError):
        return machine.read_text(Path(BOOT_ID)).strip()
    return None


@dataclass(frozen=True)
class Start:
    """One boot of a machine, as the machine reported it. `name` is the boot's ID. On systems without such IDs, the boot
    is identified by the seconds since it began, `age_s`, at the time `seen_s` of the lab's clock."""

    name: str
    age_s: int | None = None
    seen_s: float = 0.0

    def is_same(self, later: Start) -> bool:
        """True if the machine has not been restarted between this report and a later one.

        On systems without IDs the ages are compared. Without a restart, the second age is the first age plus the time
        between the reports. After a restart it is less than the time between the reports. Since the clocks of the two
        machines may run at slightly different speeds, the limit lies halfway: the time between the reports plus half of
        the first age.
        """
        if self.age_s is None or later.age_s is None:
            return self.name == later.name
        return later.age_s >= later.seen_s - self.seen_s + self.age_s / 2


def parse_start(printed: str, seen_s: float) -> Start | None:
    """Returns the boot that the output of the script ASK_START describes; None if the system reported none. `seen_s` is
    the time of the lab's clock at which the output arrived."""
    name, _, now = " ".join(printed.split()).partition(" now ")
    if (since := _SINCE.match(name)) is not None:
        return Start(name, int(now) - int(since[1]), seen_s)
    return Start(name) if name else None


def now_s() -> float:
    """Returns the time of the clock by which the lab measures how long a boot lasts, in seconds. If the system has such
    a clock, it also advances while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
