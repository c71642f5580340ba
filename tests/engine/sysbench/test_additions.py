"""Tests of what the engine adds to sysbench and of what it refuses; sysbench has nothing to compare with."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.engine.events import done_of, events_of
from tests.engine.sysbench.runs import SCRIPTS
from tests.engine.sysbench.sides import ours
from tests.engine.sysbench.test_tpcc import count_of

pytestmark = pytest.mark.server


TABLE = "--table-size=100"


@pytest.fixture
def run(databases, tmp_path):
    """Run our side on a database with one table."""
    side, target = ours(), databases[1]
    assert side.run(target, "oltp_read_write", TABLE, "prepare", directory=tmp_path).status == 0
    return lambda line: side.run(target, *line.split(), directory=tmp_path)


@pytest.mark.parametrize("line", ["oltp_read_only run", "oltp_read_write prepare", "oltp_insert cleanup"])
def test_mysql_is_refused(run, line):
    done = run(f"--db-driver=mysql --mysql-host=nowhere {line}")
    assert done.status == 1
    assert done.stdout.endswith(
        "\nFATAL: pgtrial is for PostgreSQL: use --db-driver=pgsql, or sysbench itself for MySQL\n"
    )


def test_a_script_is_refused_mysql_when_it_connects(databases, tmp_path):
    shutil.copy(SCRIPTS / "no_database.lua", tmp_path)
    line = "no_database.lua --db-driver=mysql --mysql-host=nowhere --events=1 --ask --connect run"
    done = ours().run(databases[1], *line.split(), directory=tmp_path)
    assert done.status == 1
    assert "\ndriver\tmysql\t<sql_driver>\n" in done.stdout
    assert "\nFATAL: pgtrial is for PostgreSQL: use --db-driver=pgsql, or sysbench itself for MySQL\n" in done.stdout
    assert done.stdout.endswith(" function failed: no_database.lua:13: connection creation failed\n")


def test_several_percentiles_are_reported_in_their_order(run):
    done = run(f"oltp_point_select {TABLE} --events=200 --time=0 --percentiles=50,99,99.9 run")
    found = re.findall(r"^ +([\d.]+)th percentile: +([\d.]+)$", done.stdout, flags=re.MULTILINE)
    assert [name for name, _ in found] == ["95", "50", "99", "99.9"]
    by_name = {float(name): float(value) for name, value in found}
    assert by_name[50] <= by_name[95] <= by_name[99] <= by_name[99.9]


@pytest.mark.parametrize("options", ["--threads=1", "--threads=4", "--threads=40", "--threads=4 --rate=100"])
def test_as_many_events_are_measured_after_a_warm_up_as_asked_for(run, tmp_path, options):
    """Events that are under way when the warm-up ends are measured, and count."""
    (tmp_path / "slow.lua").write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        "function event() con:query('SELECT pg_sleep(0.05)') end\n"
    )
    done = run(f"slow.lua --events=20 --time=0 --warmup-time=1 {options} run")
    assert done.status == 0, done.stdout
    assert count_of("total number of events", done.stdout) == 20


def test_a_warm_up_is_not_counted(run, tmp_path):
    done = run(f"oltp_point_select {TABLE} --rate=50 --warmup-time=3 --time=1 --rand-seed=7 --jsonl=events.jsonl run")
    assert done.status == 0
    assert "Warming up for 3 seconds...\n" in done.stdout
    end = done_of(events_of((tmp_path / "events.jsonl").read_text()))
    assert (end["warmup"]["duration_s"], end["measure"]["duration_s"]) == (3, 1)
    assert end["warmup"]["transactions"] > 0
    # however late a busy machine does them
    counted = end["measure"]["transactions"] + end["drain"]["transactions"]
    assert count_of("total number of events", done.stdout) == counted > 0
    (seconds,) = re.findall(r"total time: +([\d.]+)s", done.stdout)
    assert float(seconds) == pytest.approx(1 + end["drain"]["duration_s"], abs=0.01)


def test_clients_share_a_few_threads(run):
    done = run(f"oltp_point_select {TABLE} --threads=50 --jobs=2 --events=500 --time=0 run")
    assert done.status == 0
    assert "Number of threads: 50\n" in done.stdout
    assert count_of("total number of events", done.stdout) == 500


@pytest.mark.parametrize(
    "options", ["--rand-type=zipfian", "--rand-type=zipfian --rand-zipfian-exp=1.5", "--compat=master"]
)
def test_later_distributions_run(run, options):
    done = run(f"oltp_read_only {TABLE} --events=20 --time=0 {options} run")
    assert done.status == 0
    assert count_of("read", done.stdout) == 20 * 14


def test_events_are_written_as_json_lines(run, tmp_path):
    done = run(f"oltp_read_only {TABLE} --time=1 --rate=20 --jsonl=events.jsonl run")
    assert done.status == 0
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "hello"
    assert events[-1]["event"] == "done"
    ticks = [event for event in events if event["event"] == "tick"]
    assert sum(tick["queries"]["reads"] for tick in ticks) == count_of("read", done.stdout)
