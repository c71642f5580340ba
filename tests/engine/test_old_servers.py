"""Tests of the engine on servers of old versions: the tables it makes and the loads it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import OLD_VERSIONS, require_engine
from tests.engine.programs import Program, ours
from tests.engine.sysbench.sides import ours as our_sysbench

pytestmark = pytest.mark.server


SYSBENCH_TESTS = [
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
]


@pytest.fixture(scope="module", params=OLD_VERSIONS, ids=lambda major: f"pg{major}")
def database(request: pytest.FixtureRequest, clusters: Callable[[int], Cluster]) -> Iterator[Target]:
    """Yields an empty database, which is dropped after the test."""
    server = clusters(request.param).target
    with server.connect_as_user() as connection:
        connection.execute("CREATE DATABASE old TEMPLATE template0")
        yield replace(server, dbname="old")
        connection.execute("DROP DATABASE old")


def value(target: Target, query: str) -> object:
    with target.connect_as_user() as connection:
        row = connection.execute(query.encode()).fetchone()
        return row and row[0]


def is_before_11(target: Target) -> bool:
    with target.connect_as_user() as connection:
        return connection.info.server_version < 110000


@pytest.mark.parametrize("line", ["", "-I dtGvpf", "--unlogged-tables --fillfactor=90", "--partitions=3"])
def test_pgbenchs_tables_are_made_and_its_scripts_run(database: Target, line: str) -> None:
    done = ours().run(database, "-i", "-q", *line.split())
    if "--partitions" in line and is_before_11(database):
        assert done.status == 1
        assert "primary key constraints are not supported on partitioned tables" in done.stderr
        return
    assert done.status == 0, done.stderr
    assert value(database, "SELECT count(*) FROM pgbench_accounts") == 100_000
    for script in ("tpcb-like", "simple-update", "select-only"):
        for protocol in ("simple", "extended", "prepared"):
            done = ours().run(database, "-b", script, "-M", protocol, "-c", "2", "-t", "10")
            assert done.status == 0, done.stderr
            assert "actually processed: 20/20\n" in done.stdout


@pytest.mark.parametrize("test", SYSBENCH_TESTS)
def test_sysbenchs_tables_are_made_and_its_tests_run(database: Target, test: str, tmp_path) -> None:
    for command in ("prepare", "run", "cleanup"):
        options = ("--table-size=200", "--threads=1", "--events=20", "--time=0")
        done = our_sysbench().run(database, *options, test, command, directory=tmp_path)
        assert done.status == 0, done.stdout
        if command == "run":
            assert re.search(r"total number of events: +20$", done.stdout, re.MULTILINE)


def test_the_tasks_table_is_made_and_tasks_run(database: Target) -> None:
    tasks = Program("tasks", (str(require_engine()), "tasks"))
    done = tasks.run(database, "-i", "-q", "--threads-in-table=2", "--rows=100", "--tasks=30", "--pool=3")
    assert done.status == 0, done.stderr
    assert value(database, "SELECT count(*) FROM table_a") == 200


def test_order_entry_is_made_and_run_and_its_procedures_are_refused_where_there_are_none(database: Target) -> None:
    order_entry = Program("order-entry", (str(require_engine()), "order-entry"))
    assert order_entry.run(database, "load").status == 0
    done = order_entry.run(database, "run", "-t", "20", "--random-seed", "1")
    assert (done.status, done.stderr) == (0, "")
    called = order_entry.run(database, "run", "-t", "20", "--random-seed", "1", "--procedures")
    if is_before_11(database):
        assert called.status == 3
        assert "error: --procedures needs PostgreSQL 11 or later, and this server is " in called.stderr
    else:
        assert (called.status, called.stderr) == (0, "")
    assert order_entry.run(database, "check").status == 0
