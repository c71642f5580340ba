"""The command of the published comparison of managed clouds, with the names of sysbench 0.5, on a smaller scale."""

from __future__ import annotations

import re

import pytest

from tests.engine.sysbench.test_statements import counted
from tests.engine.sysbench.test_tpcc import count_of

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


TABLES = 5
ROWS = 450
CLIENTS = 200
SIZE = f"--test=oltp.lua --oltp-tables-count={TABLES} --oltp-table-size={ROWS}"
SELECTS_OFF = (
    "--oltp_simple_ranges=0 --oltp-distinct-ranges=0 --oltp-sum-ranges=0 --oltp-order-ranges=0 --oltp-point-selects=0"
)
RUN = (
    f"{SIZE} --max-requests=0 --forced-shutdown --report-interval=1 {SELECTS_OFF} --rand-type=uniform --max-time=2"
    f" --num-threads={CLIENTS} run"
)
MODERN = f"--tables={TABLES} --table-size={ROWS} --rand-type=uniform --skip-trx=off"

_WAITING = ("synchronous_commit = on", "commit_siblings = 0", "commit_delay = 100000", "deadlock_timeout = 1000")
"""Settings that make each commit wait 0.1 s. Waiting commits, and sessions that wait for their locks, leave the
processors to other tests.
"""

CUT_OFF = 2
"""The status of a run that --forced-shutdown without a number cuts off at the end of its time."""


def bare(counts: dict[str, int]) -> dict[str, int]:
    """Statements by their words alone: placeholders, blanks and what no event does left out."""
    found: dict[str, int] = {}
    for words, calls in counts.items():
        key = re.sub(r"\s*([(),=+])\s*", r"\1", re.sub(r"\$\d+|\b\d+\b|'[^']*'", "#", words))
        found[key] = found.get(key, 0) + calls
    return found


@pytest.fixture
def prepared(sides, databases, tmp_path):
    theirs, mine = databases
    modern = f"oltp_write_only {MODERN} prepare"
    assert sides[0].run(theirs, *modern.split(), directory=tmp_path).status == 0
    done = sides[1].run(mine, *f"{SIZE} prepare".split(), directory=tmp_path)
    assert done.status == 0, done.stdout + done.stderr
    with mine.connect_as_user() as connection:
        for setting in _WAITING:
            connection.execute(f"ALTER DATABASE {mine.dbname} SET {setting}")
    yield databases
    with mine.connect_as_user() as connection:
        connection.execute(f"ALTER DATABASE {mine.dbname} RESET ALL")


def test_the_published_command_makes_its_tables(prepared):
    for target in prepared:
        with target.connect_as_user() as connection:
            for number in range(1, TABLES + 1):
                assert connection.execute(f"SELECT count(*) FROM sbtest{number}").fetchall() == [(ROWS,)]


def test_the_published_command_makes_a_load_of_writes_only(sides, server, prepared, tmp_path):
    theirs, mine = prepared
    modern = f"oltp_write_only {MODERN} --threads=4 --events=400 --time=0 run"
    expected = bare(counted(server.target, sides[0], theirs, modern, tmp_path))
    found = bare(counted(server.target, sides[1], mine, RUN, tmp_path, status=CUT_OFF))
    assert set(found) - {"ROLLBACK"} == set(expected) - {"ROLLBACK"}
    assert not any(words.startswith("SELECT") for words in found)
    # One COMMIT of text ends an event. Before it the four statements were executed once, those that come first for each
    # try: an event that failed was rolled back and begun again, and at the end each client may be in one.
    writes = [calls for words, calls in found.items() if words.startswith(("UPDATE", "DELETE", "INSERT"))]
    assert len(writes) == 4
    assert 0 < found["COMMIT"] <= min(writes)
    assert max(writes) <= found["COMMIT"] + found.get("ROLLBACK", 0) + CLIENTS


def test_the_original_is_cut_off_alike(sides, prepared, tmp_path):
    line = f"oltp_write_only {MODERN} --threads=50 --max-time=1 --max-requests=0 --forced-shutdown run"
    ends = [side.run(target, *line.split(), directory=tmp_path) for side, target in zip(sides, prepared, strict=True)]
    assert ends[1].status == CUT_OFF
    # the original pulls the ground from under its threads, and crashes at times; or they all ended before it looked
    assert ends[0].status in (0, CUT_OFF) or ends[0].status < 0
    unfinished = r"^Number of unfinished transactions on forced shutdown: \d+$"
    said = [re.search(unfinished, done.stdout, flags=re.MULTILINE) is not None for done in ends]
    assert said[1]
    assert said[0] or ends[0].status != CUT_OFF


def test_the_published_command_reports_as_it_runs(sides, prepared, tmp_path):
    done = sides[1].run(prepared[1], *RUN.split(), directory=tmp_path)
    assert done.status == CUT_OFF, done.stdout + done.stderr
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\n" in done.stdout
    intervals = re.findall(rf"^\[ \d+s \] thds: {CLIENTS} tps: [\d.]+ qps: ", done.stdout, flags=re.MULTILINE)
    assert len(intervals) >= 1
    assert f"Number of threads: {CLIENTS}\n" in done.stdout
    assert count_of("read", done.stdout) == 0
    assert count_of("transactions", done.stdout) > 0
