"""The server's counter of live rows after a load: what a session of the load reports late is not counted twice."""

from __future__ import annotations

import threading

import pytest

from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.order_entry_tables import TABLES as OF_ORDER_ENTRY
from pgtrial.loads.data.order_entry_tables import OrderEntryTables
from pgtrial.loads.data.pgbench_tables import TABLES as OF_PGBENCH
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.suite_tables import GENERATORS as OF_SUITES
from pgtrial.loads.data.suite_tables import SuiteTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.data.task_table import TaskTable
from pgtrial.loads.load_makers import LoadMaker

pytestmark = pytest.mark.server


class LateMaker(LoadMaker):
    """Makes small tables of these names in place of the engine's, by a session that ends a second later."""

    def __init__(self, target, tables):
        self.target, self.tables = target, tables
        self.ending: threading.Timer

    def make(self, order, on_line=None):
        late = self.target.connect_as_user()
        with late.transaction():
            for table in self.tables:
                late.execute(f"CREATE TABLE {table} (n int)")
            for query in [word.removeprefix("--mark-by=") for word in order.command if word.startswith("--mark-by=")]:
                cursor = late.execute(query.encode())
                while cursor.nextset():
                    pass
                late.execute(cursor.fetchone()[0].encode())
        for table in self.tables:  # what follows within a second of a report is reported at the end
            late.execute(f"INSERT INTO {table} SELECT generate_series(1, 60)")
        self.ending = threading.Timer(1.0, late.close)
        self.ending.start()


@pytest.mark.parametrize(
    ("data", "tables"),
    [
        (PgbenchTables(1), OF_PGBENCH),
        (OrderEntryTables(1), OF_ORDER_ENTRY),
        (TaskTable(1, 60), ["table_a"]),
        (SysbenchTables("oltp_read_write", (), 1, 2, 60), ["sbtest1", "sbtest2"]),
        (SuiteTables("joins", 1), OF_SUITES["joins"].tables),
    ],
    ids=["pgbench", "order entry", "tasks", "sysbench", "suite"],
)
def test_rows_of_a_session_that_ends_late_are_counted_once(start_cluster, data, tables):
    target = start_cluster().target
    others = target.connect_as_user()  # on a given server others work, too
    maker = LateMaker(target, tables)
    data.make(target, lambda line: None, maker)
    maker.ending.join()
    with target.connect_as_user() as connection:
        wait_for_clients_to_leave(connection, 1, 60.0)
        rows = connection.execute("SELECT relname, n_live_tup FROM pg_stat_user_tables").fetchall()
    others.close()
    assert dict(rows) == dict.fromkeys(tables, 60)
