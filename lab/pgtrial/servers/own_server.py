"""What is done by SQL with a server of our own, wherever it runs: its data loaded and put back, its connections."""

from __future__ import annotations

from collections.abc import Callable

from pgtrial.loads.data.kinds import Data
from pgtrial.loads.data.sizes import SEGMENT_MB, prefilled_wal_mb
from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker
from pgtrial.loads.target import Target
from pgtrial.model.study.spec import SetUp


def load_data(target: Target, data: Data, on_progress: Callable[[str], None], maker: DataMaker = ENGINE_HERE) -> None:
    """Load the data, and leave WAL files for the trials to find. Raises ArmError."""
    data.make(target, on_progress, maker)
    _prefill_wal(target, data)


def reset_data(target: Target, data: Data, setup: SetUp) -> None:
    """Bring the data of a trial before near its first state, as the set-up says."""
    with target.connect() as connection:
        data.reset(connection, "none" if setup.reset == "none" else "vacuum")


def connections_of(target: Target) -> tuple[int, int]:
    """max_connections, and how many of them are reserved."""
    with target.connect() as connection:
        rows = connection.execute(
            "SELECT name, setting::int FROM pg_settings WHERE name IN "
            "('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
        ).fetchall()
    values = dict(rows)
    reserved = values.get("superuser_reserved_connections", 0) + values.get("reserved_connections", 0)
    return values["max_connections"], reserved


def _prefill_wal(target: Target, data: Data) -> None:
    """Use up segments and recycle them, so that trials find ready-made WAL files (see data.sizes)."""
    with target.connect() as connection:
        for _ in range(prefilled_wal_mb(data) // SEGMENT_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'pgtrial', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
