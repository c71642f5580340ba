"""The original and the engine side by side: how they are run, and what of their words is measured."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.arm.connect import Target
from pgtrial.engine import environment
from tests.conftest import require_engine, require_server

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Ended:
    """What a program left behind."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Program:
    """pgbench, or what claims to be: `command` comes before the arguments."""

    name: str
    command: tuple[str, ...] = field(repr=False)

    def start(self, target: Target, args: Sequence[str], **env: str) -> subprocess.Popen[str]:
        """Start it on a server; it is to be waited for."""
        return subprocess.Popen(
            [*self.command, *args],
            env=environment(target.environment()) | {"LC_ALL": "C"} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, target: Target, *args: str, **env: str) -> Ended:
        """Run it to its end."""
        with self.start(target, args, **env) as process:
            try:
                return ended(process)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    def load(self, target: Target, *args: str) -> None:
        """Make the tables, quietly."""
        done = self.run(target, "-i", "-q", *args)
        assert done.status == 0, done.stderr


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end of a started program."""
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    return Ended(process.returncode, stdout, stderr)


def original() -> Program:
    """pgbench 18, or skip."""
    return Program("original", (str(require_server(18).bin / "pgbench"),))


def ours() -> Program:
    """The engine as pgbench, or skip."""
    return Program("ours", (str(require_engine()), "pgbench"))


def client_program(name: str) -> Path:
    """Another program of PostgreSQL 18, or skip."""
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
    (r"^progress: \d+\.0 s, \d+\.\d tps, lat \d+\.\d{3} ms stddev \d+\.\d{3}, \d+ failed$", "progress: #"),
    # a latency in eleven columns, failures in ten
    (r"^ {3}(?=[ \d.]{11} )[ ]*\d+\.\d{3}  (?=[ \d]{10} )[ ]*\d+ ", "   ########.000  ########## "),
    # which of the clients is the first to be refused is a race in both
    (r"could not create connection for client \d+", "could not create connection for client #"),
    (r"^pgbench: setting random seed to \d{6,}$", "pgbench: setting random seed to #"),
    # C libraries name the program as it was called
    (r"^\S*/pgbench: ", "pgbench: "),
]
_PROGRESS = "progress: #\n"


def settle(text: str) -> str:
    """`text` without what is measured.

    Of consecutive progress lines one is left: the original misses one that falls on the end of the run, or does not.
    """
    for pattern, replacement in _MEASURED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return re.sub(f"(?:{_PROGRESS})+", _PROGRESS, text)


def assert_alike(original: Ended, ours: Ended) -> None:
    """Both said the same, on either stream, and ended alike."""
    assert settle(ours.stdout) == settle(original.stdout)
    assert settle(ours.stderr) == settle(original.stderr)
    assert ours.status == original.status
