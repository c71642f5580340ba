"""`-i` of the original and of ours: the same words, tables and rows, in the same state or a better one."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from tests.conftest import public_directory, require, require_root
from tests.engine.programs import TIMEOUT_S, Ended, Program, client_program
from tests.engine.sessions import wait_until_left

pytestmark = pytest.mark.server


TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")


def settle(done: Ended, *, quiet: bool = False) -> tuple[int, str, str]:
    """Returns a run's status and output without times. Blanks at the end of a progress line, which cover a longer line
    before it, are removed.

    With `quiet`, only the last progress line is kept, since the number of lines depends on the duration.
    """
    said = re.sub(r"\d+\.\d\d s", "#.00 s", done.stderr)
    if quiet:
        said = re.sub(r"^\d+ of \d+ tuples \(\d\d?%\) of .*\n", "", said, flags=re.MULTILINE)
    return done.status, done.stdout, re.sub(r"\) +$", ")", said, flags=re.MULTILINE)


def definitions(target: Target) -> str:
    """Returns the tables as pg_dump writes them, without its random key."""
    dump = subprocess.run(
        [client_program("pg_dump"), "--schema-only"],
        env=environment(target.environment()),
        capture_output=True,
        text=True,
        check=True,
    )
    # Debian's 15.20 gives every column of a new table a number in `pg_attver`
    return re.sub(r"^\\(un)?restrict .*$|pg_attver=\d+", "", dump.stdout, flags=re.MULTILINE)


def contents(target: Target) -> dict[str, object]:
    """Returns the number of rows of each table and partition, and a digest of the rows with their places."""
    with target.connect_as_user() as connection:
        return {
            table: connection.execute(
                "SELECT tableoid::regclass::text, count(*), sum(hash_record_extended(ROW(ctid, t), 0))"
                f" FROM {table} t GROUP BY tableoid ORDER BY tableoid"
            ).fetchall()
            for table in TABLES
        }


def state(target: Target) -> dict[str, object]:
    """Sizes, statistics, and how many pages are all-visible and all-frozen."""
    with target.connect_as_user() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
        return {
            table: connection.execute(
                "SELECT pg_relation_size(c.oid), relpages, reltuples, relallvisible, relpersistence, v.*,"
                "  (SELECT count(*) FROM pg_stats s WHERE s.tablename = relname)"
                " FROM pg_class c, pg_visibility_map_summary(c.oid) v WHERE relname = %s",
                (table,),
            ).fetchone()
            for table in TABLES
        }


def made(program: Program, target: Target, *args: str) -> dict[str, object]:
    """Returns the output of a program that makes the tables, and their definitions and contents."""
    ended = settle(program.run(target, "-i", *args))
    return {"ended": ended, "definitions": definitions(target), "contents": contents(target)}


RUNS = [
    "",
    "-s 2",
    "-s 1 -F 70",
    "-q -s 3",
    "-n",
    "--foreign-keys",
    "--foreign-keys -n -q",
    "-I dtgvpf",
    "-I dtgvpf --foreign-keys",
    "-I dtpg",
    "-I dtGvp",
    "-I dtGpf -s 2 -F 50",
    "-I 'd t g v'",
    "-I dtfpg",
    "-I dtpfg",
    "-I dtvg",
    "-I dt",
    "-I ' '",
    "-I v -n",
    "-I dtgvgv",
    "-I t -I dtg",
    "--initialize --init-steps=dtg --scale=1 --quiet --fillfactor=90 --no-vacuum",
]


@pytest.mark.like_pgbench
@pytest.mark.parametrize("line", RUNS)
def test_the_tables_are_the_same_and_so_are_the_words(both, fresh, line):
    def act(program):
        target = fresh(empty=True)
        made = {"ended": settle(program.run(target, "-i", *shlex.split(line)), quiet="-q" in line)}
        made["definitions"] = definitions(target)
        with target.connect_as_user() as connection:
            exist = connection.execute("SELECT to_regclass('pgbench_history') IS NOT NULL").fetchone() == (True,)
        return made | ({"contents": contents(target), "state": state(target)} if exist else {})

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.like_pgbench
@pytest.mark.parametrize("major", [15, 16, 17])
def test_the_tables_are_the_same_on_older_servers(both, fresh, major):
    theirs, mine = both(lambda program: made(program, fresh(major, empty=True), "--foreign-keys"), major=major)
    assert mine == theirs


@pytest.mark.like_pgbench
@pytest.mark.parametrize("letter", "dtgGvpf")
@pytest.mark.parametrize("loaded_before", [True, False])
def test_each_step_alone_does_the_same(both, fresh, letter, loaded_before):
    def act(program):
        target = fresh(empty=not loaded_before)
        return settle(program.run(target, "-i", "-I", letter)), definitions(target)

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.like_pgbench
def test_rows_come_in_frozen(both, fresh):
    def act(program):
        target = fresh(empty=True)
        program.load(target, "-I", "dtg")
        with target.connect_as_user() as connection:
            connection.execute("CREATE EXTENSION pg_visibility")
            return connection.execute(
                "SELECT relname, pg_relation_size(c.oid) / 8192, v.all_visible, v.all_frozen"
                " FROM pg_class c, pg_visibility_map_summary(c.oid) v"
                " WHERE relname = ANY(%s) ORDER BY relname",
                (list(TABLES),),
            ).fetchall()

    theirs, mine = both(act)
    assert mine == theirs
    _, pages, visible, frozen = mine[0]
    assert visible == frozen > 0.95 * pages


def test_a_second_load_replaces_the_first(peers, fresh):
    target = fresh()
    peers[1].run(target, "-n", "-t", "10")
    peers[1].load(target, "-s", "1")
    with target.connect_as_user() as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_history),"
            " (SELECT sum(abs(abalance)) FROM pgbench_accounts)"
        ).fetchone()
    assert counts == (100_000, 0, 0)


def test_a_role_that_may_not_create_tables_is_told_so(peers, fresh):
    target = fresh(empty=True)
    with target.connect_as_user() as connection:
        connection.execute("DROP ROLE IF EXISTS pauper")
        connection.execute("CREATE ROLE pauper LOGIN")
    done = peers[1].run(replace(target, user="pauper"), "-i")
    with target.connect_as_user() as connection:
        connection.execute("DROP ROLE pauper")
    assert done.status == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("pgbench: ")]
    assert errors[0] == "pgbench: error: query failed: ERROR:  permission denied for schema public"
    assert errors[1].startswith("pgbench: detail: Query was: create table pgbench_history(")
    assert len(errors) == 2


def test_a_session_that_is_ended_ends_the_load(peers, fresh):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute(
            "CREATE FUNCTION stop() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$"
        )
        connection.execute("CREATE EVENT TRIGGER stop ON ddl_command_start EXECUTE FUNCTION stop()")
        ended = [program.run(target, "-i", "-I", "d") for program in peers]
        connection.execute("DROP EVENT TRIGGER stop")
    assert [done.status for done in ended] == [1, 1]
    assert "terminating connection due to administrator command" in ended[1].stderr


@pytest.fixture
def small_disk(clusters) -> Iterator[Path]:
    """Yields a tmpfs of 8 MB on which the server can write."""
    require_root()
    path = public_directory()
    uid = clusters(18).data_directory.stat().st_uid
    mount = ["mount", "-t", "tmpfs", "-o", f"size=8m,uid={uid},mode=700", "tmpfs", str(path)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        require(mounted, "the right to mount a tmpfs")
        yield path
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()


def test_a_full_disk_ends_the_load_with_one_sentence(peers, fresh, small_disk):
    target = fresh(empty=True)
    with target.connect_as_user() as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
    try:
        done = peers[1].run(target, "-i", "-q", "-s", "2", PGOPTIONS="-c default_tablespace=small")
        assert done.status == 1
        assert done.stderr.count("No space left on device") == 1
        assert re.search(r"^ERROR:  could not extend file", done.stderr, re.MULTILINE)
        assert done.stderr.endswith("\npgbench: error: PQendcopy failed\n")
        assert "done in" not in done.stderr
    finally:
        wait_until_left(target)  # who failed removes its files when its locks are free already
        with target.connect_as_user() as connection:
            connection.execute("DROP TABLE IF EXISTS " + ", ".join(TABLES))
            connection.execute("DROP TABLESPACE small")


def upkeep(target: Target) -> Upkeep:
    """Returns for each table its estimated number of rows, the number of columns with statistics, and whether all its
    pages are all-visible.
    """
    with target.connect_as_user() as connection:
        rows = connection.execute(
            "SELECT relname, reltuples::int, (SELECT count(*) FROM pg_stats s WHERE s.tablename = relname),"
            "  relallvisible = relpages FROM pg_class WHERE relkind IN ('r', 'p') AND relname LIKE 'pgbench%'"
        ).fetchall()
    return {name: (tuples, columns, visible) for name, tuples, columns, visible in rows}


Upkeep = dict[str, tuple[int, int, bool]]


def assert_kept_as_well(ours: Upkeep, reference: Upkeep) -> None:
    """The same statistics, and no page less visible: partitions come in frozen here only."""
    assert {name: found[:2] for name, found in ours.items()} == {name: found[:2] for name, found in reference.items()}
    assert [name for name, found in reference.items() if found[2] and not ours[name][2]] == []


@pytest.fixture(scope="module")
def places(clusters) -> Iterator[None]:
    """Tablespaces on the server 18, one with a name that has to be quoted."""
    names = ["sp_tables", 'odd "place']
    with clusters(18).target.connect_as_user() as connection:
        connection.execute("SET allow_in_place_tablespaces = on")
        for name in names:
            connection.execute("CREATE TABLESPACE {} LOCATION ''".format('"' + name.replace('"', '""') + '"'))
        yield
        for name in names:
            connection.execute("DROP TABLESPACE {}".format('"' + name.replace('"', '""') + '"'))


PARTITIONED = [
    "--partitions 3 -s 2",
    "--partitions=1",
    "--partitions 3 --partition-method=hash -s 2 -F 80",
    "--partitions 2 --partition-method range --unlogged-tables",
    "--partitions 2 --foreign-keys",
    "--partitions 2 -I dtGvp",
    "--partitions 2 -I dtpfg",
    "--partitions 0 --unlogged-tables",
]


@pytest.mark.like_pgbench
@pytest.mark.parametrize("line", [*PARTITIONED, "--partitions 70 --partition-method=hash", "--partitions 200 -I dt"])
def test_options_of_the_tables_do_the_same(both, fresh, line):
    def act(program):
        target = fresh(empty=True)
        return made(program, target, *shlex.split(line)), upkeep(target)

    (theirs, their_upkeep), (mine, my_upkeep) = both(act)
    assert theirs["ended"][0] == 0
    assert mine == theirs
    assert_kept_as_well(my_upkeep, their_upkeep)


@pytest.mark.like_pgbench
@pytest.mark.parametrize("line", ["", *PARTITIONED])
def test_options_of_the_tables_do_the_same_on_the_oldest_server(both, fresh, line):
    theirs, mine = both(lambda program: made(program, fresh(15, empty=True), *shlex.split(line)), major=15)
    assert mine == theirs


@pytest.mark.like_pgbench
@pytest.mark.parametrize(
    "line",
    [
        "--tablespace sp_tables",
        "--index-tablespace 'odd \"place'",
        "--tablespace 'odd \"place' --index-tablespace=sp_tables --partitions 2",
        "--tablespace nowhere",
        "--index-tablespace nowhere",
    ],
)
def test_tablespaces_are_where_they_were_asked_for(both, fresh, places, line):
    def act(program):
        target = fresh(empty=True)
        return settle(program.run(target, "-i", *shlex.split(line))), definitions(target)

    theirs, mine = both(act)
    assert theirs[0][0] == (1 if "nowhere" in line else 0)
    assert mine == theirs


@pytest.mark.like_pgbench
@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("line", ["-s 2", "-s 2 --partitions 5", "-s 2 --partitions 3 --partition-method hash"])
def test_any_number_of_connections_loads_the_same(both, fresh, line, jobs):
    def act(program):
        target = fresh(empty=True)
        more = [f"--load-jobs={jobs}"] if program.name == "ours" else []
        return made(program, target, *shlex.split(line), *more), upkeep(target)

    (theirs, their_upkeep), (mine, my_upkeep) = both(act)
    assert mine == theirs
    assert_kept_as_well(my_upkeep, their_upkeep)


@pytest.mark.like_pgbench
@pytest.mark.parametrize("there", ["ADD PRIMARY KEY (aid)", "ADD CONSTRAINT mine UNIQUE (aid)"])
def test_what_a_partition_has_before_the_keys_are_made_is_kept(both, fresh, there):
    def act(program):
        target = fresh(empty=True)
        program.load(target, "-s", "2", "--partitions", "3", "-I", "dtg")
        with target.connect_as_user() as connection:
            connection.execute(f"ALTER TABLE pgbench_accounts_2 {there}")
        program.load(target, "-s", "2", "-I", "pv")
        return definitions(target)

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.parametrize("partitions", [0, 3])
def test_the_first_read_dirties_no_page(peers, fresh, partitions):
    target = fresh(empty=True)
    peers[1].load(target, "--partitions", str(partitions), "-s", "2", "-I", "dtg")
    with target.connect_as_user() as connection:
        (plans,) = connection.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM pgbench_accounts"
        ).fetchone()
    assert plans[0]["Plan"]["Shared Dirtied Blocks"] == 0


ODD_TABLES = {
    "a view in the way": "DROP TABLE pgbench_accounts; CREATE VIEW pgbench_accounts AS SELECT 1 AS aid",
    "no table at all": "DROP TABLE pgbench_accounts",
    "fewer columns": "DROP TABLE pgbench_accounts; CREATE TABLE pgbench_accounts (aid int, bid int)",
    "a check": "ALTER TABLE pgbench_accounts ADD CHECK (aid > 150000) NOT VALID",
    "no such partition": "DROP TABLE pgbench_accounts; CREATE TABLE pgbench_accounts (aid int, bid int, abalance int,"
    " filler char(84)) PARTITION BY RANGE (aid);"
    " CREATE TABLE a1 PARTITION OF pgbench_accounts FOR VALUES FROM (1) TO (70000)",
    "other types": "ALTER TABLE pgbench_accounts ALTER aid TYPE numeric, ALTER filler TYPE text",
    "defaults": "ALTER TABLE pgbench_accounts ALTER abalance SET DEFAULT 7",
    "more partitions": "DROP TABLE pgbench_accounts; CREATE TABLE pgbench_accounts (filler char(84), aid bigint,"
    " bid int, abalance int) PARTITION BY RANGE (aid);"
    " CREATE TABLE a1 PARTITION OF pgbench_accounts FOR VALUES FROM (1) TO (7);"
    " CREATE TABLE a2 PARTITION OF pgbench_accounts DEFAULT",
    "a trigger": "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN NEW.abalance = NEW.aid; RETURN NEW; END $$;"
    " CREATE TRIGGER more BEFORE INSERT ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION more()",
}


@pytest.mark.like_pgbench
@pytest.mark.parametrize("odd", ODD_TABLES)
def test_tables_of_the_users_are_filled_or_refused_as_by_the_original(both, fresh, odd):
    def act(program):
        target = fresh()
        with target.connect_as_user() as connection:
            connection.execute(ODD_TABLES[odd])
        status, _, said = settle(program.run(target, "-i", "-I", "g"))
        # An error is heard of sooner or later: the lines of progress before it differ.
        left = [status, [line for line in said.splitlines() if " tuples (" not in line], definitions(target)]
        return left if odd in ("a view in the way", "no table at all") else [*left, contents(target)]

    theirs, mine = both(act)
    assert mine == theirs


def test_who_may_only_fill_the_tables_can_load(peers, fresh):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute("DROP ROLE IF EXISTS filler")
        connection.execute("CREATE ROLE filler LOGIN")
        connection.execute("GRANT SELECT, INSERT, TRUNCATE ON ALL TABLES IN SCHEMA public TO filler")
    done = peers[1].run(replace(target, user="filler"), "-i", "-q", "-I", "g")
    with target.connect_as_user() as connection:
        count = connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone()
        connection.execute("DROP OWNED BY filler")
        connection.execute("DROP ROLE filler")
    assert (done.status, count) == (0, (100_000,)), done.stderr


def test_a_failure_of_one_connection_leaves_everything_as_it_was(peers, fresh, small_disk):
    target = fresh(empty=True)
    peers[1].load(target, "--partitions", "2")
    with target.connect_as_user() as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        connection.execute("ALTER TABLE pgbench_accounts_2 SET TABLESPACE small")
    before = contents(target)
    try:
        done = peers[1].run(target, "-i", "-q", "-s", "4", "-I", "g", "--load-jobs", "2")
        assert done.status == 1
        assert done.stderr.count("ERROR:") == 1
        assert re.search(r"^ERROR:  could not extend file", done.stderr, re.MULTILINE)
        assert done.stderr.endswith("\npgbench: error: PQendcopy failed\n")
        assert contents(target) == before
    finally:
        wait_until_left(target)  # who failed removes its files when its locks are free already
        with target.connect_as_user() as connection:
            connection.execute("DROP TABLE " + ", ".join(TABLES))
            connection.execute("DROP TABLESPACE small")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", ["-s 200", "-s 200 --partitions 4 --load-jobs 2"])
def test_an_interrupt_ends_the_load_and_leaves_nothing_of_it(peers, fresh, options, which):
    target = fresh(empty=True)
    process = peers[1].start(target, ["-i", *options.split()])
    try:
        for line in process.stderr:
            if "of pgbench_accounts done" in line:
                break
        process.send_signal(which)
        _, said = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "Cancel request sent\n" in said
    assert "ERROR:  canceling statement due to user request\n" in said
    assert said.endswith("pgbench: error: PQendcopy failed\n")
    with target.connect_as_user() as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_branches)"
        ).fetchone()
    assert counts == (0, 0)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_needs_no_session_of_its_own(peers, fresh, which):
    """The role may have one session, which is the one that waits."""
    target = fresh(empty=True)
    with target.connect_as_user() as administrator, target.connect_as_user(autocommit=False) as locking:
        administrator.execute("DROP ROLE IF EXISTS only_one")
        administrator.execute("CREATE ROLE only_one LOGIN CONNECTION LIMIT 1")
        administrator.execute("GRANT CREATE, USAGE ON SCHEMA public TO only_one")
        # its sessions cannot see the others
        administrator.execute("REVOKE ALL ON pg_stat_activity FROM PUBLIC")
        locking.execute("CREATE TABLE pgbench_accounts (i int)")
        try:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'only_one' AND wait_event_type = 'Lock'"
            with peers[1].start(replace(target, user="only_one"), ["-i", "-I", "t"]) as process:
                while administrator.execute(waiting).fetchone() == (0,):
                    time.sleep(0.02)
                process.send_signal(which)
                _, said = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 1
            assert "Cancel request sent\n" in said
            assert "ERROR:  canceling statement due to user request\n" in said
            assert administrator.execute(waiting).fetchone() == (0,)
        finally:
            locking.rollback()
            administrator.execute("GRANT SELECT ON pg_stat_activity TO PUBLIC")
            administrator.execute("DROP OWNED BY only_one CASCADE; DROP ROLE only_one")
