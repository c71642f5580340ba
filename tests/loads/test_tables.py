"""The tables on a real server."""

from __future__ import annotations

import pytest

from pgtrial.loads.data.pgbench_tables import PgbenchTables, find_tables
from pgtrial.model.errors import ArmError
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture
def server(start_cluster):
    return start_cluster().target


def test_an_empty_database_has_no_tables(server):
    with server.connect_as_user() as connection:
        assert find_tables(connection) is None


@pytest.mark.parametrize("contents", [PgbenchTables(1, 100, False), PgbenchTables(2, 80, True)])
def test_what_was_loaded_is_found_again(server, contents):
    require_engine()
    lines: list[str] = []
    contents.make(server, lines.append)
    with server.connect_as_user() as connection:
        found = find_tables(connection)
        assert found is not None
        assert found.contents == contents
        assert found.ours
        assert lines


def test_a_reset_empties_the_history_and_removes_dead_rows(server):
    require_engine()
    PgbenchTables(1, 100, False).make(server, lambda line: None)
    with server.connect_as_user() as connection:
        connection.execute("INSERT INTO pgbench_history(tid) VALUES (1)")
        connection.execute("UPDATE pgbench_branches SET bbalance = 1")
        assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (1,)
        PgbenchTables(1).reset(connection)
        assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (0,)


def test_remains_of_tables_are_told(server):
    with server.connect_as_user() as connection:
        connection.execute("CREATE TABLE pgbench_branches (bid int)")
        with pytest.raises(ArmError, match="lacks pgbench_accounts, pgbench_history, pgbench_tellers"):
            find_tables(connection)
