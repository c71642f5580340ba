"""Trains a server for its profile: a first build counts what a load runs, and the second one is optimised for that.

The load is pgbench's three scripts. Code that it does not run is compiled as without a profile (GCC), or as seldom run.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder
from pgtrial.machines.machine import LOCAL, HostTrouble
from pgtrial.model.errors import ArmError
from pgtrial.servers.builds.kept import BuildError
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.room import Room
from pgtrial.servers.trees import entries

_SCALE = 5
_CLIENTS = 4
_LOADS = (("tpcb-like", "simple", 2_500), ("simple-update", "extended", 2_500), ("select-only", "prepared", 25_000))
"""The script, the protocol, and the transactions of each client."""
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "autovacuum_naptime": "5s"}


@dataclass(frozen=True)
class Profile:
    """The profile of a build: the directory for its counters, and the compiler's options to count and to use the
    counters."""

    directory: Path
    clang: bool

    @property
    def counting(self) -> list[str]:
        """The options for compiling and linking an instrumented build, which counts what it runs."""
        return [f"-fprofile-generate={self.directory}"]

    @property
    def using(self) -> list[str]:
        """The options of a build that uses the counters, for compiling and linking."""
        if self.clang:
            return [f"-fprofile-use={self._merged}", "-Wno-profile-instr-unprofiled", "-Wno-profile-instr-out-of-date"]
        # a process that execs another program, or is killed, leaves functions unfinished, so its counts may not add up
        of_gcc = ["-fprofile-correction", "-fprofile-partial-training", "-Wno-missing-profile"]
        return [f"-fprofile-use={self.directory}", *of_gcc]

    @property
    def _merged(self) -> Path:
        """The file of the merged counters. It is next to the directory and not in it, where the servers' account could
        have put a link."""
        return self.directory.with_suffix(".profdata")

    def check(self) -> None:
        """Raises BuildError if a program that the build needs at its end is missing."""
        if self.clang and shutil.which("llvm-profdata") is None:
            raise BuildError("pgo by clang needs llvm-profdata, which is not installed; install llvm, or take gcc")

    def collect(self, server: ServerBinaries, room: Room, log: Path, say: Callable[[str], None]) -> None:
        """Runs the training load on a server of the instrumented build. Raises BuildError."""
        # the servers' account could not write to counters of programs that root has run
        shutil.rmtree(self.directory, ignore_errors=True)
        room.private_directory(self.directory)
        data = room.directory("training")
        cluster = Cluster(room, server, data, room.socket_directory(), _SETTINGS)
        try:
            create_cluster(room, server, data)
            with cluster.running(log) as target:
                for what, options in _orders():
                    say(what)
                    ENGINE_HERE.make(DataOrder(what, ["pgbench", *options], target.environment()))
                with target.connect() as session:
                    session.execute(b"VACUUM (ANALYZE)")
        except (ArmError, HostTrouble) as error:
            raise BuildError(f"the server that counts for its profile: {error}") from None
        finally:
            LOCAL.remove_tree(data)
        counters = self.counters(room.account)
        if not counters:
            raise BuildError("the server has counted nothing for its profile; leave pgo out, or take another compiler")
        if self.clang:
            try:
                LOCAL.tool(["llvm-profdata", "merge", "-o", self._merged, *counters])
            except HostTrouble as error:
                raise BuildError(f"the counters of the server cannot be merged: {error}") from None

    def counters(self, account: str | None) -> list[Path]:
        """Returns the files with counters, in a directory that the servers' account can change no longer.

        Raises BuildError if something other than a file is there, since the build would follow it as root.
        """
        if account is not None:
            LOCAL.chown(self.directory, "root")
        if not all(stat.S_ISREG(status.st_mode) for _, status in entries(self.directory)):
            raise BuildError(f"the servers' account has put something else than files into {self.directory}; remove it")
        return sorted(self.directory.glob("*.profraw" if self.clang else "*.gcda"))


def _orders() -> Iterator[tuple[str, list[str]]]:
    """Yields the steps of the training load: for each, its description and the options with which the engine's pgbench
    front end runs."""
    yield "loading pgbench's tables for its profile", ["-i", "-q", "-s", str(_SCALE)]
    for script, protocol, transactions in _LOADS:
        options = ["-n", "-b", script, "-M", protocol, "-c", str(_CLIENTS), "-t", str(transactions)]
        yield f"counting what {script} runs, for its profile", options
