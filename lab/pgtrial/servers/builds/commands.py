"""Runs the commands of a build one after the other. Reports the progress, the estimated remaining time, and the error
message of a command that fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pgtrial.files.trust import refusal_to_run
from pgtrial.machines.interrupt import held_off
from pgtrial.model.units import format_duration, shortened
from pgtrial.servers.builds.kept import BuildError

_PASSED = (
    "PATH", "HOME", "TMPDIR", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "SDKROOT", "LD_LIBRARY_PATH", "CARGO_HOME",
    "RUSTUP_HOME", "PGRX_HOME", "CCACHE_DIR",
)  # fmt: skip
"""The environment variables that the commands of a build get. CFLAGS and similar variables are left out, since a build
must depend only on the options that the study has."""

_NINJA = re.compile(r"\[(\d+)/(\d+)\]")
_COMPILES = re.compile(r"\s-c\s")
_TAIL_LINES = 400
_EVERY = 0.1
"""The share of all steps between two reports of the progress."""
_TRUSTED = 0.05
"""The share of all steps that has to be done before the remaining time is estimated."""

_WORDS = re.compile(
    r"(?i)(\berror:|fatal error|configure: error|undefined reference|command not found|no such file|is missing|"
    r"no rule to make|not found)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = re.compile(r"^\d+: ")
_OF_MAKE = re.compile(r"^(g?make(\[\d+\])?: |ninja: build stopped|FAILED: )")
_MISSING = (
    (r"\bbison\b", "install bison"),
    (r"\bflex\b", "install flex"),
    (r"readline", 'install libreadline-dev (readline-devel), or add "--without-readline" to build'),
    (r"zlib", 'install zlib1g-dev (zlib-devel), or add "--without-zlib" to build'),
    (r"\bICU\b|icu-uc|icu-i18n", 'install libicu-dev (libicu-devel), or add "--without-icu" to build'),
    (r"(?i)openssl|libcrypto|libssl", "install libssl-dev (openssl-devel)"),
    (r"(?i)lz4", "install liblz4-dev (lz4-devel)"),
    (r"(?i)zstd", "install libzstd-dev (libzstd-devel)"),
    (r"(?i)libxml", "install libxml2-dev (libxml2-devel)"),
    (r"(?i)perl\b.*(not found|missing)|no perl", "install perl"),
    (r"libclang_rt", "install libclang-rt-NN-dev (compiler-rt)"),
    (r"C compiler cannot create|no acceptable C compiler", "install gcc or clang, and the headers of the C library"),
    (
        r"(postgres\.h|pgxs\.mk): No such file",
        "install the headers of this server (postgresql-server-dev-NN, postgresqlNN-devel)",
    ),
)
"""Patterns of the messages by which configure scripts and compilers report a missing program or library, each with the
advice what to install."""


class Commands:
    """Runs the commands of one build, and writes their output to a file."""

    def __init__(self, label: str, log: Path, report: Callable[[str], None], expected: int = 0) -> None:
        """`expected` is the number of steps that the build probably takes, counted as output lines that show a
        compilation; 0 if it is unknown."""
        self.steps = 0
        """The number of steps that were done until now."""
        self._label = label
        self._log = log
        self._report = report
        self._expected = expected
        self._begun = time.monotonic()
        self._reported = 0.0

    def run(self, command: Sequence[str | Path], directory: Path, extra: Mapping[str, str] | None = None) -> None:
        """Runs a command and waits for its end. Raises BuildError, with the command's error message, if it fails."""
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(map(str, command))}\n")
            log.flush()
            try:
                with held_off():
                    process = subprocess.Popen(
                        [str(word) for word in command],
                        cwd=directory,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        errors="replace",
                        env={**_environment(), **(extra or {})},
                        start_new_session=True,
                    )
            except OSError as error:
                raise BuildError(f"{self._label}: {command[0]} does not start: {error.strerror}") from None
            try:
                for line in process.stdout or ():
                    log.write(line)
                    tail.append(line.rstrip())
                    self._count(line)
                status = process.wait()
            except BaseException:
                _end(process)
                raise
        if status != 0:
            words = last_words(list(tail)) or f"{command[0]} ended with status {status}"
            raise BuildError(f"the build of {self._label} failed: {words}; the whole output is in {self._log}")

    @staticmethod
    def asked(command: Sequence[str | Path], directory: Path) -> str:
        """Runs a command that changes nothing, and returns its standard output; an empty text if it cannot be
        started."""
        with suppress(OSError):
            return subprocess.run(
                [str(word) for word in command],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                env=_environment(),
                check=False,
            ).stdout
        return ""

    def _count(self, line: str) -> None:
        if (ninja := _NINJA.match(line)) is not None:
            self.steps, self._expected = int(ninja[1]), int(ninja[2])
        elif _COMPILES.search(line):
            self.steps += 1
        else:
            return
        if not self._expected:
            return
        share = min(self.steps / self._expected, 0.99)
        if share < self._reported + _EVERY:
            return
        self._reported = share
        left_s = (time.monotonic() - self._begun) * (1 - share) / share
        ahead = f", about {format_duration(round(left_s) or 1)} left" if share > _TRUSTED else ""
        self._report(f"building {self._label}: {share:.0%} of about {self._expected:,} steps{ahead}")


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED if name in os.environ} | {"LC_ALL": "C"}


def last_words(lines: Sequence[str]) -> str:
    """Returns the reason why a build failed, taken from the last lines of its output. If a known library or tool is
    missing, the text also says what to install."""
    plain = (_COLOUR.sub("", line).strip() for line in lines)
    own = [line for line in plain if line and not _OF_MAKE.match(line)]
    # some Rust programs print `Error:`, and the message on the next line
    own = [_NUMBER.sub("", line) for above, line in zip(["", *own], own, strict=False) if above == "Error:"] or own
    words = next((line for line in own if _WORDS.search(line)), own[-1] if own else "")
    text = shortened(words.rstrip("."), 300)
    cure = next((cure for sign, cure in _MISSING if re.search(sign, words)), None)
    return f"{text}; {cure}" if cure is not None else text


def make_program() -> str:
    """Returns the path of GNU make. Raises BuildError if it is not installed."""
    program = shutil.which("gmake") or shutil.which("make")
    if program is None:
        raise BuildError(
            "make is not installed on this machine, but a server or extension has to be built from source; install "
            "make and a C compiler"
        )
    return program


def jobs() -> str:
    """Returns the option `-jN` of make and ninja, which makes N commands of a build run at the same time: one for each
    usable CPU."""
    return f"-j{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1}"


def compiler_version(compiler: str) -> str:
    """Returns the version that a C compiler prints, in one line. Raises BuildError."""
    program = shutil.which(compiler)
    if program is None:
        raise BuildError(
            f"there is no C compiler {compiler}; install it (gcc or clang), or name another compiler by the key "
            "compiler"
        )
    if (why := refusal_to_run(Path(program))) is not None:
        raise BuildError(f"compiler: {why}")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise BuildError(f"{program} does not print its version; name another compiler by the key compiler")
    return lines[0].strip()


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a command and all processes of its process group."""
    with_group = process.pid
    try:
        os.killpg(with_group, 15)
        process.wait(5)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(with_group, 9)
        process.wait()
