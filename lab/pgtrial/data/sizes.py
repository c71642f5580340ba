"""What a scale takes on disk, and the refusal before loading when it does not fit."""

from __future__ import annotations

import shutil
from pathlib import Path

from pgtrial.errors import StudyError

MB_PER_SCALE = 15
"""Tables and indexes of one scale unit (100,000 accounts), as pgbench's documentation gives it, at fill factor 100."""

CLUSTER_MB = 50
"""A cluster without tables, rounded up."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""WAL that may stand around while loading, at most; see `max_wal_size` of the loading settings."""


def data_mb(scale: int, fillfactor: int = 100) -> int:
    """Megabytes of tables and indexes; a lower fill factor leaves room in the tables in proportion."""
    return round(MB_PER_SCALE * scale * 100 / fillfactor)


def prefilled_wal_mb(scale: int) -> int:
    """WAL segments kept ready in a template, as much as its data within 64 MB to 512 MB.

    New segments cost more than recycled ones; ready-made ones spare the first trials after initdb that cost.
    """
    return min(512, max(64, MB_PER_SCALE * scale)) // SEGMENT_MB * SEGMENT_MB


def needed_mb(scale: int, fillfactor: int = 100) -> int:
    """Megabytes to load and to run: the template, one copy of it, and the WAL of loading or of a trial."""
    once = CLUSTER_MB + data_mb(scale, fillfactor) + prefilled_wal_mb(scale)
    return 2 * once + min(LOADING_WAL_MB, max(64, data_mb(scale, fillfactor)))


def volume_mb(scale: int, fillfactor: int = 100) -> int:
    """Megabytes of a volume that holds one copy of the data and the WAL of a trial."""
    once = CLUSTER_MB + data_mb(scale, fillfactor) + prefilled_wal_mb(scale)
    return once + min(LOADING_WAL_MB, max(64, data_mb(scale, fillfactor)))


def check_space(directory: Path, scale: int, fillfactor: int = 100, *, templates: int = 1) -> None:
    """Raise StudyError if the largest scale does not fit, with the figures; `templates` still have to be loaded."""
    once = CLUSTER_MB + data_mb(scale, fillfactor) + prefilled_wal_mb(scale)
    needed = needed_mb(scale, fillfactor) + (templates - 1) * once
    free = shutil.disk_usage(directory).free / 1e6
    if needed > free:
        raise StudyError(
            f"scale {scale} does not fit the disk: it needs about {needed:,} MB in {directory} "
            f"({MB_PER_SCALE} MB per scale unit, for the template, one copy and WAL) and {free:,.0f} MB are free; "
            "lower the scale, free some space, or set PGTRIAL_STATE to a directory on a larger disk"
        )
