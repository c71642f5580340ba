"""Runs the programs under measurement, and reads their output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import Peak

from pgtrial.loads.process import engine_path, environment
from pgtrial.loads.target import Target
from pgtrial.servers.installations import ServerBinaries

OURS, PGBENCH, SYSBENCH, FLOOR, BEFORE = "ours", "pgbench", "sysbench", "floor", "before"
SYSBENCH_TPCC, GO_TPC = "sysbench-tpcc", "go-tpc"
LIKE_PGBENCH = (OURS, BEFORE, PGBENCH)
"""The programs that take pgbench's options."""
ROWS_PER_SCALE = 100_000
SYSBENCH_ROWS = 100_000


class Failed(Exception):
    """Raised if a program did not do what it was asked for."""


@dataclass(frozen=True)
class Ran:
    """The result of a run: its output, its duration and its CPU time in seconds, the peak of its resident memory in
    KiB.
    """

    stdout: str
    stderr: str
    elapsed_s: float
    cpu_s: float
    peak_kib: int

    def number(self, pattern: str) -> float:
        """Returns the number that a pattern's group finds on standard output, else on standard error. Raises Failed."""
        found = re.search(pattern, self.stdout) or re.search(pattern, self.stderr)
        if found is None:
            raise Failed(f"no line like {pattern!r} in:\n{self.stdout}{self.stderr}")
        return float(found[1])

    @property
    def tps(self) -> float:
        """The throughput that the program printed, transactions per second."""
        return self.number(r"tps = ([\d.]+)" if "tps" in self.stdout else r"transactions: +\d+ +\(([\d.]+) per")

    @property
    def cpu_us(self) -> float:
        """The client's own CPU, microseconds per transaction."""
        return 1e6 * self.cpu_s / self.transactions

    @property
    def transactions(self) -> float:
        """The number of transactions that the program printed."""
        pattern = r"actually processed: (\d+)" if "actually" in self.stdout else r"transactions: +(\d+)"
        return self.number(pattern)


@dataclass(frozen=True)
class Program:
    """A client program: `command` comes before the arguments."""

    name: str
    command: tuple[str, ...]
    scale: int

    def select_only(self, clients: int, *limit: str) -> list[str]:
        """Returns the arguments for prepared select-only transactions; the limit is `-t N` or `-T SECONDS`."""
        if self.name == FLOOR:
            return ["-a", str(self.scale * ROWS_PER_SCALE), "-c", str(clients), *limit]
        if self.name == SYSBENCH:
            bound = f"--events={int(limit[1]) * clients}" if limit[0] == "-t" else f"--time={limit[1]}"
            endless = ["--time=0"] if limit[0] == "-t" else ["--events=0"]
            return [f"--threads={clients}", bound, *endless, "run"]
        return [*pgbench_options("select-only", clients), *limit]

    def run(self, target: Target, args: Sequence[str], *before: str, check: bool = True) -> Ran:
        """Runs the program to its end, under the program `before` if one is given. Raises Failed."""
        return execute(self.name, [*before, *self.command, *self._address(target), *args], target, check=check)

    def _address(self, target: Target) -> list[str]:
        if self.name == FLOOR:
            return ["-h", target.host, "-p", str(target.port), "-U", target.user, "-d", target.dbname]
        if self.name == SYSBENCH:
            tables = ["--tables=1", f"--table-size={SYSBENCH_ROWS}"]
            return ["oltp_point_select", *sysbench_address(target), *tables]
        return []


def sysbench_address(target: Target) -> list[str]:
    """Returns sysbench's options that lead to a server."""
    return [
        "--db-driver=pgsql",
        f"--pgsql-host={target.host}",
        f"--pgsql-port={target.port}",
        f"--pgsql-user={target.user}",
        f"--pgsql-db={target.dbname}",
    ]


def execute(name: str, command: Sequence[str], target: Target, *, check: bool = True) -> Ran:
    """Run a command that reaches the target to its end; `name` is for messages. Raises Failed."""
    began = time.monotonic()
    with (
        subprocess.Popen(
            command,
            env=environment(target.environment()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        Peak(process.pid) as peak,
    ):
        stderr: list[str] = []
        reader = threading.Thread(target=lambda: stderr.append(process.stderr.read() if process.stderr else ""))
        reader.start()
        stdout = process.stdout.read() if process.stdout else ""
        reader.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.monotonic() - began
    if check and process.returncode != 0:
        lines = (stderr[0] or stdout).splitlines()
        printed = [line for line in lines if line and not line.startswith("==")]
        raise Failed(f"{name} ended with status {process.returncode}: {' '.join(printed[-2:])}")
    return Ran(stdout, stderr[0], elapsed, usage.ru_utime + usage.ru_stime, peak.kib)


def pgbench_options(workload: str, clients: int, mode: str = "prepared") -> list[str]:
    """Arguments of pgbench and ours for a built-in script; without a limit."""
    return ["-n", "-b", workload, "-M", mode, "-c", str(clients), "-j", "1"]


def find_programs(server: ServerBinaries, floor: Path, scale: int, before: Path | None) -> dict[str, Program]:
    """Returns all programs that are installed here, ours first; `before` is an earlier build of ours."""
    found = {
        OURS: (str(engine_path()), "pgbench"),
        PGBENCH: (str(server.bin / "pgbench"),),
        FLOOR: (str(floor),),
    }
    if sysbench := shutil.which("sysbench"):
        found[SYSBENCH] = (sysbench,)
    if before:
        found[BEFORE] = (str(before), "pgbench")
    return {name: Program(name, command, scale) for name, command in found.items()}


def build_floor(scratch: Path) -> Path:
    """Compiles bench/floor.c and returns the program."""
    program = scratch / "floor"
    source = Path(__file__).with_name("floor.c")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, source], check=True)
    return program


@contextmanager
def null_server(scratch: Path, *options: str) -> Iterator[Target]:
    """Yields the null server on a private socket, for as long as the context lasts."""
    directory = scratch / "null"
    directory.mkdir(exist_ok=True)
    command = [str(engine_path()), "null-server", "--socket-dir", str(directory), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("null-server: listening on "):
                raise Failed(f"{' '.join(command)} did not start")
            yield Target(str(directory), 5432, "postgres", "postgres")
        finally:
            process.terminate()
