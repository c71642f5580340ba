"""What a trial's data takes on disk, and the refusal before loading when it does not fit."""

from __future__ import annotations

import shutil
from pathlib import Path

from pgtrial.loads.data.prepared import Prepared
from pgtrial.loads.data.table_a import TableA
from pgtrial.model.errors import StudyError

Data = int | Prepared
"""What a trial needs on its server: pgbench's tables at a scale (0: none), or what the workload brings with it."""

MB_PER_SCALE = 15
"""Tables and indexes of one scale unit (100,000 accounts), as pgbench's documentation gives it, at fill factor 100."""

CLUSTER_MB = 50
"""A cluster without tables, rounded up."""

SEGMENT_MB = 16
LOADING_WAL_MB = 1024
"""WAL that may stand around while loading, at most; see `max_wal_size` of the loading settings."""


def label(data: Data) -> str:
    """For people: `scale 20`, `sysbench, 250 x 450,000 rows`."""
    return f"scale {data}" if isinstance(data, int) else data.label


def short_name(data: Data) -> str:
    """For directories: `s20`, `sysbench-1a2b3c4d`, `table_a-10x100000`."""
    if isinstance(data, TableA):
        return f"table_a-{data.threads}x{data.rows}"
    return f"s{data}" if isinstance(data, int) else f"sysbench-{data.digest[:8]}"


def data_mb(data: Data, fillfactor: int = 100) -> int:
    """Megabytes of tables and indexes; a lower fill factor leaves room in pgbench's tables in proportion."""
    return round(MB_PER_SCALE * data * 100 / fillfactor) if isinstance(data, int) else data.mb


def prefilled_wal_mb(data: Data) -> int:
    """WAL segments kept ready in a template, as much as its data within 64 MB to 512 MB.

    New segments cost more than recycled ones; ready-made ones spare the first trials after initdb that cost.
    """
    return min(512, max(64, data_mb(data))) // SEGMENT_MB * SEGMENT_MB


def needed_mb(data: Data, fillfactor: int = 100) -> int:
    """Megabytes to load and to run: the template, one copy of it, and the WAL of loading or of a trial."""
    once = CLUSTER_MB + data_mb(data, fillfactor) + prefilled_wal_mb(data)
    return 2 * once + wal_mb(data, fillfactor)


def volume_bytes(data: Data, fillfactor: int = 100) -> tuple[int, int]:
    """Bytes of a volume that holds one copy of the data and the WAL of a trial, and of one for such WAL alone."""
    wal = prefilled_wal_mb(data) + wal_mb(data, fillfactor)
    return (CLUSTER_MB + data_mb(data, fillfactor) + wal) * 1_000_000, wal * 1_000_000


def wal_mb(data: Data, fillfactor: int = 100) -> int:
    """Megabytes of WAL that loading or a trial leaves standing, as far as nothing is known of the server."""
    return min(LOADING_WAL_MB, max(64, data_mb(data, fillfactor)))


def check_space(directory: Path, data: Data, fillfactor: int = 100, *, templates: int = 1) -> None:
    """Raise StudyError if the largest data does not fit, with the figures; `templates` still have to be loaded."""
    free = shutil.disk_usage(directory).free
    cure = "set PGTRIAL_STATE to a directory on a larger disk"
    check_free(free, str(directory), cure, data, fillfactor, templates=templates)


def check_free(
    free_bytes: int, where: str, cure: str, data: Data, fillfactor: int = 100, *, templates: int = 1
) -> None:
    """As check_space, of so many free bytes; `cure` is what to do beside a lower scale and a tidier disk."""
    once = CLUSTER_MB + data_mb(data, fillfactor) + prefilled_wal_mb(data)
    needed = needed_mb(data, fillfactor) + (templates - 1) * once
    free = free_bytes / 1e6
    if needed > free:
        raise StudyError(
            f"{label(data)} does not fit the disk: it needs about {needed:,} MB in {where} "
            f"({data_mb(data, fillfactor):,} MB of tables, for the template, one copy and WAL) and {free:,.0f} MB are "
            f"free; lower the scale, free some space, or {cure}"
        )
