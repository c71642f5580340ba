"""Makes the profile for a build with profile-guided optimization (PGO). A first, instrumented build counts which code a
training load executes, and the compiler optimises the second build for these counts.

The training load consists of pgbench's three built-in scripts. GCC compiles code that the load does not execute as it
would without a profile; clang treats it as rarely executed.
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
from pgtrial.servers.run_directory import RunDirectory
from pgtrial.servers.trees import entries

_SCALE = 5
_CLIENTS = 4
_LOADS = (("tpcb-like", "simple", 2_500), ("simple-update", "extended", 2_500), ("select-only", "prepared", 25_000))
"""The parts of the training load: pgbench's script, the protocol, and the number of transactions of each client."""
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "autovacuum_naptime": "5s"}


@dataclass(frozen=True)
class Profile:
    """The profile of a build: the directory in which the server stores its counters, and the compiler options for
    counting and for using the counters."""

    directory: Path
    clang: bool

    @property
    def counting(self) -> list[str]:
        """The options for compiling and linking the instrumented build, which counts the code that it executes."""
        return [f"-fprofile-generate={self.directory}"]

    @property
    def using(self) -> list[str]:
        """The options for compiling and linking the final build, which uses the counters."""
        if self.clang:
            return [f"-fprofile-use={self._merged}", "-Wno-profile-instr-unprofiled", "-Wno-profile-instr-out-of-date"]
        # counts can be inconsistent, since a process that execs another program or is killed leaves functions
        # unfinished
        of_gcc = ["-fprofile-correction", "-fprofile-partial-training", "-Wno-missing-profile"]
        return [f"-fprofile-use={self.directory}", *of_gcc]

    @property
    def _merged(self) -> Path:
        """The file with the merged counters. It is next to the directory and not in it, since in the directory the
        servers' account could have put a symbolic link with this name."""
        return self.directory.with_suffix(".profdata")

    def check(self) -> None:
        """Raises BuildError if llvm-profdata is missing, which merges the counters of clang at the end of the
        training."""
        if self.clang and shutil.which("llvm-profdata") is None:
            raise BuildError(
                "pgo with clang needs llvm-profdata, which is not installed; install llvm, or set compiler to gcc"
            )

    def collect(
        self, server: ServerBinaries, run_directory: RunDirectory, log: Path, report: Callable[[str], None]
    ) -> None:
        """Runs the training load on a server of the instrumented build. Raises BuildError."""
        # programs that root has run may have left counters, to which the servers' account could not write
        shutil.rmtree(self.directory, ignore_errors=True)
        run_directory.private_directory(self.directory)
        data = run_directory.directory("training")
        cluster = Cluster(run_directory, server, data, run_directory.socket_directory(), _SETTINGS)
        try:
            create_cluster(run_directory, server, data)
            with cluster.running(log) as target:
                for what, options in _orders():
                    report(what)
                    ENGINE_HERE.make(DataOrder(what, ["pgbench", *options], target.environment()))
                with target.connect() as session:
                    session.execute(b"VACUUM (ANALYZE)")
        except (ArmError, HostTrouble) as error:
            raise BuildError(f"the server that counts executed code for pgo failed: {error}") from None
        finally:
            LOCAL.remove_tree(data)
        counters = self.counters(run_directory.account)
        if not counters:
            raise BuildError(
                "the instrumented server has written no counters for pgo; leave pgo out, or name another compiler"
            )
        if self.clang:
            try:
                LOCAL.tool(["llvm-profdata", "merge", "-o", self._merged, *counters])
            except HostTrouble as error:
                raise BuildError(f"the counters for pgo cannot be merged: {error}") from None

    def counters(self, account: str | None) -> list[Path]:
        """Returns the files with counters. First makes root the owner of their directory, so that the servers' account
        cannot change it any more.

        Raises BuildError if the directory has an entry that is not a regular file, since the compiler, which runs as
        root, would follow a symbolic link.
        """
        if account is not None:
            LOCAL.chown(self.directory, "root")
        if not all(stat.S_ISREG(status.st_mode) for _, status in entries(self.directory)):
            raise BuildError(
                f"{self.directory} has entries that are not regular files, which the servers' account has put there; "
                "remove the directory"
            )
        return sorted(self.directory.glob("*.profraw" if self.clang else "*.gcda"))


def _orders() -> Iterator[tuple[str, list[str]]]:
    """Yields the steps of the training load. Each step is a description, and the options for the engine's pgbench front
    end."""
    yield "loading pgbench's tables for its profile", ["-i", "-q", "-s", str(_SCALE)]
    for script, protocol, transactions in _LOADS:
        options = ["-n", "-b", script, "-M", protocol, "-c", str(_CLIENTS), "-t", str(transactions)]
        yield f"counting which code {script} executes, for its profile", options
