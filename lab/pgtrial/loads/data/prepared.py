"""Data that a workload brings with it, in place of pgbench's tables: what a sysbench test prepares, or table_a."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import psycopg

from pgtrial.loads.data import sbtest, table_a
from pgtrial.loads.data.sbtest import SysbenchData
from pgtrial.loads.data.table_a import TableA
from pgtrial.loads.data.tables import Server
from pgtrial.loads.data_makers import ENGINE_HERE, DataMaker

Prepared = SysbenchData | TableA

_Connection = psycopg.Connection[tuple[Any, ...]]


def prepare(
    server: Server,
    data: Prepared,
    on_progress: Callable[[str], None],
    maker: DataMaker = ENGINE_HERE,
) -> None:
    """Make it on a server that does not have it, and mark it as pgtrial's. Raises ArmError."""
    if isinstance(data, TableA):
        table_a.make(server, data, on_progress, maker)
    else:
        sbtest.prepare_tables(server, data, on_progress, maker)


def find(connection: _Connection, data: Prepared) -> bool:
    """Whether this very data is there. Raises StudyError for somebody else's in its place."""
    return table_a.find(connection, data) if isinstance(data, TableA) else sbtest.find_prepared(connection, data)


def drop_others(connection: _Connection, data: Prepared) -> None:
    """Drop what pgtrial made in its place, or did not finish; the engine replaces a table_a by itself."""
    if isinstance(data, SysbenchData):
        sbtest.drop_prepared(connection)


def reset(connection: _Connection, data: Prepared, how: Literal["vacuum", "none"]) -> None:
    """Leave no dead rows, or all as it is."""
    if isinstance(data, TableA):
        table_a.reset(connection, how)
    else:
        sbtest.reset_prepared(connection, data, how)
