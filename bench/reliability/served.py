"""A server with tables for an attack on the engine, and runs of the engine with an eye on their memory."""

from __future__ import annotations

import re
import resource
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.reliability.kind import Campaign, Missing
from pgtrial.loads.process import engine_path, environment
from pgtrial.loads.target import Target
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace

_SAMPLE_S = 1.0


@contextmanager
def served(campaign: Campaign, load: Mapping[str, object], settings: Mapping[str, str]) -> Iterator[Target]:
    """Yields a server of this machine with the tables of a load, started for the context."""
    data = {"arms": {"server": {"settings": dict(settings)}, "unused": {}}, "load": dict(load)}
    spec = StudySpec.model_validate(data)
    needs = Needs.of(Design(spec))
    (tables,) = needs.data
    with Workspace(campaign.state) as workspace:
        arm = make_arms(Design(spec), workspace)["server"]
        try:
            arm.check(needs)
            arm.prepare(tables, lambda line: None)
            with arm.serve(tables, campaign.scratch / "server.log", {}) as target:
                yield target
        finally:
            arm.close()


@dataclass(frozen=True)
class Watched:
    """A run of a program: its words, its status, and its resident memory in KiB once a second."""

    status: int
    stdout: str
    stderr: str
    memory: list[int]

    @property
    def steady_kib(self) -> int:
        """The memory after a fifth of the run, when all clients are there, KiB."""
        return self.memory[len(self.memory) // 5] if self.memory else 0

    @property
    def last_kib(self) -> int:
        """The memory at the end of the run, KiB."""
        return self.memory[-1] if self.memory else 0

    @property
    def grew(self) -> bool:
        """True if the memory grew: by more than a tenth and 4 MB beyond the steady state."""
        return self.last_kib > 1.1 * self.steady_kib + 4096


def run_engine(target: Target, args: Sequence[str]) -> Watched:
    """Run the engine to its end."""
    with subprocess.Popen(
        [str(engine_path()), *args],
        env=environment(target.environment()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        memory: list[int] = []
        watcher = threading.Thread(target=_watch, args=(process, memory))
        watcher.start()
        try:
            stdout, stderr = process.communicate()
        finally:
            process.kill()
            watcher.join()
    return Watched(process.returncode, stdout, stderr, memory)


def _watch(process: subprocess.Popen[str], memory: list[int]) -> None:
    while process.poll() is None:
        if kib := resident_kib(process.pid):
            memory.append(kib)
        time.sleep(_SAMPLE_S)


def resident_kib(pid: int) -> int:
    """Returns the resident memory of a process; 0 if it has ended."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


@contextmanager
def open_files(wanted: int) -> Iterator[None]:
    """Raises the limit of open files to `wanted`, here and in programs that are started. Raises Missing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted:
        raise Missing(f"{wanted:,} files have to be open at once, and the limit is {hard:,} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
