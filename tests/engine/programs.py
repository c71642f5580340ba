"""The original and the engine side by side: how they are run, and what of their words is measured."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from tests.conftest import require_engine, require_server

TIMEOUT_S = 480.0
"""A guard against what hangs; less than that of a test."""

_SURROUNDINGS = environment({})
"""A copy of the environment from the start of the tests. pytest changes the environment of this process for each test,
while other threads may start runs.
"""


@dataclass(frozen=True)
class Ended:
    """The result of a program that has ended."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Program:
    """pgbench, or what claims to be: `command` comes before the arguments."""

    name: str
    command: tuple[str, ...] = field(repr=False)

    def start(
        self,
        target: Target,
        args: Sequence[str],
        *,
        directory: Path | None = None,
        typed: bool = False,
        **env: str,
    ) -> subprocess.Popen[str]:
        """Start it on a server, in a directory; `typed` if something will be written to its standard input.

        It is to be waited for. Bytes that are not UTF-8 come out as surrogates.
        """
        options, variables = self._led(target, directory)
        return subprocess.Popen(
            [*self.command, *options, *args],
            cwd=directory,
            env=_SURROUNDINGS | variables | {"LC_ALL": "C"} | env,
            stdin=subprocess.PIPE if typed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def run(
        self, target: Target, *args: str, directory: Path | None = None, typed: str | None = None, **env: str
    ) -> Ended:
        """Run it to its end, with `typed` on its standard input."""
        with self.start(target, args, directory=directory, typed=typed is not None, **env) as process:
            return ended(process, typed)

    def run_in_time(self, target: Target, *args: str, **more: Any) -> Ended:
        """Run it, again if its time was over before the first transaction: the original's begins before it connects.

        A server that was late for all of it leaves nothing to compare.
        """
        for _ in range(3):
            done = self.run(target, *args, **more)
            if "actually processed: 0\n" not in done.stdout:
                break
        return done

    def load(self, target: Target, *args: str) -> None:
        """Make the tables, quietly."""
        done = self.run(target, "-i", "-q", *args)
        assert done.status == 0, done.stderr

    def _led(self, target: Target, directory: Path | None) -> tuple[list[str], dict[str, str]]:
        """Returns the options and the environment variables that make the program connect to this server."""
        del directory
        return [], target.environment()


def ended(process: subprocess.Popen[str], typed: str | None = None) -> Ended:
    """Wait for the end of a started program; one that does not come to it is killed."""
    try:
        stdout, stderr = process.communicate(typed, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Ended(process.returncode, stdout, stderr)


def original() -> Program:
    """Returns pgbench 18 as a program to run, or skips the test."""
    return Program("original", (str(original_path()),))


def original_path() -> Path:
    """Returns the path of pgbench 18, or skips the test."""
    return client_program("pgbench")


def ours() -> Program:
    """Returns the engine's front end for pgbench, or skips the test."""
    return Program("ours", (str(require_engine()), "pgbench"))


def client_program(name: str) -> Path:
    """Returns another program of PostgreSQL 18, or skips the test."""
    return require_server(18).bin / name


# What is measured, and so differs from run to run. Everything else, blanks and digits after the point included, has to
# be the same: parameters, counts of a run that is limited by its count, refused values, widths of columns.
_MEASURED = [
    # the original's version has a minor number
    (r"^pgbench \(18(\.\d+)?(?=[,)])", "pgbench (18"),
    (r"(latency average|latency stddev|connection time) = \d+\.\d{3} ms", r"\1 = #.000 ms"),
    (r"tps = \d+\.\d{6}", "tps = #.000000"),
    # transactions of a run that is limited by time
    (r"actually processed: \d+(?= \(tps|$)", "actually processed: #"),
    (r"^ - \d+ transactions \(\d+\.\d% of total\)", " - # transactions (#.0% of total)"),
    # where all latencies of an interval are the same, the original may take the root of a number just below 0
    (r"^progress: \d+\.\d s, \d+\.\d tps, lat \d+\.\d{3} ms stddev (\d+\.\d{3}|-?nan), \d+ failed", "progress: #"),
    (
        r"^progress: \d{10}\.\d{3} s, \d+\.\d tps, lat \d+\.\d{3} ms stddev (\d+\.\d{3}|-?nan), \d+ failed",
        "progress: epoch #",
    ),
    (r"^(progress: .*, lag) \d+\.\d{3} ms", r"\1 #"),
    (r"^(progress: .*), \d+ skipped", r"\1, # skipped"),
    (r"^(progress: .*), \d+ retried, \d+ retries", r"\1, # retried, # retries"),
    (r"schedule lag: avg \d+\.\d{3} \(max \d+\.\d{3}\) ms", "schedule lag: avg # (max #) ms"),
    # a latency in eleven columns
    (r"^ {3}(?=[ \d.]{11} )[ ]*\d+\.\d{3} ", "   ########.000 "),
    # steps of -i
    (r"(?<= )\d+\.\d\d s(?=[ ,)])", "#.00 s"),
    # which of the clients is the first to be refused is a race in both
    (r"could not create connection for client \d+", "could not create connection for client #"),
    (r"^pgbench: setting random seed to \d{6,}$", "pgbench: setting random seed to #"),
    # C libraries name the program as it was called
    (r"^\S*/pgbench: ", "pgbench: "),
]


def settle(text: str) -> str:
    """Returns `text` without the measured values.

    Equal progress lines that follow each other count once, since the original may or may not print a line at the very
    end of the run.
    """
    for pattern, replacement in _MEASURED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return re.sub(r"^(progress: .*\n)\1+", r"\1", text, flags=re.MULTILINE)


def settled(done: Ended) -> Ended:
    """Returns the result of a program without the measured values."""
    return Ended(done.status, settle(done.stdout), settle(done.stderr))
