"""The server executes the same statements, as often, for the same options: what it counted for the two sides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.engine.sysbench.sides import Side, original, ours

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


TABLES = 2
ROWS = 1000
EVENTS = 60
READING = ["oltp_read_only", "oltp_point_select", "select_random_points", "select_random_ranges"]
WRITING = [
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
]
OPTIONS = [
    "",
    "--db-ps-mode=disable",
    "--skip_trx=on",
    "--skip_trx=on --db-ps-mode=disable",
    "--range_selects=off",
    "--secondary=on",
    "--auto_inc=off",
    "--point-selects=3 --simple-ranges=2 --sum-ranges=0 --order-ranges=4 --distinct-ranges=2",
    "--index-updates=3 --non-index-updates=2 --delete-inserts=0",
    "--tables=1 --delete-inserts=2",
    "--rand-type=uniform --threads=3",
]
OWN = {
    "select_random_points": ["--random-points=1", "--random-points=25"],
    "select_random_ranges": ["--number-of-ranges=1", "--number-of-ranges=7 --delta=50"],
}
RUNS = [
    *((test, options) for test in ("oltp_read_only", "oltp_read_write", "oltp_write_only") for options in OPTIONS),
    *((test, options) for test in (READING + WRITING) for options in ("", "--db-ps-mode=disable --tables=1")),
    *((test, options) for test, own in OWN.items() for options in own),
]


@pytest.fixture(scope="module")
def prepared(sides: tuple[Side, Side], new_databases, tmp_path_factory) -> tuple[Target, Target]:
    """Two databases with the original's tables."""
    pair: tuple[Target, Target] = new_databases()
    line = f"oltp_read_write --tables={TABLES} --table-size={ROWS} --auto-inc=on prepare"
    for target in pair:
        assert sides[0].run(target, *line.split(), directory=tmp_path_factory.mktemp("prepared")).status == 0
    return pair


def counted(server: Target, side: Side, target: Target, line: str, path: Path, *, status: int = 0) -> dict[str, int]:
    """Returns how often a run executed each statement. Statements that differ only in the table's number are counted
    together.
    """
    with server.connect_as_user() as connection:
        connection.execute(
            "SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = %s", [target.dbname]
        )
        done = side.run(target, *line.split(), directory=path)
        assert done.status == status, done.stdout + done.stderr
        rows = connection.execute(
            "SELECT query, calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
            " WHERE datname = %s AND calls > 0",
            [target.dbname],
        ).fetchall()
    counts: dict[str, int] = {}
    for query, calls in rows:
        words = re.sub(r"\bsbtest\d+\b", "sbtest#", query)
        counts[words] = counts.get(words, 0) + calls
    return counts


@pytest.mark.parametrize("run", [f"{test} {options}" for test, options in RUNS])
def test_the_server_counts_the_same_statements(both, server, prepared, tmp_path, run):
    test, *options = run.split()
    line = " ".join([test, f"--tables={TABLES} --table-size={ROWS} --events={EVENTS} --time=0", *options, "run"])
    if "--threads" in line and "oltp_read_only" not in line:
        theirs, mine = (
            counted(server.target, side, target, line, tmp_path)
            for side, target in zip((original(), ours()), prepared, strict=True)
        )
        # an event that meets another one is rolled back and begun again, on either side or on neither
        for counts in (mine, theirs):
            counts.pop("ROLLBACK", None)
        # The other threads may leave one of them no event on a busy machine. BEGIN and COMMIT are counted once for each
        # of the three threads that had events.
        assert mine == pytest.approx(theirs, rel=0.2, abs=2)
    else:
        theirs, mine = both(lambda side, target: counted(server.target, side, target, line, tmp_path), prepared)
        assert mine == theirs
    assert sum(theirs.values()) >= EVENTS


def test_the_server_counts_the_same_statements_of_a_bulk_insert(both, server, databases, tmp_path):
    def act(side, target):
        assert side.run(target, "bulk_insert", "prepare", directory=tmp_path).status == 0
        # half a megabyte in a statement: some whole ones, and a part
        counts = counted(server.target, side, target, "bulk_insert --events=100000 --time=0 run", tmp_path)
        inserts = sum(calls for words, calls in counts.items() if words.startswith("INSERT"))
        return {"inserts": inserts, "statements": len(counts)}

    theirs, mine = both(act, databases)
    assert mine == theirs
    assert mine["inserts"] >= 2
