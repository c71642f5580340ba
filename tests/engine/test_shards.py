"""Runs that several engines share: together they do what one does alone, from one moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.conftest import require_engine
from tests.engine.events import Event, done_of, events_of, of_kind, run_with_events, wait_for
from tests.engine.programs import Ended, Program, ended
from tests.engine.sysbench.sides import ours as sysbench

TPCB_LIKE = "SELECT tid, bid, aid, delta FROM pgbench_history"
DRAWN = "SELECT client, value, hashed, place, seed FROM drawn"
SCRIPT = r"""
\set value random_zipfian(1, 1000000, 1.1)
\set hashed hash(:value)
\set place permute(:value, 1000000)
INSERT INTO drawn VALUES (:client_id, :value, :hashed, :place, :random_seed);
"""
LUA = """
function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end
function event()
   con:query(string.format("INSERT INTO seen VALUES (%d, %d, %d)",
      sysbench.tid, sysbench.opt.threads, sysbench.rand.unique() % 2147483648))
   con:query("SELECT pg_sleep(0.001)")
end
"""


@pytest.fixture(scope="session")
def tasks() -> Program:
    """Returns the front end of tasks."""
    return Program("tasks", (str(require_engine()), "tasks"))


@pytest.fixture
def target(fresh) -> Target:
    """Returns a loaded database with empty tables, into which scripts write what they drew, and with table_a."""
    made: Target = fresh(18)
    with made.connect_as_user() as connection:
        connection.execute("CREATE TABLE drawn (client int, value bigint, hashed bigint, place bigint, seed bigint)")
        connection.execute("CREATE TABLE seen (tid int, threads int, number bigint)")
        connection.execute("CREATE TABLE began (at timestamptz)")
        connection.execute("CREATE TABLE table_a AS SELECT 1 AS thread_id, a AS a_value FROM generate_series(1, 9) a")
    return made


@pytest.fixture
def script(tmp_path) -> Path:
    path: Path = tmp_path / "script.sql"
    path.write_text(SCRIPT)
    return path


def taken(target: Target, sql: str, table: str) -> list[tuple[object, ...]]:
    """Returns the rows of the table and empties the table."""
    with target.connect_as_user() as connection:
        rows = sorted(connection.execute(sql).fetchall())
        connection.execute(f"TRUNCATE {table}")
    return rows


def run_all(program: Program, target: Target, path: Path, shards: int, *args: str) -> list[list[Event]]:
    """Runs every shard, one after another; returns the events of each."""
    events = []
    for number in range(1, shards + 1):
        done, told = run_with_events(program, target, path, *args, f"--shard={number}/{shards}")
        assert done.status == 0, done.stderr
        events.append(told)
    return events


@pytest.mark.server
@pytest.mark.parametrize("shards", [2, 3, 5])
def test_shards_do_together_what_one_engine_does_alone(peers, target, tmp_path, script, shards):
    for sql, table, what in [
        (TPCB_LIKE, "pgbench_history", ["-b", "tpcb-like"]),
        (DRAWN, "drawn", ["-f", str(script), "-j", "2", "-M", "prepared"]),
    ]:
        line = ("-n", "-c", "5", "-t", "7", "--random-seed=42", *what)
        assert peers[1].run(target, *line).status == 0
        whole = taken(target, sql, table)
        events = run_all(peers[1], target, tmp_path / "events", shards, *line)
        assert taken(target, sql, table) == whole
        assert len(whole) == 35
        assert [told[0]["plan"]["shard"] for told in events] == [
            {"number": number, "of": shards, "clients": 5} for number in range(1, shards + 1)
        ]
        clients = [told[0]["plan"]["clients"] for told in events]
        assert sum(clients) == 5
        assert clients == sorted(clients, reverse=True)
        assert sum(done_of(told)["measure"]["transactions"] for told in events) == 35


@pytest.mark.server
def test_only_the_first_shard_clears_the_tables_before_the_run(peers, target):
    line = ("-c", "2", "-t", "1", "--random-seed=1")
    for shard, rows in [("1/2", 1), ("2/2", 2), ("2/2", 3), ("1/2", 1)]:
        done = peers[1].run(target, *line, f"--shard={shard}")
        assert done.status == 0, done.stderr
        assert ("starting vacuum" in done.stderr) == shard.startswith("1")
        assert f"shard: {shard} of a run of 2 clients\n" in done.stdout
        with target.connect_as_user() as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (rows,)


@pytest.mark.server
@pytest.mark.parametrize("test", ["oltp_insert", "a script"])
def test_events_of_sysbench_are_shared_out_and_no_unique_number_is_drawn_twice(target, tmp_path, test):
    script = tmp_path / "insert.lua"
    script.write_text(LUA)
    side, options = sysbench(), ("--auto_inc=off", "--table-size=1") if test == "oltp_insert" else ()
    name = test if options else str(script)
    sql, table = ("SELECT id FROM sbtest1", "sbtest1") if options else ("SELECT number FROM seen", "seen")
    if options:
        assert side.run(target, name, *options, "prepare", directory=tmp_path).status == 0
        taken(target, sql, table)
    line = (name, *options, "--threads=4", "--events=200", "--time=0", "--rand-seed=5")

    def inserted(*more: str) -> list[tuple[object, ...]]:
        done = side.run(target, *line, *more, "run", directory=tmp_path)
        assert done.status == 0, done.stdout
        if not options:
            with target.connect_as_user() as connection:
                tids = connection.execute("SELECT min(tid), max(tid), min(threads), max(threads) FROM seen").fetchone()
            assert tids == {"--shard=1/2": (0, 1, 4, 4), "--shard=2/2": (2, 3, 4, 4)}.get(
                more[0] if more else "", (0, 3, 4, 4)
            )
        return taken(target, sql, table)

    whole = inserted()
    parts = [inserted("--shard=1/2"), inserted("--shard=2/2")]
    assert [len(part) for part in parts] == [100, 100]
    assert sorted(parts[0] + parts[1]) == whole
    assert len(set(whole)) == 200


@pytest.mark.server
def test_tasks_and_connections_of_a_pool_are_shared_out(tasks, target, tmp_path):
    line = ("-q", "--apps=2", "--tasks=31", "--pool=5", "--random-seed=3", "--threads-in-table=1", "--rows=9")
    line += ("--arrival=poisson:400",)
    numbers: Counter[tuple[str, ...]] = Counter()
    for number, size, own in [(1, 3, 19), (2, 2, 12)]:
        path = tmp_path / f"{number}.csv"
        done, events = run_with_events(
            tasks, target, tmp_path / "events", *line, "--csv", str(path), f"--shard={number}/2"
        )
        assert done.status == 0, done.stderr
        pools = events[0]["plan"]["pools"]
        assert (pools["size"], pools["tasks"], events[0]["plan"]["transactions"]) == (size, own, 2 * own)
        assert done_of(events)["tasks"]["completed"] == 2 * own
        numbers.update(tuple(row.split(",")[:2]) for row in path.read_text().splitlines()[1:])
    # each task of the whole run once, by its number there
    assert numbers == Counter((str(app), str(task)) for app in (1, 2) for task in range(1, 32))


def waiting(stack: ExitStack, program: Program, target: Target, path: Path, *args: str) -> subprocess.Popen[str]:
    """Starts an engine that waits to be told when to begin, and waits until it is ready."""
    events = f"--jsonl={path}" if program.name == "sysbench" else f"--events={path}"
    process = stack.enter_context(program.start(target, [events, "--start-at=-", *args], typed=True))
    stack.callback(process.kill)
    wait_for(path, lambda events: bool(of_kind(events, "ready")))
    return process


def tell(process: subprocess.Popen[str], line: str) -> Ended:
    assert process.stdin
    process.stdin.write(line)
    process.stdin.flush()
    return ended(process)


@pytest.mark.server
def test_shards_wait_for_one_another_and_begin_at_one_moment(peers, target, tmp_path):
    script = tmp_path / "began.sql"
    script.write_text("INSERT INTO began VALUES (clock_timestamp());")
    line = ("-n", "-f", str(script), "-c", "3", "-t", "2", "-j", "2", "--random-seed=1")
    paths = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    with ExitStack() as stack:
        processes = [
            waiting(stack, peers[1], target, path, *line, f"--shard={number}/2")
            for number, path in enumerate(paths, start=1)
        ]
        at = round(time.time() + 0.3, 3)
        for process in processes:
            assert process.stdin
            process.stdin.write(f"{at}\n")
            process.stdin.flush()
        assert [ended(process).status for process in processes] == [0, 0]
    for path, clients in zip(paths, (2, 1), strict=True):
        events = events_of(path.read_text())
        assert [event["event"] for event in events[:4]] == ["hello", "connected", "ready", "phase"]
        assert (events[2]["clients"], events[2]["connect_s"]) == (clients, events[1]["connect_s"])
        assert events[3]["planned_at"] == at
        assert at <= events[3]["at"] < at + 60
        assert all("at" not in event for event in of_kind(events, "phase")[1:])
    with target.connect_as_user() as connection:
        first = connection.execute("SELECT extract(epoch FROM min(at))::float8, count(*) FROM began").fetchone()
    assert first is not None
    assert first[0] >= at
    assert first[1] == 6


@pytest.mark.server
def test_a_moment_that_is_past_or_that_nobody_waits_for_is_now(peers, target, tmp_path):
    before = time.time()
    for more, planned in [((), None), (("--start-at=1.5",), 1.5)]:
        done, events = run_with_events(peers[1], target, tmp_path / "events", "-n", "-S", "-t", "1", *more)
        assert done.status == 0, done.stderr
        phase = of_kind(events, "phase")[0]
        assert phase.get("planned_at") == planned
        assert before - 1e-6 <= phase["at"] <= time.time()
        assert len(of_kind(events, "ready")) == len(more)
        late = [line for line in done.stderr.splitlines() if "after the time to start at (--start-at)" in line]
        assert len(late) == len(more), done.stderr
        assert all(line.startswith("pgbench: warning: the load began ") for line in late)


@pytest.mark.server
def test_a_load_that_begins_in_time_is_not_called_late(peers, target, tmp_path):
    with ExitStack() as stack:
        # ready, so that it need not even start before the moment
        process = waiting(stack, peers[1], target, tmp_path / "events", "-n", "-S", "-t", "1")
        done = tell(process, f"{time.time() - 0.01:.6f}\n")
    assert (done.status, done.stderr) == (0, "")


@pytest.mark.server
def test_tasks_and_sysbench_warn_of_a_late_start_too(tasks, target, tmp_path):
    line = ["-q", "--pool=2", "--threads-in-table=1", "--rows=9", "--apps=1", "--tasks=2"]
    done = tasks.run(target, *line, "--start-at=1.5")
    assert done.status == 0, done.stderr
    assert "pgtrial-engine tasks: warning: the load began " in done.stderr
    side = sysbench()
    line = ["oltp_point_select", "--table-size=10"]
    assert side.run(target, *line, "prepare", directory=tmp_path).status == 0
    done = side.run(target, *line, "--events=1", "--start-at=1.5", "run", directory=tmp_path)
    assert done.status == 0, done.stderr
    assert done.stderr.startswith("sysbench: the load began ")


def front_ends(tasks: Program, pgbench: Program) -> dict[str, tuple[Program, tuple[str, ...]]]:
    return {
        "pgbench": (pgbench, ("-n", "-S", "-T", "60")),
        "tasks": (tasks, ("-q", "--pool=2", "--threads-in-table=1", "--rows=9")),
    }


@pytest.mark.server
@pytest.mark.parametrize("front_end", ["pgbench", "tasks"])
def test_an_interrupt_ends_the_wait(peers, tasks, target, tmp_path, front_end):
    program, line = front_ends(tasks, peers[1])[front_end]
    path = tmp_path / "events"
    with ExitStack() as stack:
        process = waiting(stack, program, target, path, *line)
        os.kill(process.pid, signal.SIGINT)
        assert ended(process).status == 130
    done = done_of(events_of(path.read_text()))
    assert (done["interrupted"], done["status"], done["measure"]) == (True, 130, None)


@pytest.mark.server
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("soon\n", '"soon" is not a time to start at: give Unix seconds, such as 1795270323.5'),
        ("\n", '"" is not a time to start at: give Unix seconds, such as 1795270323.5'),
        ("9" * 500, "is not a time to start at"),
        (
            "4000000000\n",
            "s ahead of this machine's clock, and at most 60 s are allowed: check that time and the machines' clocks",
        ),
        ("1795270323", "standard input ended before a whole line with the time to start at (--start-at=-)"),
        ("", "standard input ended before a whole line with the time to start at (--start-at=-)"),
    ],
)
def test_what_is_no_moment_ends_the_run(peers, tasks, target, line, message):
    for front_end, (program, args) in front_ends(tasks, peers[1]).items():
        done = program.run(target, *args, "--start-at=-", typed=line)
        assert done.status == (1 if front_end == "pgbench" else 3)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.server
def test_sysbench_waits_and_says_why_it_does_not_begin(target, tmp_path):
    side = sysbench()
    assert side.run(target, "oltp_point_select", "--table-size=10", "prepare", directory=tmp_path).status == 0
    line = ["oltp_point_select", "--table-size=10", "--threads=2", "--events=10", "--start-at=-"]
    for typed, status, word in [(f"{time.time()}\n", 0, "total number of events:"), ("", 1, "standard input ended")]:
        done = side.run(target, *line, "run", directory=tmp_path, typed=typed)
        assert done.status == status
        assert word in done.stdout
    path = tmp_path / "events"
    with side.start(target, [*line, f"--jsonl={path}", "run"], directory=tmp_path, typed=True) as process:
        wait_for(path, lambda events: bool(of_kind(events, "ready")))
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130


SEEDED = "--random-seed=1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *((f"--shard={word} {SEEDED}", "it must be I/N") for word in ["0/2", "3/2", "x", "1", "1/0", "1/2/3"]),
        (f"--shard=1/3 -c 2 {SEEDED}", "--shard=1/3: 2 clients cannot be shared out among 3 shards"),
        ("--shard=1/2 -c 2", "--shard needs --random-seed with a number"),
        ("--shard=1/2 -c 2 --random-seed=time", "--shard needs --random-seed with a number"),
        (f"--shard=1/3 --pool=2 --tasks=9 {SEEDED}", "2 connections of a pool (--pool) cannot be shared out"),
        (f"--shard=1/3 --pool=9 --tasks=2 {SEEDED}", "2 tasks of an application (--tasks) cannot be shared out"),
        ("--start-at=soon", '"soon" is not a time to start at'),
        ("--start-at=-1", '"-1" is not a time to start at'),
        ("--start-at=99999999999", "at most 60 s are allowed"),
        ("-f - --start-at=-", "--start-at=- cannot be combined with --file=-"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_server_is_asked(peers, line, message):
    nowhere = Target("/nowhere", 1, "nobody", "nothing")
    done = peers[1].run(nowhere, "-S", *line.split(), typed="SELECT 1;")
    told = [text for text in done.stderr.splitlines() if "setting random seed" not in text]
    assert (done.status, done.stdout, len(told)) == (1, "", 1)
    assert told[0].startswith("pgbench: error: ")
    assert message in told[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--shard=0/2 run", "it must be I/N"),
        ("--shard= run", "Invalid value for the 'shard' option"),
        ("--shard=1/3 --threads=2 --rand-seed=1 run", "2 threads cannot be shared out among 3 shards"),
        ("--shard=1/2 --threads=2 run", "--shard needs --rand-seed with a number"),
        ("--shard=1/2 cleanup", "--shard is for the commands 'run' and 'prepare' only"),
        ("--start-at=- prepare", "--start-at is for the command 'run' only"),
        ("--start-at=soon run", '"soon" is not a time to start at'),
        ("--start-at=- cleanup", "--start-at is for the command 'run' only"),
    ],
)
def test_sysbench_refuses_it_too(tmp_path, line, message):
    nowhere = Target("/nowhere", 1, "nobody", "nothing")
    done = sysbench().run(nowhere, "oltp_insert", *line.split(), directory=tmp_path)
    assert done.status == 1
    assert message in done.stdout + done.stderr
