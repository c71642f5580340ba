"""What is done by SQL with a server of our own, wherever it runs: its data loaded and put back, its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pgtrial.loads.data import prepared
from pgtrial.loads.data.sizes import SEGMENT_MB, Data, prefilled_wal_mb
from pgtrial.loads.data.tables import Contents, load_tables, reset_tables
from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker
from pgtrial.loads.target import Target
from pgtrial.model.study.spec import SetUp
from pgtrial.servers.arm import Needs


def load_data(
    target: Target,
    tables: Data,
    needs: Needs,
    on_progress: Callable[[str], None],
    maker: DataMaker = ENGINE_HERE,
) -> None:
    """Load the data, and leave WAL files for the trials to find. Raises ArmError."""
    if not isinstance(tables, int):
        prepared.prepare(target, tables, on_progress, maker)
    else:
        load_tables(target, Contents(tables, needs.fillfactor, needs.foreign_keys), on_progress, maker)
    _prefill_wal(target, tables)


def reset_data(target: Target, tables: Data, setup: SetUp) -> None:
    """Bring the data of a trial before near its first state, as the set-up says."""
    how: Literal["vacuum", "none"] = "none" if setup.reset == "none" else "vacuum"
    with target.connect() as connection:
        if not isinstance(tables, int):
            prepared.reset(connection, tables, how)
        else:
            reset_tables(connection, how)


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


def _prefill_wal(target: Target, tables: Data) -> None:
    """Use up segments and recycle them, so that trials find ready-made WAL files (see data.sizes)."""
    with target.connect() as connection:
        for _ in range(prefilled_wal_mb(tables) // SEGMENT_MB):
            connection.execute("SELECT pg_logical_emit_message(false, 'pgtrial', 'x')")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
