"""Data is made by all machines of a fleet, and is what one engine makes alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.loads.data.pgbench_tables import PgbenchTables, find_tables, tables_order
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.data.task_table import TaskTable, creation_s
from pgtrial.loads.fleet.fleet import Fleet
from pgtrial.model.errors import ArmError
from pgtrial.model.study.fleet import FleetSection
from tests.conftest import require_engine
from tests.loads.fleet.here import Here

SCRIPT = """
local names = require("names")
function prepare()
   local con = sysbench.sql.driver():connect()
   local drawn = sysbench.rand.uniform(1, 1000000)
   con:query("CREATE TABLE " .. names.of(sysbench.tid) .. " AS SELECT " .. drawn .. " AS drawn")
end
sysbench.cmdline.commands = { prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND} }
"""
NAMES = 'return { of = function(number) return "own" .. number end }\n'


@pytest.fixture
def machines():
    require_engine()
    machines = Here("a", "b")
    yield machines
    machines.close()


@pytest.fixture
def fleet(machines):
    fleet = Fleet(FleetSection(), machines, range(2))
    fleet.gather()
    return fleet


@pytest.fixture
def target(clusters):
    server = clusters(18).target
    with server.connect_as_user() as connection:
        connection.execute("CREATE DATABASE shared TEMPLATE template0")
    yield replace(server, dbname="shared")
    with server.connect_as_user() as connection:
        connection.execute("DROP DATABASE shared WITH (FORCE)")


def value(target, query):
    with target.connect_as_user() as connection:
        return connection.execute(query).fetchone()[0]


def lines_of(messages, machine):
    return [line.removeprefix(f"{machine}: ") for line in messages if line.startswith(f"{machine}: ")]


@pytest.mark.server
def test_each_machine_makes_some_of_the_tables_of_a_sysbench_test(fleet, target):
    messages: list[str] = []
    data = SysbenchTables("oltp_read_write", ("--tables=3", "--table-size=50"), 2, 3, 50)
    data.make(target, messages.append, fleet)
    assert [line.split(" (")[0] for line in messages] == [f"table {number} of 3" for number in (1, 2, 3)]
    assert [value(target, f"SELECT count(*) FROM sbtest{number}") for number in (1, 2, 3)] == [50] * 3
    with pytest.raises(ArmError, match=r"oltp_read_write failed on the machine [ab]: .*already exists"):
        data.make(target, messages.append, fleet)


@pytest.mark.server
def test_the_threads_of_a_scripts_prepare_are_shared_out_and_its_files_travel(fleet, target):
    scripts = (("names.lua", NAMES), ("own.lua", SCRIPT))
    SysbenchTables("own.lua", (), 3, scripts=scripts).make(target, lambda line: None, fleet)
    drawn = [value(target, f"SELECT drawn FROM own{number}") for number in range(3)]
    with target.connect_as_user() as connection:
        connection.execute("DROP TABLE own0, own1, own2")
    SysbenchTables("own.lua", (), 3, scripts=scripts).make(target, lambda line: None)
    assert drawn == [value(target, f"SELECT drawn FROM own{number}") for number in range(3)]


@pytest.mark.server
def test_what_a_script_prepares_in_one_thread_is_made_once(fleet, target):
    text = 'function prepare() sysbench.sql.driver():connect():query("CREATE TABLE once ()") end\n'
    data = SysbenchTables("own.lua", (), 3, scripts=(("own.lua", text),))
    data.make(target, lambda line: None, fleet)
    with target.connect_as_user() as connection:
        assert data.find(connection)


@pytest.mark.server
def test_each_machine_makes_some_rows_of_table_a(fleet, target):
    messages: list[str] = []
    data = TaskTable(3, 40)
    data.make(target, messages.append, fleet)
    assert [line.split(" (")[0] for line in lines_of(messages, "b")] == ["40 of 40 rows of table_a made"]
    assert len(lines_of(messages, "a")) == 2
    with target.connect_as_user() as connection:
        assert data.find(connection)
        assert creation_s(connection) is None
        rows = "SELECT thread_id, count(*), min(a_value), max(a_value) FROM table_a GROUP BY 1 ORDER BY 1"
        assert connection.execute(rows).fetchall() == [(number, 40, 1, 40) for number in (1, 2, 3)]


SUMS = "SELECT md5(string_agg(a::text, ';' ORDER BY aid)) FROM pgbench_accounts a"


@pytest.mark.server
def test_each_machine_loads_some_rows_of_pgbenchs_tables(fleet, target):
    messages: list[str] = []
    contents = PgbenchTables(1, 90, True)
    contents.make(target, messages.append, fleet)
    assert lines_of(messages, "a")[0] == lines_of(messages, "b")[0] == "generating data (client-side)..."
    # on a slow machine there are lines about less before
    assert lines_of(messages, "b")[-2].startswith("50000 of 50000 tuples (100%) of pgbench_accounts done")
    with target.connect_as_user() as connection:
        found = find_tables(connection)
    assert found is not None
    assert (found.contents, found.missing) == (contents, ())
    shared = value(target, SUMS)
    assert (value(target, "SELECT count(*) FROM pgbench_tellers"), value(target, "TABLE pgbench_branches")) == (10, 1)
    contents.make(target, lambda line: None)
    assert value(target, SUMS) == shared


@pytest.mark.server
def test_a_lost_machine_ends_the_others_and_the_load_begins_again_with_the_rows(machines, fleet, target):
    contents = PgbenchTables(1, 100, False)

    def break_off(line):
        if "generating" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contents.make(target, break_off, fleet, in_steps=True)
    with target.connect_as_user() as connection, connection.transaction():
        # nobody gets on with the rows before the others have heard of the loss
        connection.execute("LOCK TABLE pgbench_accounts")

        def lose(line):
            if line.startswith("b: "):
                machines.gone.add("b")
                machines.agents["b"].close()

        order = tables_order(target.environment(), 1, "g", engines=2)
        with pytest.raises(ArmError) as failed:
            fleet.make(order, lose)
        why = "the machine was lost: its node has left the Ray cluster"
        assert str(failed.value) == f"loading the tables at scale 1 failed on the machine b: {why}"
    with target.connect_as_user() as connection:
        found = find_tables(connection)
        assert found is not None
        assert found.missing == ("g", "v", "p")
    assert fleet.engines == 1
    contents.make(target, lambda line: None, fleet, in_steps=True)
    assert value(target, "SELECT count(*) FROM pgbench_accounts") == 100_000


def test_all_engines_together_take_few_connections():
    jobs = [tables_order({}, 5, "g", engines=engines).command[-1] for engines in (2, 3, 9)]
    assert jobs == ["--load-jobs=4", "--load-jobs=2", "--load-jobs=1"]
