"""What a trial's data takes on disk, and the refusal before loading when it does not fit."""

from __future__ import annotations

from pgtrial.loads.data.data import Data
from pgtrial.model.errors import StudyError

CLUSTER_MB = 50
"""A cluster without tables, rounded up."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""WAL that may stand around while loading, at most; see `max_wal_size` of the loading settings."""


def prefilled_wal_mb(data: Data) -> int:
    """WAL segments kept ready in a template, as much as its data within 64 MB to 512 MB.

    New segments cost more than recycled ones; ready-made ones spare the first trials after initdb that cost.
    """
    return min(512, max(64, data.mb)) // SEGMENT_MB * SEGMENT_MB


def needed_mb(data: Data) -> int:
    """Megabytes to load and to run: the template, one copy of it, and the WAL of loading or of a trial."""
    once = CLUSTER_MB + data.mb + prefilled_wal_mb(data)
    return 2 * once + wal_mb(data)


def volume_bytes(data: Data) -> tuple[int, int]:
    """Bytes of a volume that holds one copy of the data and the WAL of a trial, and of one for such WAL alone."""
    wal = prefilled_wal_mb(data) + wal_mb(data)
    return (CLUSTER_MB + data.mb + wal) * 1_000_000, wal * 1_000_000


def wal_mb(data: Data) -> int:
    """Megabytes of WAL that loading or a trial leaves standing, as far as nothing is known of the server."""
    return min(LOADING_WAL_MB, max(64, data.mb))


def check_free(free_bytes: int, where: str, cure: str, data: Data, *, templates: int = 1) -> None:
    """Raise StudyError if the data does not fit so many bytes, with the figures; `templates` still have to be loaded.

    `cure` is what to do beside a lower scale and a tidier disk.
    """
    once = CLUSTER_MB + data.mb + prefilled_wal_mb(data)
    needed = needed_mb(data) + (templates - 1) * once
    free = free_bytes / 1e6
    if needed > free:
        raise StudyError(
            f"{data.label} does not fit the disk: it needs about {needed:,} MB in {where} "
            f"({data.mb:,} MB of tables, for the template, one copy and WAL) and {free:,.0f} MB are "
            f"free; lower the scale, free some space, or {cure}"
        )
