"""Data that several engines make at once: together they make what one makes alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from pgtrial.loads.target import Target
from tests.conftest import require_engine
from tests.engine.programs import Ended, Program, ended
from tests.engine.sysbench.sides import ours as sysbench

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
TEXT = "as pgbench fills them, in text"
PARALLEL = """
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query(string.format("INSERT INTO made VALUES (%d, %d, %d, %d)", sysbench.tid, sysbench.opt.threads,
      sysbench.rand.uniform(1, 1000000000), sysbench.rand.unique() % 2147483648))
end
function event() end
sysbench.cmdline.commands = { prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND} }
"""
ALONE = PARALLEL.replace(", sysbench.cmdline.PARALLEL_COMMAND", "")


@pytest.fixture(scope="session")
def tasks() -> Program:
    """Returns the front end of tasks."""
    return Program("tasks", (str(require_engine()), "tasks"))


def rows(target: Target, table: str) -> tuple[object, ...]:
    """Returns the number of rows, and the sum of their texts' hashes, which does not depend on their places in the
    table.
    """
    with target.connect_as_user() as connection:
        found = connection.execute(f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {table} t").fetchone()
    assert found is not None
    return found


def at_once(
    program: Program, target: Target, shards: int, *args: str, directory: Path | None = None
) -> Sequence[Ended]:
    """Runs an engine for each shard, all at the same time."""
    with ExitStack() as stack:
        shares = [f"--shard={number}/{shards}" for number in range(1, shards + 1)]
        started = [stack.enter_context(program.start(target, [*args, each], directory=directory)) for each in shares]
        return [ended(process) for process in started]


@pytest.mark.server
@pytest.mark.parametrize(
    ("options", "engines"),
    [("", (3, 2)), ("--partitions=3", (2, 2)), ("--partitions=3 --partition-method=hash", (2, 1)), (TEXT, (3, 2))],
)
def test_the_rows_of_pgbench_are_those_of_one_run(peers, pristine, fresh, options, engines):
    shards, jobs = engines
    shared = fresh(empty=True)
    peers[1].load(shared, "-I", "dt", *(options if options != TEXT else "").split())
    if options == TEXT:
        with shared.connect_as_user() as connection:
            connection.execute("ALTER TABLE pgbench_accounts ADD CHECK (aid > 0)")
    for done in at_once(peers[1], shared, shards, "-i", "-I", "g", "-s", "2", f"--load-jobs={jobs}"):
        assert done.status == 0, done.stderr
        assert done.stderr.startswith("generating data (client-side)...\n")
        assert ("\n100000 of 100000 tuples (100%) of pgbench_accounts done" in done.stderr) == (shards == 2)
    assert [rows(shared, table) for table in TABLES] == [rows(pristine(18), table) for table in TABLES]


@pytest.mark.parametrize("steps", ["dtgvp", "gv", "G"])
def test_other_steps_are_not_shared_out(peers, steps):
    done = peers[1].run(Target("/nowhere", 1, "nobody", "nothing"), "-i", "-I", steps, "--shard=1/2")
    assert (done.status, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    refusal = "--shard with -i divides only the making of rows (-I g) among engines: make the tables once before"
    assert refusal in done.stderr


@pytest.mark.server
def test_the_rows_of_table_a_are_those_of_one_run(tasks, fresh):
    whole, shared = fresh(empty=True), fresh(empty=True)
    shape = ("--threads-in-table=5", "--rows=50")
    assert tasks.run(whole, "-I", *shape).status == 0
    alone = tasks.run(shared, "-I", *shape, "--init-steps=g", "--shard=1/2")
    assert alone.status == 3
    assert "there is no unfinished table_a of 5 x 50 rows" in alone.stderr
    assert tasks.run(shared, "-I", *shape, "--init-steps=t").status == 0
    done = at_once(tasks, shared, 2, "-I", *shape, "--init-steps=g")
    assert [each.status for each in done] == [0, 0], done
    assert "150 of 150 rows of table_a made" in done[0].stderr
    assert "100 of 100 rows of table_a made" in done[1].stderr
    early = tasks.run(shared, "-q", "--tasks=1", "--pool=1")
    assert early.status == 3
    assert "was not finished; make it again" in early.stderr
    last = tasks.run(shared, "-I", *shape, "--init-steps=v")
    assert last.status == 0
    assert re.fullmatch(r"table_a: 5 x 50 rows vacuumed in \d+ ms\n", last.stderr)
    assert rows(shared, "table_a") == rows(whole, "table_a")
    assert tasks.run(shared, "-q", "--tasks=1", "--pool=1").status == 0
    again = tasks.run(shared, "-I", *shape, "--init-steps=g")
    assert again.status == 3, "what is finished gets no more rows"


@pytest.fixture
def made(fresh) -> Target:
    """Returns a database with a table for what scripts make."""
    target: Target = fresh(empty=True)
    with target.connect_as_user() as connection:
        connection.execute("CREATE TABLE made (tid int, threads int, drawn bigint, number bigint)")
    return target


def taken(target: Target) -> list[tuple[int, ...]]:
    with target.connect_as_user() as connection:
        found = sorted(connection.execute("TABLE made").fetchall())
        connection.execute("TRUNCATE made")
    return found


@pytest.mark.server
def test_the_threads_of_a_parallel_command_are_shared_out(made, tmp_path):
    (tmp_path / "own.lua").write_text(PARALLEL)
    line = ("own.lua", "--threads=5", "--rand-seed=7")
    assert sysbench().run(made, *line, "prepare", directory=tmp_path).status == 0
    whole = taken(made)
    done = at_once(sysbench(), made, 2, *line, "prepare", directory=tmp_path)
    assert [each.status for each in done] == [0, 0], done
    shared = taken(made)
    assert [row[:3] for row in shared] == [row[:3] for row in whole]
    assert [row[:2] for row in shared] == [(tid, 5) for tid in range(5)]
    assert len({row[3] for row in shared}) == 5
    unseeded = sysbench().run(made, "own.lua", "--threads=5", "--shard=1/2", "prepare", directory=tmp_path)
    assert unseeded.status == 1
    assert "--shard needs --rand-seed with a number" in unseeded.stdout + unseeded.stderr


@pytest.mark.server
def test_a_command_for_one_thread_is_the_first_shards(made, tmp_path):
    (tmp_path / "own.lua").write_text(ALONE)
    first, second = at_once(sysbench(), made, 2, "own.lua", "--threads=5", "prepare", directory=tmp_path)
    assert [first.status, second.status] == [0, 0]
    assert "Shard 2/2: 'prepare' is not a parallel command, so only shard 1/2 executes it\n" in second.stdout
    assert [row[:2] for row in taken(made)] == [(0, 5)]


@pytest.mark.server
def test_the_tables_of_a_native_test_are_made_by_shards_as_one_engine_makes_them(fresh, tmp_path):
    line = ["oltp_read_write", "--tables=5", "--table-size=20", "--threads=4", "--rand-seed=7"]
    whole, shared = fresh(18), fresh(18)
    assert sysbench().run(whole, *line, "prepare", directory=tmp_path).status == 0
    made = []
    for number in (1, 2):
        done = sysbench().run(shared, *line, f"--shard={number}/2", "prepare", directory=tmp_path)
        assert done.status == 0, done.stderr
        made.append(re.findall(r"Creating table '(\w+)'", done.stdout))
    assert [sorted(names) for names in made] == [["sbtest1", "sbtest3", "sbtest5"], ["sbtest2", "sbtest4"]]
    for number in range(1, 6):
        rows = [target.connect_as_user().execute(f"TABLE sbtest{number}").fetchall() for target in (whole, shared)]
        assert len(rows[0]) == 20
        assert rows[0] == rows[1]
