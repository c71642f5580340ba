"""The tables of sysbench's own tests are made by all machines of a fleet."""

from __future__ import annotations

import pytest

from pgtrial.errors import ArmError
from pgtrial.fleet.fleet import Fleet
from pgtrial.study.fleet import FleetSection
from tests.conftest import require_engine
from tests.fleet.here import Here

OPTIONS = ["--threads=2", "--rand-seed=1", "--tables=3", "--table-size=50"]


@pytest.fixture
def fleet():
    require_engine()
    machines = Here("a", "b")
    fleet = Fleet(FleetSection(), machines, range(2))
    fleet.gather()
    yield fleet
    machines.close()


def test_each_machine_makes_some_of_the_tables(fleet, start_cluster):
    target = start_cluster().target
    said: list[str] = []
    fleet.preparing(target.environment(), "oltp_read_write", OPTIONS, on_line=said.append)
    assert sorted(line for line in said if line.startswith("Creating table")) == [
        f"Creating table 'sbtest{number}'..." for number in (1, 2, 3)
    ]
    with target.connect() as connection:
        counts = [connection.execute(f"SELECT count(*) FROM sbtest{number}").fetchone() for number in (1, 2, 3)]
    assert counts == [(50,)] * 3
    with pytest.raises(ArmError, match=r"oltp_read_write failed on the machine [ab]: .*already exists"):
        fleet.preparing(target.environment(), "oltp_read_write", OPTIONS)


def test_a_script_is_prepared_by_one(fleet, start_cluster, tmp_path):
    target = start_cluster().target
    script = tmp_path / "own.lua"
    script.write_text('function prepare() sysbench.sql.driver():connect():query("CREATE TABLE once ()") end\n')
    fleet.preparing(target.environment(), str(script), ["--threads=1"])
    with target.connect() as connection:
        assert connection.execute("SELECT to_regclass('once') IS NOT NULL").fetchone() == (True,)
