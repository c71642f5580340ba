"""Puts recycled WAL files into a template, so that a trial's server does not have to create its first WAL files while
it is measured."""

from __future__ import annotations

from pathlib import Path

from pgtrial.loads.data.data import SEGMENT_MB, Data, prefilled_wal_mb
from pgtrial.loads.target import Target, value
from pgtrial.servers.run_directory import RunDirectory

_TRIM = """
cd "$1" && ls | grep -E '^[0-9A-F]{24}$' | sort | awk -v current="$2" '($0 "") > (current "")' |
tail -n "+$3" | xargs rm -f
"""
"""The script that removes surplus recycled WAL files in the directory $1: of the files that come after the segment $2,
all from number $3 on."""


def fill_wal(target: Target, tables: Data) -> str:
    """Switches through WAL segments and recycles them by a checkpoint, so that the template has WAL files for later
    use.

    Returns the segment that is in use afterwards. Raises psycopg.Error.
    """
    with target.connect() as connection:
        for _ in range(prefilled_wal_mb(tables) // SEGMENT_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'pgtrial', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        return str(value(connection, "SELECT pg_walfile_name(pg_current_wal_lsn())"))


def trim_wal(run_directory: RunDirectory, data: Path, current: str, tables: Data) -> None:
    """Removes the recycled WAL files of a stopped server that trials do not need. Loading leaves more of these files
    than a trial uses, and each trial would have to copy them. `current` is the segment in use."""
    run_directory.shell(_TRIM, data / "pg_wal", current, str(prefilled_wal_mb(tables) // SEGMENT_MB + 1))
