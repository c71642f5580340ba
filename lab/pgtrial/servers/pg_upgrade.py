"""Upgrades a copy of a cluster to a newer version by pg_upgrade, as an administrator would upgrade the original."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pgtrial.model.errors import ArmError
from pgtrial.model.units import shortened
from pgtrial.servers.cluster import create_bare_cluster, make_startable
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.postmaster import SUPERUSER
from pgtrial.servers.run_directory import RunDirectory

_OF_OLD = ("postgres", "pg_ctl", "pg_controldata", "pg_resetwal")
"""The programs of the old version that pg_upgrade runs."""
_OF_NEW = (*_OF_OLD, "pg_upgrade", "pg_dump", "pg_dumpall", "pg_restore", "psql", "vacuumdb")
"""The programs of the new version that pg_upgrade runs, and pg_upgrade itself."""

_CHECKSUMS = re.compile(r"^Data page checksum version:\s*(\d+)", re.MULTILINE)
_HAS_CHECKSUMS_BY_DEFAULT = 18
"""The first major version whose initdb switches data checksums on unless it is told otherwise."""

_IN = 'cd "$1" && shift && exec "$@"'
"""The script that runs a command in a directory. pg_upgrade makes its sockets, and before PostgreSQL 15 its log files,
in the directory in which it runs."""

_LOGS = "pg_upgrade_output.d"
"""The directory within the new data directory in which pg_upgrade makes its log files since PostgreSQL 15."""

_FOUND = """
lines=$(grep -rhF ' error: ' "$@" | head -n 2)
[ -n "$lines" ] || lines=$(grep -rhE 'ERROR:|FATAL:' "$@" | head -n 2)
echo "$lines"
find "$@" -name '*.txt' -exec head -n 5 {} +
"""
"""The script that prints the errors in the log files of pg_upgrade, and the beginnings of the files in which it lists
objects that cannot be upgraded. These files are removed together with the cluster."""

_PROGRESS = re.compile(r"\sok$|^-+$|^(Performing|Failure, exiting)")
"""Matches the lines of pg_upgrade's output that say nothing about a failure."""
_LONGEST = 600
"""The largest number of characters of pg_upgrade's words that a message shows."""


def missing_programs(old: ServerBinaries, new: ServerBinaries) -> list[Path]:
    """Returns the programs for pg_upgrade that two installations on this machine lack."""
    needed = [*(old.bin / name for name in _OF_OLD), *(new.bin / name for name in _OF_NEW)]
    return [program for program in needed if not program.is_file()]


def upgrade_cluster(
    run_directory: RunDirectory,
    old: tuple[ServerBinaries, Path],
    new: tuple[ServerBinaries, Path],
    options: Sequence[str] = (),
) -> None:
    """Makes a cluster of the new version from a stopped cluster of the old one, which cannot be started any more, since
    both then share their files (`--link`).

    `old` and `new` are installations with data directories; that of the new one must not exist yet. `options` are for
    the initdb of the new cluster. Raises ArmError with the words of pg_upgrade if it refuses or fails.
    """
    (old_server, old_data), (new_server, new_data) = old, new
    alike = _as_before(run_directory, old_server, old_data, new_server)
    create_bare_cluster(run_directory, new_server, new_data, [*options, *alike])
    directories = ("--old-datadir", old_data, "--new-datadir", new_data)
    programs = ("--old-bindir", old_server.bin, "--new-bindir", new_server.bin)
    command = (new_server.bin / "pg_upgrade", "--link", "--username", SUPERUSER, *programs, *directories)
    directory = run_directory.socket_directory()
    done = run_directory.run(["sh", "-c", _IN, "sh", directory, *command])
    if done.status != 0:
        logs = (directory, new_data / _LOGS)
        found = run_directory.run(["sh", "-c", _FOUND, "sh", *logs]).stdout.splitlines()
        words = _words(found or [*done.stdout.splitlines(), *done.stderr.splitlines()])
        versions = f"from PostgreSQL {old_server.version} to {new_server.version}"
        raise ArmError(f"pg_upgrade {versions} failed: {words}")
    make_startable(run_directory, new_data)


def _as_before(run_directory: RunDirectory, old: ServerBinaries, old_data: Path, new: ServerBinaries) -> list[str]:
    """Returns the option of initdb by which the new cluster has data checksums if and only if the old one has them,
    since pg_upgrade demands that."""
    found = _CHECKSUMS.search(run_directory.run([old.bin / "pg_controldata", old_data]).stdout)
    if found is not None and found[1] != "0":
        return ["--data-checksums"]
    return ["--no-data-checksums"] if new.major >= _HAS_CHECKSUMS_BY_DEFAULT else []


def _words(printed: Sequence[str]) -> str:
    """Returns what pg_upgrade has printed about its failure on one line, without its lines of progress."""
    lines = [" ".join(line.split()) for line in printed]
    spoken = [line for line in lines if line and not _PROGRESS.search(line)]
    return shortened(" ".join(spoken) or "it said nothing", _LONGEST).removesuffix(".")
